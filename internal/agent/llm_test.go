package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/agent"
)

// scripted answers as the providers' streaming APIs do. Which answer comes is
// decided by how many tool results the request holds, so it needs no state.
type scripted struct {
	mu    sync.Mutex
	calls []string
	deny  int // status to refuse with
}

type move struct {
	text, tool string
	input      map[string]any
}

var game = []move{
	{text: "I will write it.", tool: "write_file", input: map[string]any{"path": "hi.txt", "text": "hi\n"}},
	{tool: "run_command", input: map[string]any{"command": "cat hi.txt; exit 3"}},
	{tool: "finish", input: map[string]any{"summary": "wrote hi.txt"}},
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.calls = append(s.calls, r.URL.Path)
	s.mu.Unlock()
	if s.deny != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.deny)
		fmt.Fprint(w, `{"error":{"type":"budget","message":"the task's budget of $1 is reached"}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if strings.HasSuffix(r.URL.Path, "/v1/messages") {
		anthropicStream(w, game[strings.Count(string(body), `"tool_result"`)])
		return
	}
	openAIStream(w, game[strings.Count(string(body), `"role":"tool"`)])
}

func anthropicStream(w io.Writer, m move) {
	send := func(kind string, v map[string]any) {
		v["type"] = kind
		raw, _ := json.Marshal(v)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, raw)
	}
	send("message_start", map[string]any{"message": map[string]any{"id": "m", "type": "message", "role": "assistant", "content": []any{}, "model": "x", "usage": map[string]any{"input_tokens": 10, "output_tokens": 1}}})
	index := 0
	if m.text != "" {
		send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
		for _, word := range strings.SplitAfter(m.text, " ") {
			send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": word}})
		}
		send("content_block_stop", map[string]any{"index": 0})
		index = 1
	}
	input, _ := json.Marshal(m.input)
	send("content_block_start", map[string]any{"index": index, "content_block": map[string]any{"type": "tool_use", "id": "call-" + m.tool, "name": m.tool, "input": map[string]any{}}})
	send("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(input)}})
	send("content_block_stop", map[string]any{"index": index})
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": "tool_use"}, "usage": map[string]any{"output_tokens": 20}})
	send("message_stop", map[string]any{})
}

func openAIStream(w io.Writer, m move) {
	send := func(delta map[string]any, finish any) {
		raw, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "x", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", raw)
	}
	if m.text != "" {
		for _, word := range strings.SplitAfter(m.text, " ") {
			send(map[string]any{"role": "assistant", "content": word}, nil)
		}
	}
	input, _ := json.Marshal(m.input)
	send(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "call-" + m.tool, "type": "function", "function": map[string]any{"name": m.tool, "arguments": string(input)}}}}, nil)
	send(map[string]any{}, "tool_calls")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func llmTurn(t *testing.T, provider string, models http.Handler) (agent.LLM, agent.Turn, *memorySink) {
	t.Helper()
	_, turn, sink := newTurn(t, "")
	turn.Member.LLMProvider, turn.Member.LLMModel, turn.Member.Role = provider, "scripted", "developer"
	turn.Prompt = "write hi.txt"
	server := httptest.NewServer(models)
	t.Cleanup(server.Close)
	return agent.LLM{Dir: filepath.Join(turn.Dir, ".squad"), Models: func(agent.Turn) http.RoundTripper { return toServer(server.Listener.Addr().String()) }}, turn, sink
}

// toServer sends every request to one address, as the gateway's transport does.
type toServer string

func (a toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = string(a)
	return http.DefaultTransport.RoundTrip(r)
}

func TestLLM_LoopUsesToolsUntilItFinishes(t *testing.T) {
	t.Parallel()
	for provider, path := range map[string]string{"anthropic": "/llm/anthropic/v1/messages", "openai": "/llm/openai/v1/chat/completions", "some-other": "/llm/openai/v1/chat/completions"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			models := &scripted{}
			driver, turn, sink := llmTurn(t, provider, models)
			out := agent.NewStream(t.Context(), sink, squad.Event{}, 0)
			result, err := driver.Turn(t.Context(), turn, out)
			if err != nil {
				t.Fatal(err)
			}
			if err := out.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if result.Outcome != agent.Finished || result.Summary != "wrote hi.txt" {
				t.Errorf("result %+v", result)
			}
			if len(result.Commands) != 1 || result.Commands[0].ExitCode != 3 {
				t.Errorf("evidence %+v", result.Commands)
			}
			if len(models.calls) != 3 || models.calls[0] != path {
				t.Errorf("calls %v", models.calls)
			}
			if got := sink.texts(t, squad.EventMessage); got != "I will write it." {
				t.Errorf("said %q", got)
			}
			if data, _ := os.ReadFile(filepath.Join(turn.Dir, "hi.txt")); string(data) != "hi\n" {
				t.Errorf("file %q", data)
			}
			// A server that comes back after the end gets the same answer and asks nothing.
			again, err := driver.Turn(t.Context(), turn, agent.NewStream(t.Context(), sink, squad.Event{}, 0))
			if err != nil || again.Summary != result.Summary || len(models.calls) != 3 {
				t.Errorf("second reader: %+v, %v, %d calls", again, err, len(models.calls))
			}
		})
	}
}

func TestLLM_BudgetEndsTheTurnAtOnce(t *testing.T) {
	t.Parallel()
	models := &scripted{deny: http.StatusForbidden}
	driver, turn, sink := llmTurn(t, "anthropic", models)
	result, err := driver.Turn(t.Context(), turn, agent.NewStream(t.Context(), sink, squad.Event{}, 0))
	if err != nil || result.Outcome != agent.Failed || !strings.Contains(result.Summary, "budget") {
		t.Errorf("result %+v, %v", result, err)
	}
	if len(models.calls) != 1 {
		t.Errorf("%d calls past the budget", len(models.calls))
	}
}

// A conversation that grows without end is cut to its bound, and the model's empty
// input for a tool that wants none is no mistake.
func TestLLM_ConversationStaysInBounds(t *testing.T) {
	t.Parallel()
	var largest atomic.Int64
	steps := 0
	models := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		largest.Store(max(largest.Load(), int64(len(body))))
		w.Header().Set("Content-Type", "text/event-stream")
		switch steps++; {
		case steps == 1:
			fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"git_status","arguments":""}}]},"finish_reason":null}]}`+"\n\ndata: [DONE]\n\n")
		case steps < 40:
			openAIStream(w, move{tool: "write_file", input: map[string]any{"path": "big.txt", "text": strings.Repeat(string(rune('a'+steps%20)), 60_000)}})
		default:
			openAIStream(w, move{tool: "finish", input: map[string]any{"summary": "done"}})
		}
	})
	driver, turn, sink := llmTurn(t, "openai", models)
	result, err := driver.Turn(t.Context(), turn, agent.NewStream(t.Context(), sink, squad.Event{}, 0))
	if err != nil || result.Outcome != agent.Finished {
		t.Errorf("result %+v, %v", result, err)
	}
	if largest.Load() > 700_000 {
		t.Errorf("a request of %d bytes", largest.Load())
	}
	for _, call := range sink.calls(t) {
		if call.Title == "git_status" && call.Status == "failed" {
			t.Errorf("call %+v", call)
		}
	}
}
