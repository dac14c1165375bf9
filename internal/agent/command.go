package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	squad "agentsquad"
)

// Shell drives agents of kind command: any shell command, run in the checkout
// with the task in its environment and in a file. A line of output that is a
// JSON object with a "squad" key is an event, for example
//
//	{"squad":"thought","text":"the parser drops the last line"}
//
// with squad one of message, thought, question, plan and tool_call; every other
// line is log.
type Shell struct {
	// Dir is where turns keep their output inside the sandbox; default
	// /home/user/.squad.
	Dir string
}

// runDir is where a turn keeps its output inside the sandbox.
func runDir(base string, t Turn) string {
	if base == "" {
		base = "/home/user/.squad"
	}
	return path.Join(base, t.Execution.ID, strconv.Itoa(t.Number))
}

// tag names a turn's process inside the sandbox.
func tag(t Turn) string { return fmt.Sprintf("turn-%s-%d", t.Execution.ID, t.Number) }

// startScript runs a command once per directory. Output goes to a file and to
// whoever listens, so that a later listener finds all of it; a file that only one can
// make (-C) decides who starts it, so that a second try joins instead. Each program that it starts costs
// time in a sandbox, so that it does what it can itself. Arguments: directory, which
// exists, working directory, command. Exit 97 says that it was started before.
const startScript = `set -C; true 2>/dev/null > "$1/once" || exit 97; set +C
echo $$ > "$1/pid"
cd "$2" || { echo 126 > "$1/exit"; exit 126; }
{ bash -lc "$3" </dev/null; echo $? > "$1/code"; } 2>&1 | tee "$1/out"
code=1; read -r code < "$1/code"
echo "$code" > "$1/exit"
exit "$code"`

// joinScript prints the output of a started command from an offset on, waits for
// its end and exits as it did. Exit 98 says that its process is gone and left no
// exit code: it was killed. Arguments: directory, offset.
const joinScript = `for i in 1 2 3 4 5 6 7 8 9 10; do [ -f "$1/pid" ] && [ -f "$1/out" ] && break; sleep 0.1; done
[ -s "$1/exit" ] || tail -s 0.1 -c "+$(($2 + 1))" -f --pid="$(cat "$1/pid")" "$1/out" 2>/dev/null
[ -s "$1/exit" ] || exit 98
exit "$(cat "$1/exit")"`

const (
	exitStarted = 97
	exitKilled  = 98
)

// Turn implements [Driver].
func (s Shell) Turn(ctx context.Context, t Turn, out *Stream) (Result, error) {
	command := strings.TrimSpace(t.Member.Config.Command)
	if command == "" {
		return Result{}, squad.Errorf(squad.CodeRule, "member %s has no command: set config.command", t.Member.Name)
	}
	dir := runDir(s.Dir, t)
	if err := writeTask(ctx, t, dir); err != nil {
		return Result{}, err
	}
	bounded, tooMuch := context.WithCancelCause(ctx)
	defer tooMuch(nil)
	read := &lines{out: out, before: out.Position(), tooMuch: func() { tooMuch(errTooMuch) }}
	code, err := t.Box.Run(bounded, Command{
		Argv: []string{"/bin/sh", "-c", startScript, "squad-turn", dir, t.Dir, command},
		Env:  environment(t, dir), Tag: tag(t), Detach: true,
		Output: func(_ bool, b []byte) { read.take(b) },
	})
	if err == nil && code == exitStarted {
		code, err = join(bounded, t, dir, out.Position(), read.take, func() int64 { return read.taken })
	}
	read.end()
	if errors.Is(context.Cause(bounded), errTooMuch) {
		return Result{Outcome: Stopped, ExitCode: -1, Summary: errTooMuch.Error()}, kill(ctx, t)
	}
	if err != nil {
		return Result{}, err
	}
	result := read.result(code)
	if code != 0 {
		by, err := cancelledBy(ctx, s.Dir, t)
		if err != nil {
			return Result{}, err
		}
		if by != "" {
			result.Outcome, result.Question = Asked, "The command was cancelled by "+by+". What should happen next?"
		}
	}
	return result, nil
}

