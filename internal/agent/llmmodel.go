package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	squad "agentsquad"
)

// model is a provider's way to answer a conversation.
type model interface {
	// ask returns what the model says next; text is told as it comes.
	ask(ctx context.Context, system string, talk []said, tell func(string)) (said, error)
}

// modelError is a refusal of the provider or of the gateway.
type modelError struct {
	status  int
	message string
	after   time.Duration // what the provider says to wait, 0 where it says nothing
	err     error
}

func newModelError(status int, raw string, resp *http.Response, err error) error {
	e := &modelError{status: status, message: reasonIn(raw, status), err: err}
	if resp != nil {
		if seconds, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil && seconds > 0 {
			e.after = min(time.Duration(seconds)*time.Second, maxPause)
		}
	}
	return e
}

func (e *modelError) Error() string { return e.message }
func (e *modelError) Unwrap() error { return e.err }

// again says whether the same call may be answered later. A budget that was reached
// (402 and 403 of the gateway) and a bad request are final.
func (e *modelError) again() bool {
	return e.status == http.StatusTooManyRequests || e.status == http.StatusRequestTimeout || e.status >= 500
}

const maxAnswerTokens = 8192

// gatewayBase is the gateway's address in requests that never leave the process.
const gatewayBase = "http://squad.internal/llm"

// newModel chooses the provider's SDK by the member's llm_provider. Any other name
// than anthropic is spoken to as OpenAI is.
func newModel(t Turn, transport http.RoundTripper) (model, error) {
	name := t.Member.LLMModel
	if name == "" {
		return nil, squad.Errorf(squad.CodeRule, "member %s names no llm_model", t.Member.Name)
	}
	c := &http.Client{Transport: transport}
	const key = "provided-by-the-gateway"
	switch t.Member.LLMProvider {
	case "anthropic":
		api := anthropic.NewClient(anthropicopt.WithBaseURL(gatewayBase+"/anthropic"), anthropicopt.WithAPIKey(key), anthropicopt.WithHTTPClient(c), anthropicopt.WithMaxRetries(0))
		return anthropicModel{api, name}, nil
	case "":
		return nil, squad.Errorf(squad.CodeRule, "member %s names no llm_provider: anthropic, openai or one that speaks as OpenAI does", t.Member.Name)
	}
	api := openai.NewClient(openaiopt.WithBaseURL(gatewayBase+"/openai/v1"), openaiopt.WithAPIKey(key), openaiopt.WithHTTPClient(c), openaiopt.WithMaxRetries(0))
	return openAIModel{api, name}, nil
}

type anthropicModel struct {
	api  anthropic.Client
	name string
}

func (m anthropicModel) ask(ctx context.Context, system string, talk []said, tell func(string)) (said, error) {
	params := anthropic.MessageNewParams{Model: anthropic.Model(m.name), MaxTokens: maxAnswerTokens, System: []anthropic.TextBlockParam{{Text: system}}}
	for _, t := range llmTools {
		tool := anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: t.properties, Required: t.required}, t.name)
		tool.OfTool.Description = anthropic.String(t.description)
		params.Tools = append(params.Tools, tool)
	}
	for _, s := range talk {
		params.Messages = append(params.Messages, anthropicMessage(s))
	}
	stream := m.api.Messages.NewStreaming(ctx, params)
	defer stream.Close()
	var whole anthropic.Message
	for stream.Next() {
		event := stream.Current()
		if err := whole.Accumulate(event); err != nil {
			return said{}, err
		}
		if event.Type == "content_block_delta" && event.Delta.Text != "" {
			tell(event.Delta.Text)
		}
	}
	if err := stream.Err(); err != nil {
		return said{}, anthropicError(err)
	}
	out := said{Role: "assistant"}
	var text strings.Builder
	for _, block := range whole.Content {
		switch block.Type {
		case "text":
			text.WriteString(block.Text)
		case "tool_use":
			out.Calls = append(out.Calls, toolUse{ID: block.ID, Name: block.Name, Input: input(string(block.Input))})
		}
	}
	out.Text = text.String()
	return out, nil
}

func anthropicMessage(s said) anthropic.MessageParam {
	var blocks []anthropic.ContentBlockParamUnion
	if s.Text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(s.Text))
	}
	for _, c := range s.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, c.Input, c.Name))
	}
	for _, r := range s.Results {
		blocks = append(blocks, anthropic.NewToolResultBlock(r.ID, r.Text, r.Error))
	}
	if s.Role == "assistant" {
		return anthropic.NewAssistantMessage(blocks...)
	}
	return anthropic.NewUserMessage(blocks...)
}

func anthropicError(err error) error {
	var e *anthropic.Error
	if errors.As(err, &e) {
		return newModelError(e.StatusCode, e.RawJSON(), e.Response, err)
	}
	return err
}

// invalidInput begins the input of a call that was no JSON object.
const invalidInput = `{"invalid_input":`

// input makes what a model gave to a tool a JSON object: some leave it empty where a
// tool wants nothing, and an answer that was cut off ends in the middle.
func input(text string) json.RawMessage {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage(`{}`)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(tail(text, 1000))
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(invalidInput + string(quoted) + "}")
}

type openAIModel struct {
	api  openai.Client
	name string
}

func (m openAIModel) ask(ctx context.Context, system string, talk []said, tell func(string)) (said, error) {
	params := openai.ChatCompletionNewParams{
		Model: m.name, Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system)},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	for _, t := range llmTools {
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.name, Description: openai.String(t.description),
			Parameters: shared.FunctionParameters{"type": "object", "properties": t.properties, "required": append([]string{}, t.required...)},
		}))
	}
	for _, s := range talk {
		params.Messages = append(params.Messages, openAIMessages(s)...)
	}
	stream := m.api.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		whole.AddChunk(chunk)
		if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			tell(chunk.Choices[0].Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		var e *openai.Error
		if errors.As(err, &e) {
			return said{}, newModelError(e.StatusCode, e.RawJSON(), e.Response, err)
		}
		return said{}, err
	}
	if len(whole.Choices) == 0 {
		return said{Role: "assistant"}, nil
	}
	message := whole.Choices[0].Message
	out := said{Role: "assistant", Text: message.Content}
	for _, c := range message.ToolCalls {
		out.Calls = append(out.Calls, toolUse{ID: c.ID, Name: c.Function.Name, Input: input(c.Function.Arguments)})
	}
	return out, nil
}

func openAIMessages(s said) []openai.ChatCompletionMessageParamUnion {
	switch s.Role {
	case "tools":
		out := make([]openai.ChatCompletionMessageParamUnion, 0, len(s.Results))
		for _, r := range s.Results {
			out = append(out, openai.ToolMessage(r.Text, r.ID))
		}
		return out
	case "assistant":
		m := openai.AssistantMessage(s.Text)
		for _, c := range s.Calls {
			m.OfAssistant.ToolCalls = append(m.OfAssistant.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: c.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(c.Input)},
				},
			})
		}
		return []openai.ChatCompletionMessageParamUnion{m}
	}
	return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(s.Text)}
}

// reasonIn finds the message in an error's body, whichever form it has.
func reasonIn(raw string, status int) string {
	var body struct {
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
		Error   json.RawMessage `json:"error"`
	}
	if json.Unmarshal([]byte(raw), &body) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(body.Error, &inner) == nil && inner.Message != "" {
			return Redact(inner.Message)
		}
		for _, text := range []string{body.Detail, body.Message} {
			if text != "" {
				return Redact(text)
			}
		}
	}
	return http.StatusText(status)
}
