package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	squad "agentsquad"
	"agentsquad/internal/agent"
)

// TestMain makes this program an ACP agent when it is asked to be one: the SDK's own
// agent side, so that our client side is tested against code we did not write.
func TestMain(m *testing.M) {
	if os.Getenv("ACP_AGENT") == "1" {
		a := &testAgent{}
		a.conn = acp.NewAgentSideConnection(a, os.Stdout, os.Stdin)
		<-a.conn.Done()
		return
	}
	os.Exit(m.Run())
}

// testAgent asks for permission, thinks, edits a file, speaks, and ends.
type testAgent struct {
	acp.Agent
	conn *acp.AgentSideConnection
	dir  string
}

func (a *testAgent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AgentCapabilities: acp.AgentCapabilities{LoadSession: os.Getenv("ACP_LOAD") == "1"}}, nil
}

func (a *testAgent) NewSession(_ context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	a.dir = r.Cwd
	return acp.NewSessionResponse{SessionId: "s-1"}, nil
}

// LoadSession tells the past again, as agents do, and knows not every session.
func (a *testAgent) LoadSession(ctx context.Context, r acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	_ = a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: r.SessionId, Update: acp.UpdateAgentMessageText("old words")})
	if r.SessionId == "gone" {
		return acp.LoadSessionResponse{}, errors.New("no such session")
	}
	a.dir = r.Cwd
	if os.Getenv("ACP_LATE") == "1" { // as Gemini CLI 0.61
		go func() {
			time.Sleep(50 * time.Millisecond) // the answer goes first
			_ = a.conn.SessionUpdate(context.WithoutCancel(ctx), acp.SessionNotification{SessionId: r.SessionId, Update: acp.UpdateAgentMessageText("older words")})
		}()
	}
	return acp.LoadSessionResponse{}, nil
}

func (a *testAgent) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	tell := func(u acp.SessionUpdate) {
		_ = a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: r.SessionId, Update: u})
	}
	if text := r.Prompt[0].Text.Text; strings.Contains(text, "was cancelled by Ada") {
		tell(acp.UpdateAgentThoughtText("so be it"))
		waitFor(os.Getenv("ACP_GATE_AFTER"))
		tell(acp.UpdateAgentMessageText("I went on."))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	tell(acp.UpdateAgentThoughtText("let me see"))
	id := acp.ToolCallId("call-1")
	tell(acp.StartToolCall(id, "write hi.txt", acp.WithStartKind(acp.ToolKindExecute), acp.WithStartStatus(acp.ToolCallStatusPending),
		acp.WithStartRawInput(map[string]any{"command": "echo hi > hi.txt"})))
	got, err := a.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: r.SessionId, ToolCall: acp.ToolCallUpdate{ToolCallId: id},
		Options: []acp.PermissionOption{{Kind: acp.PermissionOptionKindRejectOnce, Name: "no", OptionId: "no"}, {Kind: acp.PermissionOptionKindAllowOnce, Name: "yes", OptionId: "yes"}},
	})
	if err != nil || got.Outcome.Selected == nil || got.Outcome.Selected.OptionId != "yes" {
		return acp.PromptResponse{StopReason: acp.StopReasonRefusal}, nil
	}
	if err := os.WriteFile(filepath.Join(a.dir, "hi.txt"), []byte("hi\n"), 0o644); err != nil {
		return acp.PromptResponse{}, err
	}
	waitFor(os.Getenv("ACP_GATE"))
	code := 0
	if run := os.Getenv("ACP_RUN"); run != "" {
		tell(acp.UpdateToolCall(id, acp.WithUpdateStatus(acp.ToolCallStatusInProgress), acp.WithUpdateRawInput(map[string]any{"command": run})))
		cmd := exec.CommandContext(ctx, "bash", "-c", "eval '"+run+"' && pwd")
		_ = cmd.Run()
		code = cmd.ProcessState.ExitCode()
	}
	if os.Getenv("ACP_DEAF") == "1" { // as OpenCode 1.18 where a signal ended the command
		<-ctx.Done()
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
	tell(acp.UpdateToolCall(id, acp.WithUpdateStatus(acp.ToolCallStatusCompleted), acp.WithUpdateRawOutput(map[string]any{"exit_code": code})))
	for _, word := range []string{"I ", "wrote ", "it."} {
		tell(acp.UpdateAgentMessageText(word))
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// waitFor waits for a file, where one is named.
func waitFor(gate string) {
	for ; gate != ""; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(gate); err == nil {
			return
		}
	}
}

func (a *testAgent) Cancel(context.Context, acp.CancelNotification) error { return nil }

func acpTurn(t *testing.T, env map[string]string) (agent.ACP, agent.Turn, *memorySink) {
	t.Helper()
	_, turn, sink := newTurn(t, "")
	turn.Member.Config.Command = "exec " + os.Args[0]
	turn.Prompt = "say hi"
	turn.Env = map[string]string{"ACP_AGENT": "1"}
	for k, v := range env {
		turn.Env[k] = v
	}
	return agent.ACP{Dir: filepath.Join(turn.Dir, ".squad")}, turn, sink
}

func (s *memorySink) texts(t *testing.T, kind squad.EventType) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all strings.Builder
	for _, e := range s.events {
		if e.Type != kind {
			continue
		}
		var p squad.Text
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			t.Fatal(err)
		}
		all.WriteString(p.Text)
	}
	return all.String()
}

