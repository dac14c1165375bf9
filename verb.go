package squad

import (
	"io"
	"time"
)

// SandboxRequest asks for a sandbox outside the recipe of an execution.
type SandboxRequest struct {
	SquadID      string            `json:"squad_id" doc:"The squad that pays for it"`
	MemberID     string            `json:"member_id,omitempty" doc:"The member that will own it"`
	TaskID       string            `json:"task_id,omitempty"`
	RepositoryID string            `json:"repository_id,omitempty" doc:"Repository to have a checkout of"`
	Provider     string            `json:"provider,omitempty" enum:",local,e2b" doc:"Empty means the squad's or the installation's"`
	Template     string            `json:"template,omitempty" maxLength:"200"`
	TimeoutSec   int               `json:"timeout_sec,omitempty" minimum:"0" maximum:"86400" doc:"Lifetime; 0 means the installation's"`
	Env          map[string]string `json:"env,omitempty" doc:"Environment; never secrets"`
}

// Command is a program to run in a sandbox. Shell text goes to bash -lc as one
// argument; it is never assembled from other input.
type Command struct {
	Shell      string            `json:"command" minLength:"1" maxLength:"65536"`
	Dir        string            `json:"cwd,omitempty" maxLength:"4096"`
	User       string            `json:"user,omitempty" maxLength:"64"`
	Env        map[string]string `json:"env,omitempty"`
	TimeoutSec int               `json:"timeout_sec,omitempty" minimum:"0" maximum:"86400" doc:"0 means 5 minutes"`
}

// CommandResult is how a command ended. Output is bounded; Truncated says that
// the beginning was dropped.
type CommandResult struct {
	ExitCode   int    `json:"exit_code"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	Truncated  bool   `json:"truncated,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Error      string `json:"error,omitempty" doc:"Why it did not run to its end, for example a timeout"`
}

// ExecEnd is the last word about a command whose streams were joined to ours: how
// it ended, or why it was not run.
type ExecEnd struct {
	CommandResult
	Code   Code   `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// FileInfo describes a file in a sandbox.
type FileInfo struct {
	Name       string    `json:"name"`
	Path       string    `json:"path"`
	Type       string    `json:"type" enum:"file,dir,symlink,other"`
	Size       int64     `json:"size"`
	Mode       string    `json:"mode,omitempty"`
	Target     string    `json:"target,omitempty" doc:"Where a symlink points"`
	ModifiedAt time.Time `json:"modified_at,omitzero"`
}

// Terminal is an interactive shell in a sandbox. Close ends the shell.
type Terminal interface {
	io.ReadWriteCloser
	// Resize tells the shell the size of the screen.
	Resize(cols, rows int) error
}

// Streams are the standard streams of a command. A nil one is empty or dropped.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// PoolState is the state of one warm pool: of a template, or of what was prepared
// from it for a key.
type PoolState struct {
	Provider string `json:"provider"`
	Template string `json:"template"`
	Key      string `json:"key,omitempty" doc:"What the sandboxes are prepared for, say a commit of a repository"`
	Waiting  int    `json:"waiting"`
	Min      int    `json:"min"`
	Max      int    `json:"max"`
	Hits     int64  `json:"hits"`
	Misses   int64  `json:"misses"`
}

// Diff is a set of changed files between two commits, or of a working tree.
type Diff struct {
	Base      string     `json:"base"`
	Head      string     `json:"head,omitempty" doc:"Empty for a working tree"`
	Files     []FileDiff `json:"files"`
	Truncated bool       `json:"truncated,omitempty" doc:"Some files or hunks were left out for size"`
}

// FileDiff is one changed file. Patch is unified diff text without the headers
// of git; it is empty for binary and for very large files.
type FileDiff struct {
	Path      string `json:"path"`
	OldPath   string `json:"old_path,omitempty"`
	Status    string `json:"status" enum:"added,modified,deleted,renamed,copied"`
	Binary    bool   `json:"binary,omitempty"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Patch     string `json:"patch,omitempty"`
}

// GitStatus is where a checkout in a sandbox stands.
type GitStatus struct {
	Branch    string   `json:"branch"`
	Head      string   `json:"head"`
	Ahead     int      `json:"ahead"`
	Behind    int      `json:"behind"`
	Staged    []string `json:"staged"`
	Changed   []string `json:"changed"`
	Untracked []string `json:"untracked"`
}

// Check is one finding of the doctor.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status" enum:"ok,warning,failed,skipped"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty" doc:"What to do about it"`
}
