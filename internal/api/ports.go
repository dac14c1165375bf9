package api

import (
	"context"
	"io"
	"net"
	"net/http"

	"agentsquad"
)

// Sandboxes are the verbs on sandboxes. Reads (get, list) come from the store.
// Every method checks [squad.Actor.OwnsSandbox] and answers a sandbox that is
// not the actor's with [squad.CodeNotFound].
type Sandboxes interface {
	// Create makes a sandbox outside an execution and waits until it runs.
	Create(ctx context.Context, actor squad.Actor, req squad.SandboxRequest) (squad.Sandbox, error)
	// Execute runs a command to its end. Output goes to out as it comes, when
	// out is not nil, and bounded into the result. A command that ends with an
	// exit code other than 0 is not an error.
	Execute(ctx context.Context, actor squad.Actor, id string, cmd squad.Command, out func(squad.LogChunk)) (squad.CommandResult, error)
	// Stream is Execute with the command's own streams, byte by byte; its result
	// holds no output.
	Stream(ctx context.Context, actor squad.Actor, id string, cmd squad.Command, io squad.Streams) (squad.CommandResult, error)
	// Files lists a directory, or describes one file.
	Files(ctx context.Context, actor squad.Actor, id, path string) ([]squad.FileInfo, error)
	// Upload writes a file, making its directories. It reads r to its end.
	Upload(ctx context.Context, actor squad.Actor, id, path string, r io.Reader) (squad.FileInfo, error)
	// Download opens a file; the caller closes it. Size is -1 where unknown.
	Download(ctx context.Context, actor squad.Actor, id, path string) (r io.ReadCloser, size int64, err error)
	// Remove deletes a file or a directory with what is in it.
	Remove(ctx context.Context, actor squad.Actor, id, path string) error
	// Terminal starts an interactive shell.
	Terminal(ctx context.Context, actor squad.Actor, id string, cols, rows int) (squad.Terminal, error)
	// Dial opens a TCP connection to a port inside.
	Dial(ctx context.Context, actor squad.Actor, id string, port int) (net.Conn, error)
	// Pause and Resume keep the memory; both are no-ops in the state they lead to.
	Pause(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error)
	Resume(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error)
	// Fork makes count copies that start from the same moment.
	Fork(ctx context.Context, actor squad.Actor, id string, count int) ([]squad.Sandbox, error)
	// Destroy ends it; destroying twice is no error.
	Destroy(ctx context.Context, actor squad.Actor, id string) error
	// Metrics are the newest samples, oldest first.
	Metrics(ctx context.Context, actor squad.Actor, id string) ([]squad.SandboxSample, error)
	// Pool is the state of the warm pools on this node.
	Pool(ctx context.Context) ([]squad.PoolState, error)
	// Check is what the doctor wants to know about each provider.
	Check(ctx context.Context) []squad.Check
}

// Checkouts are the git verbs in a sandbox. Each checks ownership as
// [Sandboxes] does, and leaves a git_operations row and its events.
type Checkouts interface {
	Clone(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error)
	Branch(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error)
	// Commit refuses a message that is no conventional commit with [squad.CodeRule].
	Commit(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error)
	Push(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error)
	Pull(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error)
	// OpenPull is find-or-create, keyed by the branch.
	OpenPull(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.PullRequest, error)
	Status(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitStatus, error)
	// Diff is the working tree against the base of the branch.
	Diff(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.Diff, error)
}

// Runner starts, steers and ends executions. The API has checked that the actor
// may write in the task's squad before it calls.
type Runner interface {
	// Run creates the execution and its flow in one transaction and moves the
	// task to in_progress. A task that runs already is a [squad.CodeConflict].
	Run(ctx context.Context, actor squad.Actor, taskID string, opts squad.RunOptions) (squad.Execution, error)
	// Retry starts again from the last checkpoint of a failed or cancelled task.
	Retry(ctx context.Context, actor squad.Actor, taskID string, opts squad.RunOptions) (squad.Execution, error)
	// Cancel ends all executions of a task; the work stays on its branch.
	Cancel(ctx context.Context, actor squad.Actor, taskID, cause string) (squad.Task, error)
	// Merge merges the task's pull request and closes the task.
	Merge(ctx context.Context, actor squad.Actor, taskID string, opts squad.MergeOptions) (squad.PullRequest, error)
	// Nudge hands a message to the running agent, or starts a new turn with it.
	Nudge(ctx context.Context, actor squad.Actor, taskID, text string) (squad.Message, error)
	// Fork tries a task several ways at once.
	Fork(ctx context.Context, actor squad.Actor, taskID string, opts squad.ForkOptions) ([]squad.Execution, error)
	// Keep chooses one execution of a fork; the others are cancelled.
	Keep(ctx context.Context, actor squad.Actor, executionID string) (squad.Execution, error)
	// CancelExecution ends one execution; CancelCommand only the command that its
	// agent runs now, and is a [squad.CodeConflict] where there is none.
	CancelExecution(ctx context.Context, actor squad.Actor, executionID, cause string) (squad.Execution, error)
	CancelCommand(ctx context.Context, actor squad.Actor, executionID string) error
	// Reassign ends the execution and continues its work with another member.
	Reassign(ctx context.Context, actor squad.Actor, executionID, memberID string) (squad.Execution, error)
	// Diff is the task's branch, with uncommitted work where it runs, against its base.
	Diff(ctx context.Context, actor squad.Actor, taskID string) (squad.Diff, error)
}