func (s *memorySink) calls(t *testing.T) []squad.ToolCall {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []squad.ToolCall
	for _, e := range s.events {
		if e.Type == squad.EventToolCall {
			var c squad.ToolCall
			if err := json.Unmarshal(e.Payload, &c); err != nil {
				t.Fatal(err)
			}
			out = append(out, c)
		}
	}
	return out
}

func TestACP_TurnBecomesTypedEvents(t *testing.T) {
	t.Parallel()
	driver, turn, sink := acpTurn(t, nil)
	out := agent.NewStream(t.Context(), sink, squad.Event{}, 0)
	result, err := driver.Turn(t.Context(), turn, out)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if result.Outcome != agent.Finished || result.Summary != "I wrote it." || result.Session != "s-1" {
		t.Errorf("result %+v", result)
	}
	if len(result.Commands) != 1 || result.Commands[0].Command != "echo hi > hi.txt" {
		t.Errorf("evidence %+v", result.Commands)
	}
	if sink.texts(t, squad.EventThought) != "let me see" || sink.texts(t, squad.EventMessage) != "I wrote it." {
		t.Errorf("said %q, thought %q", sink.texts(t, squad.EventMessage), sink.texts(t, squad.EventThought))
	}
	if calls := sink.calls(t); len(calls) != 2 || calls[1].Status != "completed" || calls[1].Command != "echo hi > hi.txt" {
		t.Errorf("calls %+v", calls)
	}
	if data, err := os.ReadFile(filepath.Join(turn.Dir, "hi.txt")); err != nil || string(data) != "hi\n" {
		t.Errorf("file %q, %v", data, err)
	}
}

// joined opens the gate that the agent waits at, and reads its turn to the end as a
// server does that comes back.
func joined(t *testing.T, driver agent.Driver, turn agent.Turn, sink *memorySink, gate string) agent.Result {
	t.Helper()
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	again := agent.NewStream(t.Context(), sink, squad.Event{}, sink.position)
	result, err := driver.Turn(t.Context(), turn, again)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return result
}

