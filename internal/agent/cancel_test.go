package agent_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/agent"
)

// running drives a turn and gives its result when it ends.
func running(t *testing.T, driver agent.Driver, turn agent.Turn, sink *memorySink) <-chan agent.Result {
	t.Helper()
	ended := make(chan agent.Result, 1)
	out := agent.NewStream(t.Context(), sink, squad.Event{}, 0)
	go func() {
		result, err := driver.Turn(t.Context(), turn, out)
		if err := out.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Error(err)
		}
		ended <- result
	}()
	return ended
}

// until waits for something that the sink was told.
func (s *memorySink) until(t *testing.T, is func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !is() {
		select {
		case <-s.wrote:
		case <-late:
			t.Fatal("it did not happen")
		}
	}
}

func cancelled(t *testing.T, driver agent.Driver, turn agent.Turn, want bool) {
	t.Helper()
	if found, err := driver.Cancel(t.Context(), turn, "Ada"); err != nil || found != want {
		t.Fatalf("found %v, %v; want %v", found, err, want)
	}
}

// The command ends, the model is told who ended it, and the loop goes on.
func TestLLM_CancelEndsTheCommandOnly(t *testing.T) {
	t.Parallel()
	var heard atomic.Bool
	models := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if !strings.Contains(string(body), `"role":"tool"`) {
			openAIStream(w, move{tool: "run_command", input: map[string]any{"command": "echo begun; sleep 600"}})
			return
		}
		heard.Store(strings.Contains(string(body), "begun") && strings.Contains(string(body), "cancelled by Ada while it ran"))
		openAIStream(w, move{tool: "finish", input: map[string]any{"summary": "went on without it"}})
	})
	driver, turn, sink := llmTurn(t, "openai", models)
	ended := running(t, driver, turn, sink)
	sink.until(t, func() bool { return strings.Contains(sink.log(t), "begun") })
	cancelled(t, driver, turn, true)
	if result := <-ended; result.Outcome != agent.Finished || result.Summary != "went on without it" || len(result.Commands) != 0 {
		t.Errorf("result %+v", result)
	}
	if !heard.Load() {
		t.Error("the model was not told")
	}
	calls := sink.calls(t)
	if len(calls) < 2 || calls[1].Status != "failed" || !strings.Contains(calls[1].Output, "cancelled by Ada") {
		t.Errorf("calls %+v", calls)
	}
}

func untilRunning(t *testing.T, sink *memorySink) {
	t.Helper()
	sink.until(t, func() bool {
		calls := sink.calls(t)
		return len(calls) > 0 && calls[len(calls)-1].Status == "running"
	})
}

// cancelRun cancels the command of an agent that says that it runs it.
func cancelRun(t *testing.T, driver agent.Driver, turn agent.Turn, run string) {
	t.Helper()
	turn.Execution.Liveness = squad.Liveness{State: "command", Detail: run}
	for { // the agent says that it starts it a moment before it does
		if found, err := driver.Cancel(t.Context(), turn, "Ada"); err != nil {
			t.Fatal(err)
		} else if found {
			return
		}
	}
}

// What the agent runs ends, the agent does not, and goes on.
func TestACP_CancelEndsTheCommandOnly(t *testing.T) {
	t.Parallel()
	const run = "sleep 6007"
	driver, turn, sink := acpTurn(t, map[string]string{"ACP_RUN": run})
	ended := running(t, driver, turn, sink)
	untilRunning(t, sink)
	cancelled(t, driver, turn, false) // nothing says that it runs a command
	cancelRun(t, driver, turn, run)
	result := <-ended
	if result.Outcome != agent.Finished || result.Summary != "I wrote it." {
		t.Errorf("result %+v", result)
	}
	if n := len(result.Commands); n != 1 || result.Commands[0].ExitCode == 0 || result.Commands[0].Command != run {
		t.Errorf("evidence %+v", result.Commands)
	}
}

// An agent that does not notice the end of its command is told, in the same session,
// and goes on; a server that comes back then does not tell it again.
func TestACP_CancelReachesAnAgentThatDoesNotNotice(t *testing.T) {
	t.Parallel()
	const run = "sleep 6008"
	gate := filepath.Join(t.TempDir(), "gate")
	driver, turn, sink := acpTurn(t, map[string]string{"ACP_RUN": run, "ACP_DEAF": "1", "ACP_GATE_AFTER": gate})
	driver.Patience = time.Millisecond
	first, leave := context.WithCancel(t.Context())
	out := agent.NewStream(first, sink, squad.Event{}, 0)
	left := make(chan error, 1)
	go func() { _, err := driver.Turn(first, turn, out); left <- err }()
	untilRunning(t, sink)
	cancelRun(t, driver, turn, run)
	sink.until(t, func() bool { return strings.Contains(sink.texts(t, squad.EventThought), "so be it") })
	leave()
	if err := <-left; err == nil {
		t.Fatal("the first reader did not notice its end")
	}
	result := joined(t, driver, turn, sink, gate)
	if result.Outcome != agent.Finished || result.Summary != "I went on." || result.Session != "s-1" {
		t.Errorf("result %+v", result)
	}
	if n := len(result.Commands); n != 1 || result.Commands[0].Command != run || result.Commands[0].ExitCode == 0 {
		t.Errorf("evidence %+v", result.Commands)
	}
	if got := sink.texts(t, squad.EventThought); got != "let me seeso be it" {
		t.Errorf("thought %q", got)
	}
	calls := sink.calls(t)
	if last := calls[len(calls)-1]; last.Status != "failed" || !strings.Contains(last.Output, "cancelled by Ada") {
		t.Errorf("call %+v", last)
	}
}

// A command that is the agent ends with its turn, which waits for a word.
func TestShell_CancelWaitsForAPerson(t *testing.T) {
	t.Parallel()
	driver, turn, sink := newTurn(t, "echo begun; sleep 600")
	ended := running(t, driver, turn, sink)
	sink.until(t, func() bool { return strings.Contains(sink.log(t), "begun") })
	cancelled(t, driver, turn, true)
	result := <-ended
	if result.Outcome != agent.Asked || result.Question != "The command was cancelled by Ada. What should happen next?" {
		t.Errorf("result %+v", result)
	}
	// It is said once: what fails by itself later is no cancel.
	turn.Member.Config.Command, turn.Number = "exit 3", 2
	if result = <-running(t, driver, turn, sink); result.Outcome != agent.Failed {
		t.Errorf("result %+v", result)
	}
}

func TestShell_CancelOfNothing(t *testing.T) {
	t.Parallel()
	driver, turn, sink := newTurn(t, "exit 3")
	cancelled(t, driver, turn, false)
	if result := <-running(t, driver, turn, sink); result.Outcome != agent.Failed || result.ExitCode != 3 {
		t.Errorf("result %+v", fmt.Sprint(result))
	}
}