// Forges are the verbs on pull requests and repositories. The API has checked
// the actor's role in the repository's squad before it calls.
type Forges interface {
	// Prepare completes a new repository before its row is written: the local
	// forge makes the bare repository (or copies importPath into it), a remote
	// one is asked for its default branch with secret where a credential is
	// named. It is repeatable for the same repository ID.
	Prepare(ctx context.Context, repo *squad.Repository, importPath string) error
	// Discard removes what Prepare made on this machine, after the row is gone.
	Discard(ctx context.Context, repo squad.Repository) error
	// Branches lists the branches of a repository.
	Branches(ctx context.Context, repositoryID string) ([]string, error)
	Diff(ctx context.Context, actor squad.Actor, pullID string) (squad.Diff, error)
	// Review adds a remark or a verdict and returns it as stored.
	Review(ctx context.Context, actor squad.Actor, pullID string, req squad.NewReview) (squad.ReviewComment, error)
	Merge(ctx context.Context, actor squad.Actor, pullID string, opts squad.MergeOptions) (squad.PullRequest, error)
	Close(ctx context.Context, actor squad.Actor, pullID string) (squad.PullRequest, error)
	// Ready makes a draft one that may be merged.
	Ready(ctx context.Context, actor squad.Actor, pullID string) (squad.PullRequest, error)
	// Refresh reads a pull request from its forge anew.
	Refresh(ctx context.Context, actor squad.Actor, pullID string) (squad.PullRequest, error)
	// Check says whether a repository's credential can do what is needed.
	Check(ctx context.Context, repositoryID string) []squad.Check
}

// Radar finds overlapping work.
type Radar interface {
	// Conflicts are the overlaps between active tasks of a repository and with its base.
	Conflicts(ctx context.Context, repositoryID string) ([]squad.Conflict, error)
}

// Sealer seals secrets for storage. There is no Open here on purpose: the API
// can write a secret and never read one. The sealed value is bound to id, the
// credential's identifier (made with [squad.NewID] before the row is written),
// so that one row's secret cannot be moved to another.
type Sealer interface {
	Seal(id string, secret []byte) ([]byte, error)
}

// Doctor examines the installation.
type Doctor interface {
	Examine(ctx context.Context) []squad.Check
}

// Ports are the rooms behind the verbs. Any of them may be nil: its routes then
// answer [squad.CodeUnavailable].
type Ports struct {
	Sandboxes Sandboxes
	Checkouts Checkouts
	Runner    Runner
	Forges    Forges
	Radar     Radar
	Sealer    Sealer
	Doctor    Doctor
	Templates Templates

	// Page serves the web page at / and below.
	Page http.Handler
	// Webhooks serves POST /api/v1/webhooks/{forge}/{repository}; it checks its
	// own signatures.
	Webhooks http.Handler
	// MCP serves /mcp; the caller is authenticated and [ActorFrom] its context.
	MCP http.Handler
	// Gateway serves /git/ and /llm/ for cloud sandboxes; it checks its own tokens.
	Gateway http.Handler
	// Claimed takes whole requests away before any route of ours: the
	// E2B-compatible server on the same port. It does its own authentication.
	Claimed Claimer
}

// Templates are what sandboxes of this installation start from.
type Templates interface {
	Templates(ctx context.Context) ([]squad.Template, error)
	// BuildTemplate begins a build and does not wait for its end.
	BuildTemplate(ctx context.Context, req squad.NewTemplate) (squad.Template, error)
	// AddFolder makes or replaces a template: base, and the files of a tar archive.
	AddFolder(ctx context.Context, name string, archive io.Reader) (squad.Template, error)
	DeleteTemplate(ctx context.Context, id string) error
}

// Claimer serves the requests that it claims.
type Claimer interface {
	http.Handler
	// Claims says whether the request is for it; it must be cheap and pure.
	Claims(r *http.Request) bool
}
