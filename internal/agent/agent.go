package agent

import (
	"context"
	"io"
	"time"

	squad "agentsquad"
)

// Driver runs turns of one kind of agent. It is safe for concurrent use.
type Driver interface {
	// Turn runs t to its end, or joins it where it runs already. The error says
	// that the turn could not be driven (the sandbox was lost, the program is not
	// there); an agent that ran and failed is a [Result].
	//
	// When ctx ends the process in the sandbox goes on; see [Driver.Stop].
	Turn(ctx context.Context, t Turn, out *Stream) (Result, error)
	// Stop ends the turn's process and everything it started. Stopping what does
	// not run is no error.
	Stop(ctx context.Context, t Turn) error
	// Cancel ends only the command that the agent runs now, in the name of by, and
	// reports whether there was one. The turn goes on, unless the command is the
	// agent itself: then it waits for a word from a person.
	Cancel(ctx context.Context, t Turn, by string) (bool, error)
}

// Turn is one prompt to an agent and all the work it does on it.
type Turn struct {
	Number    int // from 1; a number names the turn within its execution for ever
	Task      squad.Task
	Execution squad.Execution
	Member    squad.Member
	Dir       string // the checkout inside the sandbox
	Prompt    string
	// Session continues the conversation of an earlier turn; from [Result].
	Session string
	// Env is added to the agent's environment. It holds addresses, never secrets.
	Env map[string]string
	Box Box
	// May says whether a command is within the squad's policy: nil, or the rule
	// that refuses it. Nil where there is no policy.
	May func(ctx context.Context, command string) error
	// Inbox gives messages that arrive while the turn runs. May be nil.
	Inbox <-chan squad.Message
}

// Outcome says how a turn ended.
type Outcome string

// The outcomes. None of them says that the work is good.
const (
	Finished Outcome = "finished" // the agent says it is done
	Asked    Outcome = "asked"    // it wants an answer from a person
	Failed   Outcome = "failed"   // it ended with an error
	Stopped  Outcome = "stopped"  // it was stopped, or reached a bound
)

// Result is how a turn ended.
type Result struct {
	Outcome  Outcome    `json:"outcome"`
	Summary  string     `json:"summary,omitempty"` // the agent's last words, bounded
	Question string     `json:"question,omitempty"`
	ExitCode int        `json:"exit_code"`
	Session  string     `json:"session,omitempty"`
	Commands []Evidence `json:"commands,omitempty"`
}

// Evidence is a command that was seen to run, and how it ended.
type Evidence struct {
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
}

// Box is the sandbox as drivers need it.
type Box interface {
	// Run runs a program to its end and hands on its output. It returns the exit
	// code of a program that ran, and an error only where it did not. With
	// Detach the program survives ctx and the connection.
	Run(ctx context.Context, c Command) (exitCode int, err error)
	// Open reads a file from the given offset on.
	Open(ctx context.Context, path string, offset int64) (io.ReadCloser, error)
	// Write makes a file with its directories.
	Write(ctx context.Context, path string, data []byte) error
	// Signal sends a signal (TERM or KILL) to the process with a tag; it reports
	// whether there was one.
	Signal(ctx context.Context, tag, signal string) (bool, error)
	// Input writes to the standard input of the process with a tag.
	Input(ctx context.Context, tag string, data []byte) error
}

// Command is a program to run in a [Box].
type Command struct {
	Argv    []string
	Dir     string
	Env     map[string]string
	Tag     string        // names the process inside the sandbox
	Stdin   bool          // keep standard input open for [Box.Input]
	Detach  bool          // survives ctx and the server
	Timeout time.Duration // 0 is none
	// Output is called with each piece of output, one at a time; it must not
	// keep the bytes.
	Output func(stderr bool, b []byte)
	// Started is called once, when the program runs. May be nil.
	Started func()
}
