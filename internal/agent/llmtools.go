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

// llmTool is something that the model may do.
type llmTool struct {
	name, description string
	kind              string
	properties        map[string]any
	required          []string
	run               func(*llmLoop, toolInput) (string, error)
}

// toolInput holds what the model gave. All tools share one shape.
type toolInput struct {
	Command, Path, Text, Old, New, Pattern, Message, To, Question, Summary string
	TimeoutSec                                                             int `json:"timeout_sec"`
	Offset, Limit                                                          int
}

func str(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

func num(description string) map[string]any {
	return map[string]any{"type": "integer", "description": description}
}

// llmTools are the tools of the built-in agent.
var llmTools = []llmTool{
	{"run_command", "Run a shell command in the repository.", "execute", map[string]any{"command": str("a line for bash"), "timeout_sec": num("300 by default")}, []string{"command"}, (*llmLoop).runCommand},
	{"read_file", "Read a file, with line numbers.", "read", map[string]any{"path": str("path"), "offset": num("first line, from 1"), "limit": num("number of lines")}, []string{"path"}, (*llmLoop).readFile},
	{"write_file", "Write a whole file.", "edit", map[string]any{"path": str("path"), "text": str("content")}, []string{"path", "text"}, (*llmLoop).writeFile},
	{"edit_file", "Replace one piece of a file. The old text must be there exactly once.", "edit", map[string]any{"path": str("path"), "old": str("text to replace"), "new": str("new text")}, []string{"path", "old", "new"}, (*llmLoop).editFile},
	{"search", "Search the repository for a regular expression.", "search", map[string]any{"pattern": str("extended regular expression"), "path": str("folder or file")}, []string{"pattern"}, (*llmLoop).search},
	{"list_files", "List files that git knows, or all in a folder.", "search", map[string]any{"path": str("folder")}, nil, (*llmLoop).list},
	{"git_status", "Show the state of the checkout.", "read", map[string]any{}, nil, git("git", "status", "--short", "--branch")},
	{"git_diff", "Show uncommitted changes.", "read", map[string]any{}, nil, git("git", "--no-pager", "diff", "HEAD")},
	{"git_commit", "Commit all changes with a conventional commit message.", "execute", map[string]any{"message": str("for example: fix(parser): keep the last line")}, []string{"message"}, (*llmLoop).commit},
	{"ask", "Ask a person a question and wait for the answer. Use it only when you cannot go on.", "other", map[string]any{"question": str("the question")}, []string{"question"}, (*llmLoop).askPerson},
	{"write_member", "Write to another member of the squad.", "other", map[string]any{"to": str("name of the member"), "text": str("the message")}, []string{"to", "text"}, (*llmLoop).writeMember},
	{"finish", "Say that the task is done.", "other", map[string]any{"summary": str("what was done, in a few sentences")}, []string{"summary"}, (*llmLoop).finish},
}

// use runs one tool and tells it.
func (l *llmLoop) use(c toolUse) toolDone {
	var in toolInput
	i := -1
	for j, t := range llmTools {
		if t.name == c.Name {
			i = j
		}
	}
	if i < 0 {
		return toolDone{ID: c.ID, Text: "there is no tool " + c.Name, Error: true}
	}
	tool := llmTools[i]
	if strings.HasPrefix(string(c.Input), invalidInput) {
		return toolDone{ID: c.ID, Text: "the input is no whole JSON object", Error: true}
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return toolDone{ID: c.ID, Text: "the input is not right: " + err.Error(), Error: true}
	}
	call := squad.ToolCall{ID: c.ID, Title: title(tool.name, in), Kind: tool.kind, Status: "running", Command: in.Command, Input: c.Input}
	if in.Path != "" {
		call.Paths = []string{in.Path}
	}
	l.out.Emit(squad.EventToolCall, call)
	start := time.Now()
	text, err := tool.run(l, in)
	call.Status, call.DurationMS, call.Output = "completed", time.Since(start).Milliseconds(), text
	if err != nil {
		call.Status, text = "failed", strings.TrimSpace(text+"\n"+err.Error())
		call.Output = text
	}
	if in.Command != "" && err == nil {
		code := l.code
		call.ExitCode = &code
	}
	l.out.Emit(squad.EventToolCall, call)
	return toolDone{ID: c.ID, Text: Redact(cut(text, maxToolText)), Error: err != nil}
}

func title(name string, in toolInput) string {
	for _, what := range []string{in.Command, in.Path, in.Pattern, in.Message, in.Question, in.To, in.Summary} {
		if what != "" {
			return name + " " + tail(strings.SplitN(what, "\n", 2)[0], 120)
		}
	}
	return name
}

// cut keeps the beginning and the end of a long text.
func cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	half := max / 2
	return strings.ToValidUTF8(text[:half], "") + fmt.Sprintf("\n… %d characters left out …\n", len(text)-max) + strings.ToValidUTF8(text[len(text)-half:], "")
}

// maxPrinted bounds what one tool may print before it is stopped.
const maxPrinted = 16 << 20

