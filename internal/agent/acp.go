package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"
	"time"
)

// ACP drives agents that speak the Agent Client Protocol on standard input and
// output.
//
// The protocol's types are the SDK's; the connection is ours, because it must
// outlive us: each turn is one process whose requests have fixed numbers, and
// whose whole output is kept in a file. A server that comes back reads that file
// from the start, knows from the answers in it what was asked already, and goes on
// from there without repeating an event.
type ACP struct {
	// Dir is where turns keep their output inside the sandbox; default
	// /home/user/.squad.
	Dir string
	// Patience is how long an agent may take to notice that its command was
	// cancelled before its prompt is; default 5 s.
	Patience time.Duration
}

// acpScript is startScript for a program that is spoken to. What it prints on
// standard error is kept apart: it is no part of the protocol.
const acpScript = `mkdir -p "$1" && mkdir "$1/once" 2>/dev/null || exit 97
echo $$ > "$1/pid"
cd "$2" || { echo 126 > "$1/exit"; exit 126; }
{ bash -lc "$3" 2>"$1/err"; echo $? > "$1/code"; } | tee "$1/out"
mv "$1/code" "$1/exit"
exit "$(cat "$1/exit")"`

// Turn implements [Driver].
func (a ACP) Turn(ctx context.Context, t Turn, out *Stream) (Result, error) {
	p, err := presetOf(t.Member, t.Env["SQUAD_GATEWAY"], t.May != nil)
	if err != nil {
		return Result{}, err
	}
	dir := runDir(a.Dir, t)
	for name, text := range p.files {
		if err := t.Box.Write(ctx, name, []byte(text)); err != nil {
			return Result{}, fmt.Errorf("write settings of agent: %w", err)
		}
	}
	env := environment(t, dir)
	maps.Copy(env, p.env)
	bounded, end := context.WithCancelCause(ctx)
	defer end(nil)
	s := newACPSession(bounded, t, dir, out)
	s.end = end
	code, err := t.Box.Run(bounded, Command{
		Argv: []string{"/bin/sh", "-c", acpScript, "squad-acp", dir, t.Dir, p.check() + p.command},
		Env:  env, Tag: tag(t), Stdin: true, Detach: true, Started: s.begin, Output: func(_ bool, b []byte) { s.take(b) },
	})
	if err == nil && code == exitStarted {
		if err = s.rejoin(); err == nil {
			code, err = join(bounded, t, dir, 0, s.take, s.taken)
		}
	}
	if result, done := s.finished(); done {
		return result, nil
	}
	failure := s.failure()
	var broken *protocolError
	if errors.As(failure, &broken) {
		return Result{Outcome: Failed, ExitCode: -1, Summary: broken.Error()}, kill(ctx, t)
	}
	if err = errors.Join(err, failure); err != nil {
		return Result{}, err
	}
	return ended(ctx, t, dir, s.lastWords(), code), nil
}

// Stop implements [Driver].
func (ACP) Stop(ctx context.Context, t Turn) error { return kill(ctx, t) }

// ended is the result of a program that ended before it answered: what it said on
// standard error tells most.
func ended(ctx context.Context, t Turn, dir, words string, code int) Result {
	r := Result{Outcome: Failed, ExitCode: code, Summary: words}
	if code == exitKilled {
		r.Outcome = Stopped
	}
	f, err := t.Box.Open(ctx, path.Join(dir, "err"), 0)
	if err != nil {
		return r
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 256<<10)) // what could be read is better than nothing
	if said := strings.TrimSpace(clean(string(text))); said != "" {
		r.Summary = Redact(tail(said, 500))
	}
	return r
}

// protocolError says that the agent does not speak the protocol as agreed. Another
// try would not go better.
type protocolError struct{ what string }

func (e *protocolError) Error() string { return "the agent does not speak ACP: " + e.what }

func errProtocol(format string, args ...any) error {
	return &protocolError{Redact(tail(fmt.Sprintf(format, args...), 500))}
}
