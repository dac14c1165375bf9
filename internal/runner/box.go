package runner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/agent"
	"agentsquad/internal/git"
	"agentsquad/internal/sandbox"
)

// box is a sandbox as agents and git see it: a place where programs run.
type box struct{ sb *e2b.Sandbox }

var (
	_ agent.Box = box{}
	_ git.Exec  = gitExec{}

	_ git.Writer = gitExec{}
)

// Run implements [agent.Box].
func (b box) Run(ctx context.Context, c agent.Command) (int, error) {
	p, err := b.sb.Commands.Start(ctx, c.Argv[0], e2b.CommandOptions{
		Args: append([]string{}, c.Argv[1:]...), Env: c.Env, Dir: c.Dir, Tag: c.Tag, Timeout: c.Timeout, OpenStdin: c.Stdin,
		Stdout: output(func(p []byte) { c.Output(false, p) }, c.Output == nil), Stderr: output(func(p []byte) { c.Output(true, p) }, c.Output == nil),
	})
	if err != nil {
		return 0, explain(err)
	}
	if c.Started != nil {
		c.Started()
	}
	res, err := p.Wait()
	if err != nil && ctx.Err() != nil && !c.Detach {
		kill(ctx, p)
	}
	return exitCode(res, err)
}

// Open implements [agent.Box].
func (b box) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	r, err := b.sb.Files.Read(ctx, path, e2b.ReadOptions{Offset: offset})
	var refused *e2b.Error
	if errors.As(err, &refused) && refused.Status == http.StatusRequestedRangeNotSatisfiable {
		return io.NopCloser(strings.NewReader("")), nil // nothing is behind the offset yet
	}
	if err != nil {
		return nil, explain(err)
	}
	return r, nil
}

// Write implements [agent.Box].
func (b box) Write(ctx context.Context, path string, data []byte) error {
	_, err := b.sb.Files.WriteAll(ctx, path, data)
	return explain(err)
}

// Signal implements [agent.Box].
func (b box) Signal(ctx context.Context, tag, signal string) (bool, error) {
	pid, found, err := b.find(ctx, tag)
	if err != nil || !found {
		return false, err
	}
	number := e2b.SIGTERM
	if signal == "KILL" {
		number = e2b.SIGKILL
	}
	err = b.sb.Commands.Signal(ctx, pid, number)
	if errors.Is(err, e2b.ErrNotFound) {
		return false, nil
	}
	return err == nil, explain(err)
}

// Input implements [agent.Box].
func (b box) Input(ctx context.Context, tag string, data []byte) error {
	pid, found, err := b.find(ctx, tag)
	if err != nil {
		return err
	}
	if !found {
		return squad.NotFound("process", tag)
	}
	return explain(b.sb.Commands.SendStdin(ctx, pid, data))
}

func (b box) find(ctx context.Context, tag string) (uint32, bool, error) {
	list, err := b.sb.Commands.List(ctx)
	if err != nil {
		return 0, false, explain(err)
	}
	for _, p := range list {
		if p.Tag == tag {
			return p.PID, true, nil
		}
	}
	return 0, false, nil
}

// gitExec runs git in a sandbox.
type gitExec struct{ sb *e2b.Sandbox }

// Run implements [git.Exec].
func (g gitExec) Run(ctx context.Context, c git.Command) (int, error) {
	env := make(map[string]string, len(c.Env))
	for _, pair := range c.Env {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	quiet := c.Output == nil
	p, err := g.sb.Commands.Start(ctx, c.Argv[0], e2b.CommandOptions{
		Args: append([]string{}, c.Argv[1:]...), Env: env, Dir: c.Dir, Stdin: c.Stdin,
		Stdout: output(func(p []byte) { c.Output(git.Stdout, p) }, quiet), Stderr: output(func(p []byte) { c.Output(git.Stderr, p) }, quiet),
	})
	if err != nil {
		return -1, explain(err)
	}
	res, err := p.Wait()
	if err != nil && ctx.Err() != nil {
		kill(ctx, p)
		return -1, context.Cause(ctx)
	}
	return exitCode(res, err)
}

// WriteFiles implements [git.Writer].
func (g gitExec) WriteFiles(ctx context.Context, files []git.File) error {
	_, err := g.sb.Files.WriteMany(ctx, func(yield func(string, io.Reader) bool) {
		for _, f := range files {
			if !yield(f.Path, bytes.NewReader(f.Data)) {
				return
			}
		}
	})
	return explain(err)
}

func kill(ctx context.Context, p *e2b.Process) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = p.Kill(end) // the sandbox may be gone, and the process with it
}

func exitCode(res *e2b.Result, err error) (int, error) {
	var exit *e2b.CommandExitError
	if errors.As(err, &exit) {
		return exit.ExitCode, nil
	}
	if err != nil {
		return -1, explain(err)
	}
	return res.ExitCode, nil
}

// output hands output on; a nil receiver drops it.
func output(f func([]byte), drop bool) io.Writer {
	if drop {
		return io.Discard
	}
	return writerFunc(f)
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// errSandboxLost is the cause of a step that failed because its sandbox is gone.
var errSandboxLost = errors.New("sandbox was lost")

// explain translates what the E2B client says.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, e2b.ErrSandboxGone), errors.Is(err, sandbox.ErrGone):
		return squad.Wrap(squad.CodeProvider, errors.Join(errSandboxLost, err), "the sandbox was lost")
	case errors.Is(err, e2b.ErrNotFound):
		return squad.Wrap(squad.CodeNotFound, err, "not there in the sandbox")
	case errors.Is(err, e2b.ErrTimeout):
		return squad.Wrap(squad.CodeTimeout, err, "the sandbox did not answer in time")
	}
	return err
}
