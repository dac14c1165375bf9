package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"agentsquad"
	"agentsquad/internal/api"
	"agentsquad/internal/store"
)

// shells runs the commands of sandboxes as processes of the test.
type shells struct{ api.Sandboxes }

func (shells) Stream(ctx context.Context, _ squad.Actor, _ string, in squad.Command, streams squad.Streams) (squad.CommandResult, error) {
	if in.Shell == "refused" {
		return squad.CommandResult{}, squad.Errorf(squad.CodeRule, "command refused")
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", in.Shell)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.Stdin, streams.Stdout, streams.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return squad.CommandResult{ExitCode: cmd.ProcessState.ExitCode()}, err
}

func TestExec_JoinsTheStreamsOfACommand(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *api.Config) { c.Ports.Sandboxes = shells{} })
	crew, _ := h.squad("crew")
	box := squad.Sandbox{SquadID: crew.ID, Provider: "local", Template: "base", Status: squad.SandboxRunning}
	if err := h.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.CreateSandbox(t.Context(), &box) }); err != nil {
		t.Fatal(err)
	}
	input, typed := io.Pipe()
	output, shown := io.Pipe()
	var errs bytes.Buffer
	type end struct {
		res squad.CommandResult
		err error
	}
	ended := make(chan end, 1)
	go func() {
		res, err := h.admin.Exec(t.Context(), box.ID, squad.Command{Shell: "echo err >&2; cat; exit 3"}, squad.Streams{Stdin: input, Stdout: shown, Stderr: &errs})
		_ = shown.Close()
		ended <- end{res, err}
	}()
	// Each piece comes back before the next is sent: nothing waits for the end.
	for _, piece := range []string{"one\n", "\x00\xff binary", strings.Repeat("x", 100_000)} {
		go func() { _, _ = io.WriteString(typed, piece) }()
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(output, got); err != nil || string(got) != piece {
			t.Fatalf("sent %.20q, got %.20q, %v", piece, got, err)
		}
	}
	_ = typed.Close()
	if e := <-ended; e.err != nil || e.res.ExitCode != 3 || errs.String() != "err\n" {
		t.Errorf("ended with %+v, errors %q", e, errs.String())
	}
	if _, err := h.admin.Exec(t.Context(), box.ID, squad.Command{Shell: "refused"}, squad.Streams{}); squad.CodeOf(err) != squad.CodeRule {
		t.Errorf("a refused command: %v", err)
	}
	guest := h.person("guest", false)
	if _, err := guest.Exec(t.Context(), box.ID, squad.Command{Shell: "true"}, squad.Streams{}); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("a stranger ran a command: %v", err)
	}
}