// A server that dies while the agent works joins it again: no second prompt, no
// event twice, none missed.
func TestACP_SecondReaderContinuesTheConversation(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	driver, turn, sink := acpTurn(t, map[string]string{"ACP_GATE": gate})
	first, cancel := context.WithCancel(t.Context())
	out := agent.NewStream(first, sink, squad.Event{}, 0)
	left := make(chan error, 1)
	go func() { _, err := driver.Turn(first, turn, out); left <- err }()
	<-sink.wrote
	cancel()
	if err := <-left; err == nil {
		t.Fatal("the first reader did not notice its end")
	}
	result := joined(t, driver, turn, sink, gate)
	if result.Outcome != agent.Finished || result.Summary != "I wrote it." {
		t.Errorf("result %+v", result)
	}
	if sink.texts(t, squad.EventThought) != "let me see" || sink.texts(t, squad.EventMessage) != "I wrote it." {
		t.Errorf("said %q, thought %q", sink.texts(t, squad.EventMessage), sink.texts(t, squad.EventThought))
	}
}

// A loaded session's past is not told again, and one that is not there any more,
// because the sandbox is another, is begun anew.
func TestACP_SessionIsLoadedOrBegunAnew(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{"s-0": "s-0", "gone": "s-1"} {
		driver, turn, sink := acpTurn(t, map[string]string{"ACP_LOAD": "1"})
		turn.Session = before
		out := agent.NewStream(t.Context(), sink, squad.Event{}, 0)
		result, err := driver.Turn(t.Context(), turn, out)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if result.Outcome != agent.Finished || result.Session != after {
			t.Errorf("result %+v", result)
		}
		if got := sink.texts(t, squad.EventMessage); got != "I wrote it." {
			t.Errorf("said %q", got)
		}
	}
}

// Nor is a past that comes after the answer, also to a reader that comes back.
func TestACP_HistoryThatComesLateIsNotTheNewTurn(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	driver, turn, sink := acpTurn(t, map[string]string{"ACP_LOAD": "1", "ACP_LATE": "1", "ACP_GATE": gate})
	turn.Session = "s-0"
	first, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	out := agent.NewStream(first, sink, squad.Event{}, 0)
	go func() { _, err := driver.Turn(first, turn, out); left <- err }()
	<-sink.wrote
	cancel()
	<-left
	result := joined(t, driver, turn, sink, gate)
	if result.Outcome != agent.Finished || result.Summary != "I wrote it." {
		t.Errorf("result %+v", result)
	}
	if got := sink.texts(t, squad.EventMessage); got != "I wrote it." {
		t.Errorf("said %q", got)
	}
}

// An agent that talks no protocol and never ends a line is stopped.
func TestACP_EndlessMessageIsABreach(t *testing.T) {
	t.Parallel()
	driver, turn, sink := acpTurn(t, nil)
	turn.Member.Config.Command = "yes x | tr -d '\\n'"
	result, err := driver.Turn(t.Context(), turn, agent.NewStream(t.Context(), sink, squad.Event{}, 0))
	if err != nil || result.Outcome != agent.Failed || !strings.Contains(result.Summary, "larger than 16 MiB") {
		t.Errorf("result %+v, %v", result, err)
	}
}

func TestACP_MissingProgramNamesTheRemedy(t *testing.T) {
	t.Parallel()
	driver, turn, sink := acpTurn(t, nil)
	turn.Member.Config = squad.MemberConfig{Preset: "gemini"}
	turn.Box = noWrite{turn.Box}
	turn.Env["PATH"] = "/usr/bin:/bin"
	result, err := driver.Turn(t.Context(), turn, agent.NewStream(t.Context(), sink, squad.Event{}, 0))
	if err != nil || result.Outcome != agent.Failed || !strings.Contains(result.Summary, "npm install --prefix ./agents @google/gemini-cli && squad templates add") {
		t.Errorf("result %+v, %v", result, err)
	}
}

// noWrite keeps a preset's settings out of this machine's /home/user.
type noWrite struct{ agent.Box }

func (b noWrite) Write(ctx context.Context, path string, data []byte) error {
	if strings.HasPrefix(path, "/home/user/") {
		return nil
	}
	return b.Box.Write(ctx, path, data)
}
