package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
)

// usageJSON is the usage object of three APIs: Anthropic Messages, OpenAI Chat
// Completions and OpenAI Responses. Their fields do not clash.
type usageJSON struct {
	InputTokens   *int64 `json:"input_tokens"`
	OutputTokens  *int64 `json:"output_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
	CacheByTime   struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	InputDetails cacheJSON `json:"input_tokens_details"`

	PromptTokens     *int64 `json:"prompt_tokens"`
	CompletionTokens *int64 `json:"completion_tokens"`

	PromptDetails cacheJSON `json:"prompt_tokens_details"`
}

// cacheJSON is what OpenAI says about the input it had or kept; both are part of it.
type cacheJSON struct {
	Cached  int64 `json:"cached_tokens"`
	Written int64 `json:"cache_write_tokens"`
}

// answerJSON is what carries usage, as a whole answer or as one event of a stream.
type answerJSON struct {
	Type    string          `json:"type"`
	Model   string          `json:"model"`
	Usage   *usageJSON      `json:"usage"`
	Choices json.RawMessage `json:"choices"`
	Message *struct {
		Model string     `json:"model"`
		Usage *usageJSON `json:"usage"`
	} `json:"message"`
	Response *struct {
		Model string     `json:"model"`
		Usage *usageJSON `json:"usage"`
	} `json:"response"`
	geminiJSON
}

// geminiJSON is where Gemini says the same: in every event, as a total so far.
type geminiJSON struct {
	ModelVersion string `json:"modelVersion"`
	Metadata     *struct {
		Prompt     int64 `json:"promptTokenCount"`
		ToolPrompt int64 `json:"toolUsePromptTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
	Candidates []struct {
		FinishReason string `json:"finishReason"`
	} `json:"candidates"`
}

// meter reads usage from an answer as it passes.
type meter struct {
	tokens tokens
	model  string
	text   int64  // bytes of events or body seen, for an estimate where usage never came
	done   bool   // the answer said what it used in the end
	cut    bool   // the client left before the answer began
	atEnd  func() // called once when done, before the answer's end is passed on
}

func newMeter(model string) *meter { return &meter{model: model} }

// cutOff notes that nobody waits for the answer any more. A nil meter counts nothing.
func (m *meter) cutOff() {
	if m != nil {
		m.cut = true
	}
}

// read takes one JSON document: the body, or the data of one event.
func (m *meter) read(data []byte) {
	m.text += int64(len(data))
	if !bytes.Contains(data, []byte(`usage`)) {
		return
	}
	var a answerJSON
	if json.Unmarshal(data, &a) != nil {
		return
	}
	m.readUsage(&a)
	if m.done && m.atEnd != nil {
		tell := m.atEnd
		m.atEnd = nil
		tell()
	}
}

func (m *meter) readUsage(a *answerJSON) {
	if a.Message != nil {
		m.take(a.Message.Model, a.Message.Usage)
	}
	if a.Response != nil {
		m.take(a.Response.Model, a.Response.Usage)
		m.done = m.done || a.Response.Usage != nil
	}
	if a.Usage != nil {
		m.take(a.Model, a.Usage)
		m.done = m.done || a.last()
	}
	if u := a.Metadata; u != nil {
		m.take(a.ModelVersion, nil)
		m.tokens = tokens{in: u.Prompt + u.ToolPrompt, out: u.Candidates + u.Thoughts, cacheRead: u.Cached}
		m.done = m.done || len(a.Candidates) > 0 && a.Candidates[0].FinishReason != ""
	}
}

// last says whether usage beside choices is the final one: some providers of OpenAI's
// chat API tell a total so far with every piece.
func (a *answerJSON) last() bool {
	var choices []struct {
		FinishReason json.RawMessage `json:"finish_reason"`
	}
	if len(a.Choices) == 0 || json.Unmarshal(a.Choices, &choices) != nil {
		return true
	}
	for _, c := range choices {
		if string(c.FinishReason) == "null" || string(c.FinishReason) == `""` {
			return false
		}
	}
	return true
}

// take overwrites: streams repeat usage as a growing total, never as a difference.
func (m *meter) take(model string, u *usageJSON) {
	if model != "" {
		m.model = model
	}
	if u == nil {
		return
	}
	if u.PromptTokens != nil {
		m.tokens.in, m.tokens.cacheRead, m.tokens.cacheWrite = *u.PromptTokens, u.PromptDetails.Cached, u.PromptDetails.Written
	}
	if u.CompletionTokens != nil {
		m.tokens.out = *u.CompletionTokens
	}
	if u.CacheCreation != nil {
		m.tokens.cacheWrite, m.tokens.cacheHour = *u.CacheCreation, u.CacheByTime.Hour
	} else if u.InputDetails.Written > 0 {
		m.tokens.cacheWrite = u.InputDetails.Written
	}
	if u.CacheRead != nil {
		m.tokens.cacheRead = *u.CacheRead
	} else if u.InputDetails.Cached > 0 {
		m.tokens.cacheRead = u.InputDetails.Cached
	}
	if u.InputTokens != nil {
		m.tokens.in = *u.InputTokens
		if u.CacheCreation != nil || u.CacheRead != nil {
			// Anthropic counts cached input beside the rest, OpenAI inside it.
			m.tokens.in += m.tokens.cacheWrite + m.tokens.cacheRead
		}
	}
	if u.OutputTokens != nil {
		m.tokens.out = *u.OutputTokens
	}
}

const maxEvent = 8 << 20

// events cuts a stream of server-sent events into whole events, hands their data
// to the meter, and returns what may be sent on. Where drop is set, the usage event
// that only we asked for is held back.
type events struct {
	meter *meter
	drop  bool
	buf   []byte
	skip  bool // inside an event too long to keep; its bytes were sent already
}

// write takes bytes of the stream and returns the bytes to send on.
func (e *events) write(b []byte) []byte {
	e.buf = append(e.buf, b...)
	var out []byte
	for {
		n := eventEnd(e.buf)
		if n < 0 {
			break
		}
		event := e.buf[:n]
		if e.skip || !e.observe(event) {
			out = append(out, event...)
		}
		e.skip = false
		e.buf = append([]byte(nil), e.buf[n:]...)
	}
	if len(e.buf) > maxEvent {
		out = append(out, e.buf...)
		e.buf, e.skip = nil, true
	}
	return out
}

// rest returns what is left at the end of the stream.
func (e *events) rest() []byte {
	e.observe(e.buf)
	return e.buf
}

// eventEnd is the length of the first whole event with its blank line, -1 if there
// is none.
func eventEnd(b []byte) int {
	best := -1
	for _, sep := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(b, []byte(sep)); i >= 0 && (best < 0 || i+len(sep) < best) {
			best = i + len(sep)
		}
	}
	return best
}

// observe meters one event and says whether to hold it back.
func (e *events) observe(event []byte) bool {
	var data []string
	for _, line := range strings.FieldsFunc(string(event), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if d, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(d, " "))
		}
	}
	if len(data) == 0 {
		return false
	}
	text := []byte(strings.Join(data, "\n"))
	e.meter.read(text)
	if !e.drop || !bytes.Contains(text, []byte(`"usage"`)) {
		return false
	}
	var a answerJSON
	return json.Unmarshal(text, &a) == nil && a.Usage != nil && string(bytes.TrimSpace(a.Choices)) == "[]"
}
