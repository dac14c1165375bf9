package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/agent"
)

// hostBox runs programs on this machine: real processes, so that joining one that
// outlived its reader is tested as it happens in a sandbox.
type hostBox struct {
	mu     sync.Mutex
	tagged map[string]*exec.Cmd
	over   map[*exec.Cmd]bool
	inputs map[string]io.Writer
}

func (b *hostBox) Run(ctx context.Context, c agent.Command) (int, error) {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, os.Environ()
	for k, v := range c.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var in io.Writer
	if c.Stdin {
		if in, err = cmd.StdinPipe(); err != nil {
			return 0, err
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	b.mu.Lock()
	if old := b.tagged[c.Tag]; old == nil || b.over[old] {
		b.tagged[c.Tag] = cmd
		if in != nil {
			b.inputs[c.Tag] = in
		}
	}
	b.mu.Unlock()
	if c.Started != nil {
		c.Started()
	}
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := out.Read(buf)
			if n > 0 && ctx.Err() == nil {
				c.Output(false, buf[:n])
			}
			if err != nil {
				break
			}
		}
		err := cmd.Wait()
		b.mu.Lock()
		b.over[cmd] = true
		b.mu.Unlock()
		done <- err
	}()
	select {
	case <-ctx.Done(): // the reader leaves, the process goes on
		return 0, ctx.Err()
	case <-done:
		return cmd.ProcessState.ExitCode(), nil
	}
}

func (b *hostBox) Open(_ context.Context, path string, offset int64) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, squad.NotFound("file", path)
	}
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	return f, err
}

func (b *hostBox) Write(_ context.Context, path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func (b *hostBox) Signal(_ context.Context, tag, signal string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cmd := b.tagged[tag]
	if cmd == nil {
		return false, nil
	}
	number := syscall.SIGTERM
	if signal == "KILL" {
		number = syscall.SIGKILL
	}
	return syscall.Kill(-cmd.Process.Pid, number) == nil, nil
}

func (b *hostBox) Input(_ context.Context, tag string, data []byte) error {
	b.mu.Lock()
	in := b.inputs[tag]
	b.mu.Unlock()
	if in == nil {
		return squad.NotFound("process", tag)
	}
	_, err := in.Write(data)
	return err
}

// memorySink keeps events and the position of the last write, as the store does.
type memorySink struct {
	mu       sync.Mutex
	events   []squad.Event
	position int64
	wrote    chan struct{}
}

func (s *memorySink) WriteTurn(ctx context.Context, events []squad.Event, position int64) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, events...)
	s.position = position
	select {
	case s.wrote <- struct{}{}:
	default:
	}
	return nil
}

func (s *memorySink) log(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all strings.Builder
	for _, e := range s.events {
		if e.Type != squad.EventLog {
			continue
		}
		var c squad.LogChunk
		if err := json.Unmarshal(e.Payload, &c); err != nil {
			t.Fatal(err)
		}
		all.WriteString(c.Text)
	}
	return all.String()
}

func newTurn(t *testing.T, command string) (agent.Shell, agent.Turn, *memorySink) {
	t.Helper()
	dir := t.TempDir()
	return agent.Shell{Dir: filepath.Join(dir, "run")}, agent.Turn{
		Number: 1, Dir: dir, Box: &hostBox{tagged: map[string]*exec.Cmd{}, over: map[*exec.Cmd]bool{}, inputs: map[string]io.Writer{}},
		Execution: squad.Execution{ID: squad.NewID()}, Task: squad.Task{Number: 7, Title: "Say hello"},
		Member: squad.Member{Name: "Ada", Config: squad.MemberConfig{Command: command}},
	}, &memorySink{wrote: make(chan struct{}, 1)}
}

