package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	squad "agentsquad"
)

// LLM is the built-in agent: a loop of model calls and tools. The loop runs in the
// server; only its tools run in the sandbox. What was said is kept in a file inside
// the sandbox after each step, so that a server that comes back goes on from the
// last whole one.
type LLM struct {
	// Dir is where turns keep their conversation inside the sandbox; default
	// /home/user/.squad.
	Dir string
	// Models is the way to the providers for a turn: through the gateway, which
	// adds the key, counts and refuses past the budget.
	Models func(t Turn) http.RoundTripper
	// Send writes a message to another member or to people.
	Send func(ctx context.Context, t Turn, to, kind, text string) error
	// MaxSteps bounds model calls of one turn for members that set none; default 100.
	MaxSteps int
}

// Bounds of a conversation.
const (
	maxContext  = 400_000 // characters kept before old tool output is dropped
	maxToolText = 30_000  // characters of one tool's output that the model sees
	modelTries  = 6
	maxPause    = 2 * time.Minute // before a model is asked again
	loopCalls   = 20              // the same call this often in a row is the end of the turn
)

// Turn implements [Driver].
func (l LLM) Turn(ctx context.Context, t Turn, out *Stream) (Result, error) {
	m, err := newModel(t, l.Models(t))
	if err != nil {
		return Result{}, err
	}
	loop := &llmLoop{LLM: l, ctx: ctx, turn: t, out: out, model: m, file: path.Join(runDir(l.Dir, t), "conversation.json")}
	if err := loop.load(); err != nil {
		return Result{}, err
	}
	steps := l.MaxSteps
	if t.Member.Config.MaxTurns > 0 {
		steps = t.Member.Config.MaxTurns
	}
	if steps <= 0 {
		steps = 100
	}
	for range steps {
		done, err := loop.step()
		if err != nil || done {
			return loop.state.Result, err
		}
	}
	return Result{Outcome: Stopped, Summary: fmt.Sprintf("no end after %d steps", steps), Commands: loop.state.Runs}, nil
}

// Stop implements [Driver]. The loop ends with its context; what remains is a
// command that one of its tools started.
func (LLM) Stop(ctx context.Context, t Turn) error { return kill(ctx, t) }

// llmLoop is one turn of the built-in agent.
type llmLoop struct {
	LLM
	ctx   context.Context // of the turn, for tools that a step runs
	turn  Turn
	out   *Stream
	model model
	file  string
	code  int // of the last command
	state llmState
}

// llmState is what is kept of a turn.
type llmState struct {
	Said []said     `json:"said"`
	Told int        `json:"told"` // entries of Said whose events are stored
	Runs []Evidence `json:"runs,omitempty"`
	// Last is the last call, Repeats how often it was made in a row.
	Last    string `json:"last,omitempty"`
	Repeats int    `json:"repeats,omitempty"`
	Done    bool   `json:"done,omitempty"`
	Result  Result `json:"result,omitzero"`
}

// said is one entry of the conversation.
type said struct {
	Role    string     `json:"role"` // user, assistant or tools
	Text    string     `json:"text,omitempty"`
	Calls   []toolUse  `json:"calls,omitempty"`
	Results []toolDone `json:"results,omitempty"`
}

type toolUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolDone struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"`
}

// load reads the conversation, of this turn where it was begun, else of the turn
// before, and adds the prompt.
func (l *llmLoop) load() error {
	state, err := l.readState(l.file)
	if err != nil || state != nil {
		if state != nil {
			l.state = *state
		}
		return err
	}
	if l.turn.Number > 1 {
		before := l.turn
		before.Number--
		past, err := l.readState(path.Join(runDir(l.Dir, before), "conversation.json"))
		if err != nil {
			return err
		}
		if past != nil {
			l.state.Said = past.Said
			l.answerOpen()
		}
	}
	l.state.Said = append(l.state.Said, said{Role: "user", Text: l.turn.Prompt})
	l.state.Told = len(l.state.Said)
	return l.save()
}

// answerOpen answers calls that a turn left open when it was stopped: providers
// refuse a conversation with a call that has no result.
func (l *llmLoop) answerOpen() {
	if len(l.state.Said) == 0 {
		return
	}
	var open []toolDone
	for _, c := range l.state.Said[len(l.state.Said)-1].Calls {
		open = append(open, toolDone{ID: c.ID, Text: "not run: the turn was stopped", Error: true})
	}
	if len(open) > 0 {
		l.state.Said = append(l.state.Said, said{Role: "tools", Results: open})
	}
}

func (l *llmLoop) readState(file string) (*llmState, error) {
	r, err := l.turn.Box.Open(l.ctx, file, 0)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil, nil //nolint:nilnil // no conversation yet is an answer
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var s llmState
	if err := json.NewDecoder(io.LimitReader(r, 64<<20)).Decode(&s); err != nil {
		return nil, fmt.Errorf("read conversation: %w", err)
	}
	return &s, nil
}

func (l *llmLoop) save() error {
	raw, err := json.Marshal(l.state)
	if err != nil {
		return fmt.Errorf("encode conversation: %w", err)
	}
	if err := l.turn.Box.Write(l.ctx, l.file, raw); err != nil {
		return fmt.Errorf("keep conversation: %w", err)
	}
	return nil
}