// shell runs a program in the checkout and returns its output.
func (l *llmLoop) shell(timeout time.Duration, argv ...string) (string, int, error) {
	ctx, stop := context.WithCancelCause(l.ctx)
	defer stop(nil)
	var b bytes.Buffer
	printed := 0
	code, err := l.turn.Box.Run(ctx, Command{
		Argv: argv, Dir: l.turn.Dir, Env: l.turn.Env, Tag: tag(l.turn), Timeout: timeout,
		Output: func(_ bool, p []byte) {
			if printed += len(p); printed > maxPrinted {
				stop(errPrinted)
				return
			}
			if b.Len() < 1<<20 {
				b.Write(p)
			}
			l.out.Log("stdout", p)
		},
	})
	if errors.Is(context.Cause(ctx), errPrinted) {
		err = errPrinted
	}
	if err == nil && code != 0 {
		var by string
		if by, err = cancelledBy(l.ctx, l.Dir, l.turn); by != "" {
			err = squad.Errorf(squad.CodeConflict, "cancelled by %s while it ran: go on without it, and do not simply run it again", by)
		}
	}
	return clean(b.String()), code, err
}

var errPrinted = squad.Errorf(squad.CodeTooLarge, "stopped: it printed more than %d MiB", maxPrinted>>20)

func (l *llmLoop) runCommand(in toolInput) (string, error) {
	if l.turn.May != nil {
		if err := l.turn.May(l.ctx, in.Command); err != nil {
			return "", err
		}
	}
	timeout := 5 * time.Minute
	if in.TimeoutSec > 0 {
		timeout = min(time.Duration(in.TimeoutSec)*time.Second, time.Hour)
	}
	text, code, err := l.shell(timeout, "bash", "-lc", in.Command)
	if err != nil {
		return text, err
	}
	if l.code = code; len(l.state.Runs) < 500 {
		l.state.Runs = append(l.state.Runs, Evidence{Command: tail(in.Command, 500), ExitCode: code})
	}
	return text + "\n[exit code " + strconv.Itoa(code) + "]", nil
}

func (l *llmLoop) abs(p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(l.turn.Dir, p)
}

func (l *llmLoop) content(p string) (string, error) {
	r, err := l.turn.Box.Open(l.ctx, l.abs(p), 0)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, 4<<20))
	if err == nil && bytes.IndexByte(data, 0) >= 0 {
		err = squad.Invalid("path", "%s is not a text file", p)
	}
	return string(data), err
}

func (l *llmLoop) readFile(in toolInput) (string, error) {
	text, err := l.content(in.Path)
	if err != nil {
		return "", err
	}
	lines := strings.Split(text, "\n")
	from := max(in.Offset, 1)
	to := len(lines)
	if in.Limit > 0 {
		to = min(to, from-1+in.Limit)
	}
	var b strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintf(&b, "%6d\t%s\n", n, lines[n-1])
	}
	return b.String(), nil
}

func (l *llmLoop) writeFile(in toolInput) (string, error) {
	if err := l.turn.Box.Write(l.ctx, l.abs(in.Path), []byte(in.Text)); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d characters to %s", len(in.Text), in.Path), nil
}

func (l *llmLoop) editFile(in toolInput) (string, error) {
	text, err := l.content(in.Path)
	if err != nil {
		return "", err
	}
	switch n := strings.Count(text, in.Old); {
	case in.Old == "" || n == 0:
		return "", squad.Invalid("old", "the old text is not in %s", in.Path)
	case n > 1:
		return "", squad.Invalid("old", "the old text is %d times in %s; give more of what is around it", n, in.Path)
	}
	return l.writeFile(toolInput{Path: in.Path, Text: strings.Replace(text, in.Old, in.New, 1)})
}

func (l *llmLoop) search(in toolInput) (string, error) {
	where := in.Path
	if where == "" {
		where = "."
	}
	text, code, err := l.shell(time.Minute, "grep", "-rnEI", "--exclude-dir=.git", "-m", "200", "-e", in.Pattern, "--", where)
	if err == nil && code > 1 {
		err = squad.Invalid("pattern", "grep ended with %d", code)
	}
	if text == "" && err == nil {
		return "nothing found", nil
	}
	return text, err
}

func (l *llmLoop) list(in toolInput) (string, error) {
	argv := []string{"git", "ls-files", "--cached", "--others", "--exclude-standard"}
	if in.Path != "" {
		argv = []string{"ls", "-la", "--", in.Path}
	}
	text, _, err := l.shell(time.Minute, argv...)
	return text, err
}

func git(argv ...string) func(*llmLoop, toolInput) (string, error) {
	return func(l *llmLoop, _ toolInput) (string, error) {
		text, _, err := l.shell(time.Minute, argv...)
		return text, err
	}
}

func (l *llmLoop) commit(in toolInput) (string, error) {
	if text, code, err := l.shell(time.Minute, "git", "add", "-A"); err != nil || code != 0 {
		return text, err
	}
	text, code, err := l.shell(time.Minute, "git", "commit", "-q", "-m", in.Message)
	if err == nil && code != 0 {
		err = squad.Errorf(squad.CodeConflict, "git commit ended with %d", code)
	}
	return text, err
}

func (l *llmLoop) askPerson(in toolInput) (string, error) {
	l.out.Emit(squad.EventQuestion, squad.Text{Text: in.Question})
	l.end(Result{Outcome: Asked, Question: in.Question, Summary: in.Question})
	return "asked; the answer comes as the next message", nil
}

func (l *llmLoop) writeMember(in toolInput) (string, error) {
	if l.Send == nil {
		return "", squad.Errorf(squad.CodeUnavailable, "messages cannot be sent here")
	}
	if err := l.Send(l.ctx, l.turn, in.To, "note", in.Text); err != nil {
		return "", err
	}
	return "sent", nil
}

func (l *llmLoop) finish(in toolInput) (string, error) {
	l.end(Result{Outcome: Finished, Summary: in.Summary})
	return "done", nil
}