func TestShell_ExitCodeAndEventsAreTold(t *testing.T) {
	t.Parallel()
	shell, turn, sink := newTurn(t, `
echo working on "$SQUAD_TASK_TITLE"
echo '{"squad":"thought","text":"hm"}'
echo '{"squad":"tool_call","id":"1","title":"test","kind":"execute","status":"completed","command":"make test","exit_code":2}'
echo '{"not":"ours"}'
exit 3`)
	out := agent.NewStream(t.Context(), sink, squad.Event{}, 0)
	result, err := shell.Turn(t.Context(), turn, out)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if result.Outcome != agent.Failed || result.ExitCode != 3 {
		t.Errorf("result %+v", result)
	}
	if len(result.Commands) != 1 || result.Commands[0].ExitCode != 2 {
		t.Errorf("evidence %+v", result.Commands)
	}
	if got, want := sink.log(t), "working on Say hello\n{\"not\":\"ours\"}\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

// A server that dies in the middle of a turn must find all of the output after
// its restart: what it had not stored, and what came while it was away.
func TestShell_SecondReaderMissesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	shell, turn, sink := newTurn(t, fmt.Sprintf(`
for i in 1 2 3; do echo "line $i"; done
while [ ! -e %s ]; do sleep 0.05; done
for i in 4 5 6; do echo "line $i"; done; exit 4`, gate))

	first, cancel := context.WithCancel(t.Context())
	out := agent.NewStream(first, sink, squad.Event{}, 0)
	left := make(chan error, 1)
	go func() { _, err := shell.Turn(first, turn, out); left <- err }()
	<-sink.wrote // something was stored; now the server dies
	cancel()
	if err := <-left; err == nil {
		t.Fatal("the first reader did not notice its end")
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	again := agent.NewStream(t.Context(), sink, squad.Event{}, sink.position)
	result, err := shell.Turn(t.Context(), turn, again)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n"
	if got := sink.log(t); got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	if result.ExitCode != 4 {
		t.Errorf("exit code %d, want 4", result.ExitCode)
	}
	// A third reader, after all is over, gets the same end and no output.
	before := len(sink.events)
	third := agent.NewStream(t.Context(), sink, squad.Event{}, sink.position)
	if result, err = shell.Turn(t.Context(), turn, third); err != nil || result.ExitCode != 4 {
		t.Errorf("third reader: %+v, %v", result, err)
	}
	if third.Close(t.Context()); len(sink.events) != before {
		t.Errorf("output was told twice")
	}
}

func TestStream_HostileOutputIsMadeHarmless(t *testing.T) {
	t.Parallel()
	sink := &memorySink{wrote: make(chan struct{}, 1)}
	out := agent.NewStream(t.Context(), sink, squad.Event{}, 0)
	out.Log("stdout", []byte("begun \x1b]0;here \x1b\x01]1;there \x1b[31mred\x1b[0m \x1b\n"))
	out.Log("stdout", []byte("bad \xff utf8, nul \x00, title \x1b]0;owned\x07 token ghp_abcdefghijklmnopqrstuvwxyz0123456789 end\n"))
	out.Log("stdout", []byte("split tok"))
	out.Log("stdout", []byte("en sk-ant-abcdefghijkl"))
	out.Log("stdout", []byte("mnopqrstuvwxyz0123 caf\xc3"))
	out.Log("stdout", []byte("\xa9\n"))
	out.Log("stdout", bytes.Repeat([]byte("x"), 1<<20)) // one endless line
	if err := out.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := sink.log(t)
	for _, bad := range []string{"\x00", "\xff", "\x1b]", "owned", "ghp_", "sk-ant"} {
		if strings.Contains(log, bad) {
			t.Errorf("log contains %q", bad)
		}
	}
	if !strings.Contains(log, "café\n") {
		t.Error("a character split over two pieces was broken")
	}
	for _, e := range sink.events {
		if len(e.Payload) > 64<<10 {
			t.Errorf("an event of %d bytes", len(e.Payload))
		}
	}
}

func TestStream_EndlessOutputIsCut(t *testing.T) {
	t.Parallel()
	sink := &memorySink{wrote: make(chan struct{}, 1)}
	out := agent.NewStream(t.Context(), sink, squad.Event{}, 0)
	chunk := bytes.Repeat([]byte("0123456789abcde\n"), 1024)
	for range 2048 { // 32 MiB
		out.Log("stdout", chunk)
	}
	if err := out.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := sink.log(t)
	if len(log) > 17<<20 || !strings.Contains(log, "is not kept") {
		t.Errorf("kept %d bytes", len(log))
	}
	if out.Position() != 32<<20 {
		t.Errorf("position %d", out.Position())
	}
}