// join follows a turn that was started before: its output from an offset on, as it
// comes, and how it ended. taken says how many bytes were handed on so far.
func join(ctx context.Context, t Turn, dir string, from int64, take func([]byte), taken func() int64) (int, error) {
	code, err := t.Box.Run(ctx, Command{
		Argv:   []string{"/bin/sh", "-c", joinScript, "squad-join", dir, strconv.FormatInt(from, 10)},
		Output: func(_ bool, b []byte) { take(b) },
	})
	if err != nil {
		return 0, err
	}
	// The end of the output may have been written between the last look of tail
	// and the end of the process, or all of it before we came.
	rest, err := t.Box.Open(ctx, path.Join(dir, "out"), from+taken())
	if squad.CodeOf(err) == squad.CodeNotFound {
		return code, nil
	}
	if err != nil {
		return 0, err
	}
	defer rest.Close()
	if _, err := io.Copy(writerFunc(take), rest); err != nil {
		return 0, fmt.Errorf("read rest of output: %w", err)
	}
	return code, nil
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// Stop implements [Driver].
func (Shell) Stop(ctx context.Context, t Turn) error { return kill(ctx, t) }

// kill ends a turn's process at once with everything it started: tools of agents run
// in sessions of their own, which a polite signal to the agent would leave behind.
func kill(ctx context.Context, t Turn) error {
	_, err := t.Box.Signal(ctx, tag(t), "KILL")
	return err
}

// letGo ends an agent that has answered and waits for more: asked first, then killed.
func letGo(ctx context.Context, t Turn) error {
	for _, signal := range []string{"TERM", "KILL"} {
		found, err := t.Box.Signal(ctx, tag(t), signal)
		if err != nil || !found {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(2 * time.Second):
		}
	}
	return nil
}

// writeTask puts the task where a program finds it without parsing an
// environment.
func writeTask(ctx context.Context, t Turn, dir string) error {
	task, err := json.MarshalIndent(map[string]any{
		"number": t.Task.Number, "title": t.Task.Title, "description": t.Task.Description, "branch": t.Execution.GitBranch,
		"turn": t.Number, "prompt": t.Prompt, "role": t.Member.Role, "member": t.Member.Name,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode task: %w", err)
	}
	if err := t.Box.Write(ctx, path.Join(dir, "task.json"), task); err != nil {
		return fmt.Errorf("write task file: %w", err)
	}
	return nil
}

// environment is what every agent process finds: the task, and no secret.
func environment(t Turn, dir string) map[string]string {
	env := map[string]string{
		"SQUAD_TASK_NUMBER": strconv.FormatInt(t.Task.Number, 10), "SQUAD_TASK_TITLE": t.Task.Title,
		"SQUAD_TASK_DESCRIPTION": tail(t.Task.Description, 16<<10), "SQUAD_TASK_FILE": path.Join(dir, "task.json"),
		"SQUAD_PROMPT": tail(t.Prompt, 32<<10), "SQUAD_TURN": strconv.Itoa(t.Number), "SQUAD_BRANCH": t.Execution.GitBranch,
		"SQUAD_MEMBER": t.Member.Name, "SQUAD_ROLE": t.Member.Role,
	}
	for k, v := range t.Member.Config.Env {
		env[k] = v
	}
	for k, v := range t.Env {
		env[k] = v
	}
	return env
}

// maxLine bounds a line that may be an event; longer ones are log.
const maxLine = 64 << 10

// maxOutput bounds what a turn may print: a program without end would fill the
// sandbox's disk, and nobody reads that much.
const maxOutput = 64 << 20

var errTooMuch = fmt.Errorf("the agent printed more than %d MiB", maxOutput>>20)

// lines splits output into lines, takes the events out and logs the rest.
type lines struct {
	out      *Stream
	tooMuch  func() // ends the turn
	before   int64  // read by earlier readers
	taken    int64
	partial  []byte
	question string
	summary  string
	runs     []Evidence
}

func (l *lines) take(b []byte) {
	if l.taken += int64(len(b)); l.before+l.taken > maxOutput {
		l.tooMuch()
		return
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		switch {
		case i >= 0:
			line := append(l.partial, b[:i+1]...)
			l.partial, b = nil, b[i+1:]
			l.line(line)
		case len(l.partial) == 0 && b[0] != '{':
			l.out.Log("stdout", b) // cannot be an event: show it without waiting for the line's end
			return
		default:
			l.partial = append(l.partial, b...)
			if len(l.partial) > maxLine {
				l.end()
			}
			return
		}
	}
}

// end takes what is left without a line's end.
func (l *lines) end() {
	if len(l.partial) > 0 {
		l.out.Log("stdout", l.partial)
		l.partial = nil
	}
}

func (l *lines) line(line []byte) {
	if kind, payload, err := parseEvent(line); err == nil {
		l.out.Advance(len(line))
		l.note(kind, payload)
		l.out.Emit(kind, payload)
		return
	}
	if text := strings.TrimSpace(clean(string(line))); text != "" {
		l.summary = tail(text, 500)
	}
	l.out.Log("stdout", line)
}

func (l *lines) note(kind squad.EventType, payload any) {
	switch p := payload.(type) {
	case squad.Text:
		if kind == squad.EventQuestion {
			l.question = p.Text
		}
		if kind == squad.EventMessage {
			l.summary = p.Text
		}
	case squad.ToolCall:
		if p.ExitCode != nil && p.Command != "" && len(l.runs) < 500 {
			l.runs = append(l.runs, Evidence{Command: p.Command, ExitCode: *p.ExitCode})
		}
	}
}

func (l *lines) result(code int) Result {
	r := Result{Outcome: Finished, Summary: Redact(l.summary), Question: l.question, ExitCode: code, Commands: l.runs}
	switch {
	case code == exitKilled:
		r.Outcome = Stopped
	case code != 0:
		r.Outcome = Failed
	case l.question != "":
		r.Outcome = Asked
	}
	return r
}

var errNoEvent = errors.New("line is no event")

func parseEvent(line []byte) (squad.EventType, any, error) {
	if len(line) == 0 || line[0] != '{' || !bytes.Contains(line, []byte(`"squad"`)) {
		return "", nil, errNoEvent
	}
	var head struct {
		Squad squad.EventType `json:"squad"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return "", nil, errNoEvent
	}
	switch head.Squad {
	case squad.EventMessage, squad.EventThought, squad.EventQuestion:
		p, err := decode[squad.Text](line)
		return head.Squad, p, err
	case squad.EventToolCall:
		p, err := decode[squad.ToolCall](line)
		return head.Squad, p, err
	case squad.EventPlan:
		p, err := decode[squad.Plan](line)
		return head.Squad, p, err
	}
	return "", nil, errNoEvent
}

func decode[T any](line []byte) (v T, err error) {
	err = json.Unmarshal(line, &v)
	return v, err
}
