package e2b_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
)

func TestRun_CollectsOutputAndExitCode(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		res, err := sb.Commands.Run(t.Context(), `echo out; echo "$WORD" >&2`, e2b.CommandOptions{Env: map[string]string{"WORD": "err"}})
		if err != nil || res.Stdout != "out\n" || res.Stderr != "err\n" || res.ExitCode != 0 {
			t.Errorf("run = %+v, %v", res, err)
		}
		res, err = sb.Commands.Run(t.Context(), "echo reason >&2; exit 3", e2b.CommandOptions{})
		var exit *e2b.CommandExitError
		if !errors.As(err, &exit) || exit.ExitCode != 3 || exit.Stderr != "reason\n" || res.ExitCode != 3 {
			t.Errorf("exit = %+v, %v", res, err)
		}
		if _, err := sb.Commands.Run(t.Context(), "true", e2b.CommandOptions{Dir: "/no/such/place"}); !errors.Is(err, e2b.ErrInvalid) {
			t.Errorf("missing directory: %v", err)
		}
		if _, err := sb.Commands.Run(t.Context(), "true", e2b.CommandOptions{User: "nobody-at-all"}); !errors.Is(err, e2b.ErrUnauthorized) {
			t.Errorf("unknown user: %v", err)
		}
	})
}

func TestRun_ArgumentsAreNotShellText(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		res, err := sb.Commands.Run(t.Context(), "/bin/echo", e2b.CommandOptions{Args: []string{"$HOME;", "`id`"}})
		if err != nil || res.Stdout != "$HOME; `id`\n" {
			t.Errorf("run = %+v, %v", res, err)
		}
	})
}

func TestRun_StreamsMuchOutputInOrderWithoutKeepingIt(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		got, want := sha256.New(), sha256.New()
		for i := range 2_000_000 {
			fmt.Fprintf(want, "%d\n", i)
		}
		res, err := sb.Commands.Run(t.Context(), "seq 0 1999999", e2b.CommandOptions{Stdout: got})
		if err != nil || res.Stdout != "" || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Errorf("streamed output differs: %v, kept %d bytes", err, len(res.Stdout))
		}
		res, err = sb.Commands.Run(t.Context(), "seq 0 99999", e2b.CommandOptions{MaxOutput: 12})
		if err != nil || res.Stdout != "99998\n99999\n" || !res.Truncated {
			t.Errorf("tail = %+v, %v", res, err)
		}
	})
}

func TestRun_InputIsCopiedAndClosed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		text := strings.Repeat("hello\n", 20_000)
		res, err := sb.Commands.Run(t.Context(), "wc -c", e2b.CommandOptions{Stdin: strings.NewReader(text)})
		if err != nil || strings.TrimSpace(res.Stdout) != fmt.Sprint(len(text)) {
			t.Errorf("run = %+v, %v", res, err)
		}
	})
}

func TestRun_TimeoutEndsTheCommand(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		_, err := sb.Commands.Run(t.Context(), "exec sleep 600", e2b.CommandOptions{Timeout: 300 * time.Millisecond, Tag: "slow"})
		if !errors.Is(err, e2b.ErrTimeout) {
			t.Errorf("err = %v", err)
		}
		waitFor(t, "the command to be gone", func() bool {
			list, err := sb.Commands.List(t.Context())
			return err == nil && len(list) == 0
		})
	})
}

func TestRun_EndOfContextKillsTheCommand(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		ctx, cancel := context.WithCancel(t.Context())
		out := writerFunc(func(b []byte) { cancel() })
		if _, err := sb.Commands.Run(ctx, "echo started; exec sleep 600", e2b.CommandOptions{Stdout: out}); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		waitFor(t, "the command to be gone", func() bool {
			list, err := sb.Commands.List(t.Context())
			return err == nil && len(list) == 0
		})
	})
}

