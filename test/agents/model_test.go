package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// step is what the scripted model says once: some words, and a tool to use. A step
// without a tool ends the turn.
type step struct {
	thought, text string
	shell         string         // a command line, in whichever tool the agent has for it
	tool          string         // or a tool of the built-in loop by name
	mcp           string         // or a tool of the squad, over MCP
	plan          []string       // or a plan, in whichever tool the agent has for it
	input         map[string]any // of tool or mcp
	status        int            // or a refusal
	wait          time.Duration  // what Retry-After says
}

// Usage that the model claims for each answer.
const (
	usageIn  = 1000
	usageOut = 100
)

// model is a model provider on loopback: it speaks Anthropic's Messages API and
// OpenAI's Responses and Chat APIs and Gemini's, streaming, and answers by a script. Which
// script is said in the prompt (script=NAME); which step follows from the number
// of answers of ours in the conversation, so that it keeps no state.
type model struct {
	url     string
	scripts map[string][]step

	mu      sync.Mutex
	asked   []request
	refused map[string]int // answered refusals by script and step
}

// request is a call as the model saw it.
type request struct {
	path, key, body string
}

func newModel(t *testing.T, scripts map[string][]step) *model {
	t.Helper()
	m := &model{scripts: scripts, refused: map[string]int{}}
	s := httptest.NewServer(m)
	m.url = s.URL
	t.Cleanup(s.Close)
	return m
}

var scriptName = regexp.MustCompile(`script=([a-z-]+)`)

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
	m.mu.Lock()
	m.asked = append(m.asked, request{r.URL.Path, key, string(raw)})
	m.mu.Unlock()
	var in ask
	if json.Unmarshal(raw, &in) != nil || r.Method != http.MethodPost {
		http.Error(w, `{"error":{"message":"not scripted"}}`, http.StatusNotFound)
		return
	}
	s := m.next(&in, string(raw))
	if s.status != 0 {
		w.Header().Set("Content-Type", "application/json")
		if s.wait > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int(s.wait.Seconds())))
		}
		w.WriteHeader(s.status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"overloaded_error","message":"scripted refusal %d"}}`, s.status)
		return
	}
	reply := reply{w: w, model: in.Model, stream: in.Stream}
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		reply.anthropic(s)
	case strings.HasSuffix(r.URL.Path, "/responses"):
		reply.responses(s)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		reply.chat(s)
	case strings.HasSuffix(r.URL.Path, "enerateContent"):
		reply.model, reply.stream = geminiModel(r.URL.Path), strings.Contains(r.URL.Path, ":stream")
		reply.gemini(s)
	default:
		http.Error(w, `{"error":{"message":"not scripted"}}`, http.StatusNotFound)
	}
}

// geminiModel is the model that a path of Gemini's names.
func geminiModel(path string) string {
	name, _, _ := strings.Cut(path[strings.LastIndex(path, "/")+1:], ":")
	return name
}

// ask is what the script needs of a request of any of the four APIs.
type ask struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"`
	Input    json.RawMessage   `json:"input"`
	Tools    []struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		Declarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

func (a *ask) has(tool string) bool {
	for _, t := range a.Tools {
		if t.Name == tool || t.Function.Name == tool {
			return true
		}
		for _, d := range t.Declarations {
			if d.Name == tool {
				return true
			}
		}
	}
	return false
}

// next is the step that follows the conversation so far.
func (m *model) next(in *ask, raw string) step {
	found := scriptName.FindAllStringSubmatch(raw, -1)
	if len(in.Tools) == 0 || len(found) == 0 {
		return step{text: "A title"} // side calls
	}
	name := found[len(found)-1][1]
	script := m.scripts[name]
	since := raw[strings.LastIndex(raw, "script="):] // in a second turn, what came after its prompt
	n := 0
	for _, sign := range []string{`"type":"tool_result"`, `"type":"function_call_output"`, `"role":"tool"`, `"functionResponse":`} {
		n += strings.Count(since, sign)
	}
	at := 0 // refusals come in between and are no steps
	for _, s := range script {
		switch {
		case at < n && s.status == 0:
			at++
		case at == n && s.status == 0:
			return s.with(in)
		case at == n && m.first(fmt.Sprint(name, at)):
			return s
		}
	}
	return step{text: "All done."}
}

// first says whether a refusal is given for the first time.
func (m *model) first(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[what]++
	return m.refused[what] == 1
}

// with makes the shell line, or the squad's tool, a call of the tool that the agent has.
func (s step) with(in *ask) step {
	if s.mcp != "" {
		switch {
		case in.has("mcp__squad__" + s.mcp): // Claude Code
			s.tool = "mcp__squad__" + s.mcp
		case in.has("squad_" + s.mcp): // OpenCode
			s.tool = "squad_" + s.mcp
		case in.has("mcp_squad_" + s.mcp): // Gemini
			s.tool = "mcp_squad_" + s.mcp
		case in.has("mcp__squad"): // Codex
			s.tool = "mcp__squad/" + s.mcp
		default:
			return step{text: "The squad's tools are not there."}
		}
		return s
	}
	if len(s.plan) > 0 {
		s = s.planned(in)
	}
	if s.shell == "" {
		return s
	}
	for tool, arg := range map[string]string{"exec_command": "cmd", "Bash": "command", "bash": "command", "run_command": "command", "run_shell_command": "command"} {
		if in.has(tool) {
			s.tool, s.input = tool, map[string]any{arg: s.shell}
			if arg == "command" && tool != "run_command" {
				s.input["description"] = "Run a scripted command"
			}
			return s
		}
	}
	return step{text: "There is no tool for commands."}
}

// planned makes the plan a call of the tool that the agent has; Gemini tells its
// client of none, and runs a command instead.
func (s step) planned(in *ask) step {
	var codex, todo []any
	for i, what := range s.plan {
		state := "pending"
		if i == 0 {
			state = "in_progress"
		}
		codex = append(codex, map[string]any{"step": what, "status": state})
		todo = append(todo, map[string]any{"content": what, "status": state, "priority": "high", "id": what})
	}
	switch {
	case in.has("update_plan"):
		s.tool, s.input = "update_plan", map[string]any{"plan": codex}
	case in.has("TaskCreate"): // Claude Code's, an entry a call
		s.tool, s.input = "TaskCreate", map[string]any{"subject": strings.Join(s.plan, ", "), "description": "As planned", "activeForm": "Planning"}
	case in.has("todowrite"):
		s.tool, s.input = "todowrite", map[string]any{"todos": todo}
	default:
		s.shell = "true"
	}
	return s
}

func (m *model) requests() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]request{}, m.asked...)
}
