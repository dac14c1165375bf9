package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// cancelCommand waits until the agent runs a command and cancels that.
func (h *house) cancelCommand(k squad.Task, e squad.Execution) {
	h.t.Helper()
	h.working(k, e)
	user := squad.User{Email: "joe@example.com", Name: "Joe"}
	h.tx(func(tx *store.Tx) error { return tx.CreateUser(h.t.Context(), &user) })
	who := squad.Actor{Kind: squad.TokenUser, UserID: user.ID}
	h.must(h.runner.CancelCommand(h.t.Context(), who, e.ID))
	h.until(k, "word of it", func(ev squad.Event) bool {
		return ev.Type == squad.EventLog && strings.Contains(string(ev.Payload), "the command was cancelled by Joe")
	})
}

// delivered wants the task's pull request, of one execution, with a file.
func (h *house) delivered(k squad.Task, e squad.Execution, file, text string) {
	h.t.Helper()
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" || k.ExecutionID != e.ID {
		h.story(k)
		h.t.Fatalf("task is %s: %s", k.Flag, k.Cause)
	}
	if got := h.git("show", "task-1:"+file); got != text {
		h.t.Errorf("branch has %q", got)
	}
}

// A command that is the agent: its turn ends, its work stays, and the next word is
// another turn.
func TestCancelCommand_CommandAgentWaitsForAWord(t *testing.T) {
	h := newHouse(t)
	k := h.task("Do it", h.member("Ada", `if [ "$SQUAD_TURN" = 1 ]; then echo half > half.txt; `+busy+`; fi
grep -q 'just finish' "$SQUAD_TASK_FILE" && cat half.txt > whole.txt`))
	e := h.start(k)
	h.cancelCommand(k, e)
	e = h.untilExecution(k, e.ID, func(e squad.Execution) bool { return e.Status == squad.ExecutionWaiting || e.Status.Final() })
	if e.Liveness.State != "person" {
		t.Fatalf("%s: %+v %s", e.Status, e.Liveness, e.Error)
	}
	err := h.runner.CancelCommand(t.Context(), squad.System(), e.ID)
	if squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("cancelled what does not run: %v", err)
	}
	_, err = h.runner.Nudge(t.Context(), squad.System(), k.ID, "just finish")
	h.must(err)
	h.delivered(k, e, "whole.txt", "half")
}

// acpAgent speaks just enough of the protocol, in bash, and runs one command.
const acpAgent = `
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
update() { say '"method":"session/update","params":{"sessionId":"s","update":'"$1"'}'; }
read -r _; say '"id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}'
read -r _; say '"id":2,"result":{"sessionId":"s"}'
read -r _
update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"wait","kind":"execute","status":"in_progress","rawInput":{"command":"sleep 600; echo never"}}'
update '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"waiting"}}'
bash -c 'sleep 600; echo never' </dev/null; code=$?
update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","rawOutput":{"exit_code":'$code'}}'
echo "$code" > code.txt
update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"went on"}}'
say '"id":3,"result":{"stopReason":"end_turn"}'
read -r _`

// An agent that runs its commands itself loses the command and goes on.
func TestCancelCommand_ACPAgentGoesOn(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", acpAgent)
	ada.Config.Agent = squad.AgentACP
	h.tx(func(tx *store.Tx) error { return tx.UpdateMember(t.Context(), &ada) })
	k := h.task("Do it", ada)
	e := h.start(k)
	h.untilExecution(k, e.ID, func(e squad.Execution) bool { return e.Liveness.State == "command" })
	for { // it says that it starts the command a moment before it does
		err := h.runner.CancelCommand(t.Context(), squad.System(), e.ID)
		if err == nil {
			break
		}
		if squad.CodeOf(err) != squad.CodeConflict {
			t.Fatal(err)
		}
	}
	h.delivered(k, e, "code.txt", "137")
}

// model answers as OpenAI does: first with a command without end, then with the end.
type model struct{ heard chan string }

func (m model) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	name, input := "run_command", `{"command":"echo working; sleep 600"}`
	if text := string(body); strings.Contains(text, `"role":"tool"`) {
		name, input = "run_command", `{"command":"echo on > on.txt"}`
		if strings.Contains(text, "on.txt") {
			name, input = "finish", `{"summary":"went on"}`
		} else {
			m.heard <- text
		}
	}
	answer := fmt.Sprintf(`data: {"id":"c","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"%s","type":"function","function":{"name":%q,"arguments":%q}}]},"finish_reason":"tool_calls"}]}`,
		squad.NewID(), name, input)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(answer + "\n\ndata: [DONE]\n\n")),
	}, nil
}

// The built-in agent's tool ends, the model hears by whom, and the loop goes on.
func TestCancelCommand_ModelIsToldAndGoesOn(t *testing.T) {
	h := newHouse(t)
	m := model{make(chan string, 1)}
	h.models = m
	ada := h.member("Ada", "")
	ada.LLMProvider, ada.LLMModel, ada.Config.Agent = "openai", "x", squad.AgentLLM
	h.tx(func(tx *store.Tx) error { return tx.UpdateMember(t.Context(), &ada) })
	k := h.task("Do it", ada)
	e := h.start(k)
	h.cancelCommand(k, e)
	if text := <-m.heard; !strings.Contains(text, "cancelled by Joe while it ran") {
		t.Errorf("the model heard %s", text)
	}
	h.delivered(k, e, "on.txt", "on")
}