func TestStart_SurvivesItsReaderAndCanBeJoined(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a deadline must not become the process's lifetime
		defer cancel()
		p, err := sb.Commands.Start(ctx, "while read -r x; do echo got $x; done; exit 4", e2b.CommandOptions{OpenStdin: true, Tag: "loop"})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		list, err := sb.Commands.List(ctx)
		if err != nil || len(list) != 1 || list[0].PID != p.PID() || list[0].Tag != "loop" {
			t.Fatalf("list = %+v, %v", list, err)
		}
		joined, err := sb.Commands.ConnectTag(ctx, "loop", e2b.CommandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(joined, "one\n"); err != nil {
			t.Fatal(err)
		}
		if err := joined.CloseStdin(ctx); err != nil {
			t.Fatal(err)
		}
		res, err := joined.Wait()
		var exit *e2b.CommandExitError
		if !errors.As(err, &exit) || exit.ExitCode != 4 || res.Stdout != "got one\n" {
			t.Errorf("joined = %+v, %v", res, err)
		}
	})
}

func TestSignal_EndsAProcess(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		p, err := sb.Commands.Start(t.Context(), "exec sleep 600", e2b.CommandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(t.Context(), e2b.SIGTERM); err != nil {
			t.Fatal(err)
		}
		var exit *e2b.CommandExitError
		if _, err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode != -1 || !strings.Contains(err.Error(), "terminated") {
			t.Errorf("wait = %v", err)
		}
		if found, err := sb.Commands.Kill(t.Context(), p.PID()); found || err != nil {
			t.Errorf("kill of an ended process = %v, %v", found, err)
		}
	})
}

func TestSandboxGone_EndsStreamsAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *e2btest.Server, sb *e2b.Sandbox) {
		p, err := sb.Commands.Start(t.Context(), "echo here; exec sleep 600", e2b.CommandOptions{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill(context.WithoutCancel(t.Context()))
		s.Vanish(sb.ID)
		if _, err := p.Wait(); !errors.Is(err, e2b.ErrSandboxGone) {
			t.Errorf("stream of a dead sandbox: %v", err)
		}
		if _, err := sb.Commands.Run(t.Context(), "true", e2b.CommandOptions{}); !errors.Is(err, e2b.ErrSandboxGone) {
			t.Errorf("command in a dead sandbox: %v", err)
		}
		if _, err := sb.Files.Stat(t.Context(), "."); !errors.Is(err, e2b.ErrSandboxGone) {
			t.Errorf("file of a dead sandbox: %v", err)
		}
		if _, err := sb.Files.ReadAll(t.Context(), "x"); !errors.Is(err, e2b.ErrSandboxGone) {
			t.Errorf("content of a dead sandbox: %v", err)
		}
	})
}

func TestPty_IsATerminalWithASize(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		term, err := sb.Pty.Start(t.Context(), e2b.PtyOptions{
			Size: e2b.Size{Cols: 100, Rows: 30}, Cmd: "/bin/sh", Args: []string{"-c", `stty size; read -r x; stty size; echo "bye $x"`},
		})
		if err != nil {
			t.Fatal(err)
		}
		screen := &strings.Builder{}
		readUntil(t, term, screen, "30 100")
		if err := term.Resize(t.Context(), e2b.Size{Cols: 77, Rows: 11}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(term, "now\n"); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(term)
		if err != nil || !strings.Contains(string(rest), "11 77") || !strings.Contains(string(rest), "bye now") {
			t.Errorf("screen = %q, %v", rest, err)
		}
		if _, err := term.Wait(); err != nil {
			t.Errorf("wait = %v", err)
		}
	})
}

func readUntil(t *testing.T, r io.Reader, to *strings.Builder, want string) {
	t.Helper()
	buf := make([]byte, 1024)
	for !strings.Contains(to.String(), want) {
		n, err := r.Read(buf)
		to.Write(buf[:n])
		if err != nil {
			t.Fatalf("read until %q: %v, got %q", want, err, to)
		}
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}