// step asks the model once, or runs the tools it asked for.
func (l *llmLoop) step() (done bool, err error) {
	if l.state.Done {
		return true, nil
	}
	last := l.state.Said[len(l.state.Said)-1]
	if last.Role != "assistant" {
		return false, l.ask()
	}
	if len(last.Calls) == 0 { // it spoke and asked for nothing: that is the end
		l.end(Result{Outcome: Finished, Summary: last.Text})
		return true, l.save()
	}
	results := make([]toolDone, 0, len(last.Calls))
	for _, c := range last.Calls {
		if l.loops(c) {
			l.end(Result{Outcome: Stopped, ExitCode: -1, Summary: fmt.Sprintf("the model looped: %s with the same input %d times in a row", c.Name, loopCalls)})
			return true, l.save()
		}
		results = append(results, l.use(c))
	}
	l.state.Said = append(l.state.Said, said{Role: "tools", Results: results})
	l.hear()
	return l.state.Done, l.save()
}

// hear takes messages that arrived meanwhile into the conversation.
func (l *llmLoop) hear() {
	for {
		select {
		case m := <-l.turn.Inbox:
			l.state.Said = append(l.state.Said, said{Role: "user", Text: "Message: " + m.Body})
		default:
			return
		}
	}
}

func (l *llmLoop) end(r Result) {
	r.Commands = l.state.Runs
	l.state.Done, l.state.Result = true, r
}

// ask calls the model and keeps its answer. Failures of the network and of the
// provider are tried again; a refusal by budget or rule is the end of the turn.
func (l *llmLoop) ask() error {
	l.shrink()
	for try := 1; ; try++ {
		id := fmt.Sprintf("%d.%d.%d", l.turn.Number, len(l.state.Said), try)
		answer, err := l.model.ask(l.ctx, systemPrompt(l.turn), l.state.Said, func(text string) {
			l.out.Emit(squad.EventMessage, squad.Text{ID: id, Text: text})
		})
		if err == nil && answer.Text == "" && len(answer.Calls) == 0 {
			err = errors.New("the model's answer is empty")
		}
		if err == nil {
			l.state.Said = append(l.state.Said, answer)
			l.state.Told = len(l.state.Said)
			return l.save()
		}
		var refused *modelError
		if errors.As(err, &refused) && !refused.again() {
			l.end(Result{Outcome: Failed, ExitCode: -1, Summary: refused.message})
			return l.save()
		}
		if try == modelTries || l.ctx.Err() != nil {
			return squad.Wrap(squad.CodeProvider, err, "the model did not answer")
		}
		if err := l.pause(try, err, refused); err != nil {
			return err
		}
	}
}

// pause waits before the model is asked again: as long as it says, else longer each
// time.
func (l *llmLoop) pause(try int, err error, refused *modelError) error {
	wait := min(time.Second<<(try-1), maxPause)
	if refused != nil && refused.after > 0 {
		wait = refused.after
	}
	l.out.Emit(squad.EventLog, squad.LogChunk{
		Stream: "system", Text: fmt.Sprintf("the model did not answer (%s); it is asked again in %s\n", Redact(tail(err.Error(), 500)), wait),
	})
	select {
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	case <-time.After(wait):
		return nil
	}
}

// size is how much of a conversation's bound an entry takes.
func (s said) size() int {
	n := len(s.Text)
	for _, c := range s.Calls {
		n += len(c.Input)
	}
	for _, r := range s.Results {
		n += len(r.Text)
	}
	return n
}

// shrink keeps the conversation in bounds: the output and the input of old tools go
// first, what was said and done stays; then the oldest steps go altogether. The
// task and the last steps are never touched.
func (l *llmLoop) shrink() {
	size := 0
	for _, s := range l.state.Said {
		size += s.size()
	}
	const recent = 6
	for i := 0; i < len(l.state.Said)-recent && size > maxContext; i++ {
		s := &l.state.Said[i]
		before := s.size()
		for j := range s.Results {
			if r := &s.Results[j]; len(r.Text) > 200 {
				r.Text = strings.ToValidUTF8(r.Text[:40], "") + " [older output dropped]"
			}
		}
		for j := range s.Calls {
			if c := &s.Calls[j]; len(c.Input) > 200 {
				c.Input = json.RawMessage(`{"dropped":"older input"}`)
			}
		}
		size -= before - s.size()
	}
	for size > maxContext && len(l.state.Said) > recent+3 && l.state.Said[1].Role == "assistant" && l.state.Said[2].Role == "tools" {
		size -= l.state.Said[1].size() + l.state.Said[2].size()
		l.state.Said = append(l.state.Said[:1], l.state.Said[3:]...)
	}
}

// loops notes a call and says whether the model makes the same one again and again.
func (l *llmLoop) loops(c toolUse) bool {
	if same := c.Name + " " + string(c.Input); same != l.state.Last {
		l.state.Last, l.state.Repeats = same, 0
	}
	l.state.Repeats++
	return l.state.Repeats >= loopCalls
}

// systemPrompt is the member's, or that of its role.
func systemPrompt(t Turn) string {
	text := t.Member.SystemPrompt
	if text == "" {
		text = RolePrompt(t.Member.Role)
	}
	return text + "\n\nYou work in a sandbox, in the git repository at " + t.Dir + ". Use the tools. Look before you change, test what you changed, " +
		"and call finish with a short summary when the task is done. Commit messages are conventional commits. You have no credentials and need none."
}

// RolePrompt is the prompt that ships for a role.
func RolePrompt(role string) string {
	switch role {
	case "reviewer":
		return "You review code: correctness first, then clarity. Be specific, name file and line, and propose the change."
	case "tester":
		return "You write and run tests. Find the cases that break, and leave a test for each."
	case squad.RoleProjectManager:
		return "You plan and unblock. Break work into small tasks with clear ends, and answer questions of the squad."
	}
	return "You are a careful software developer. You make the smallest change that does it well, in the style of the code around it."
}
