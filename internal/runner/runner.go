package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/agent"
	"agentsquad/internal/event"
	"agentsquad/internal/flow"
	"agentsquad/internal/forge"
	"agentsquad/internal/git"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
	"agentsquad/internal/task"
)

// Sandboxes is what the runner needs of the sandbox service.
type Sandboxes interface {
	// CheckCommand says whether the squad's policy lets a command run.
	CheckCommand(ctx context.Context, actor squad.Actor, row squad.Sandbox, shell string) error
	Acquire(ctx context.Context, req sandbox.AcquireRequest) (squad.Sandbox, error)
	Open(ctx context.Context, actor squad.Actor, id string) (*e2b.Sandbox, error)
	Pause(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error)
	Resume(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error)
	Status(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error)
	Destroy(ctx context.Context, actor squad.Actor, id string) error
	Prewarm(ctx context.Context, spec sandbox.PoolSpec, n int) error
	RecordGit(ctx context.Context, row squad.Sandbox, op *squad.GitOperation, progress squad.GitProgress) error
}

// Gateway is what the runner needs of the only way out of a sandbox.
type Gateway interface {
	// Prepare makes a branch's tree ready to be mounted into a sandbox of the
	// given provider. A tree that cannot be had that way has no mounts: the
	// repository is then cloned.
	Prepare(ctx context.Context, provider string, repo squad.Repository, branch string) (Tree, error)
	// Remote is the address of a repository as a sandbox reaches it.
	Remote(ctx context.Context, sb squad.Sandbox, repo squad.Repository) (url string, auth git.Auth, err error)
	// Lend shows the repository's objects to a sandbox that runs already, where it
	// is on this machine; nil where it cannot: the repository is then fetched.
	Lend(ctx context.Context, sb *e2b.Sandbox, row squad.Sandbox, repo squad.Repository) (*git.Borrow, error)
	// Via is the same repository, reached by this program in the sandbox's name.
	Via(sb squad.Sandbox, repo squad.Repository) *git.Via
	// Head is where a branch of the upstream is now, "" where it is not.
	Head(ctx context.Context, repo squad.Repository, branch string) (string, error)
	// Stored is the commit of a checkpoint ref, "" where it is not.
	Stored(ctx context.Context, repo squad.Repository, ref string) (string, error)
	// Dir is the repository on this machine that holds all branches and
	// checkpoints: the mirror, or the local forge's own.
	Dir(ctx context.Context, repo squad.Repository) (string, error)
	// Look has the conflict radar look soon: a branch moved.
	Look()
	// AgentEnv are the addresses that an agent of the squad finds in its
	// environment, for its models. No secrets.
	AgentEnv(ctx context.Context, sb squad.Sandbox, member squad.Member) (map[string]string, error)
}

// Tree is a checkout that is ready before the sandbox is.
type Tree struct {
	Mounts []sandbox.Mount
	Commit string // the commit it is of
	Key    string // names sandboxes that have this tree
}

// Config describes a [Runner].
type Config struct {
	Store     *store.Store
	Events    *event.Log
	Life      *task.Life
	Flows     *flow.Engine
	Sandboxes Sandboxes
	Gateway   Gateway
	Forges    *forge.Service
	// Git runs git on this machine, over the mirrors.
	Git *git.Runner
	// SignKey is the SSH key that signs a squad's commits, nil where it has none. The
	// key stays here; sandboxes see signatures only. Nil means that none signs.
	SignKey func(ctx context.Context, squadID string) ([]byte, error)
	// Drivers by kind of agent.
	Drivers map[squad.AgentKind]agent.Driver
	// Limits of the installation.
	Limits Limits
	// Owner names this node in leases.
	Owner string
	Log   *slog.Logger
}

// Limits bound what runs at once.
type Limits struct {
	Running     int           // executions of the installation; default 100
	PerMember   int           // executions of a member that sets none; default 1
	TurnTimeout time.Duration // longest turn of a member that sets none; default 2 h
	ReviewWait  time.Duration // how long an execution waits for a review; default 14 days
	Attempts    int           // tries of a squad that sets none; default 3
	// Warm sandboxes wait for each branch that was worked from in the last hour; 0
	// means none.
	Warm int
}

// Runner runs executions. It is safe for concurrent use.
type Runner struct {
	cfg       Config
	checkouts git.Checkouts
	bell      chan struct{} // rings when the queue may have moved
	moved     chan struct{} // rings when a base may have moved

	mu    sync.Mutex
	turns map[string]*liveTurn // by execution: turns that this node drives now
}

// New makes a runner and registers its flows with the engine.
func New(cfg Config) *Runner {
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &Runner{cfg: cfg, bell: make(chan struct{}, 1), moved: make(chan struct{}, 1), turns: map[string]*liveTurn{}}
	cfg.Flows.Register(flowExecution, 1, r.execute)
	cfg.Flows.Register(flowCleanup, 1, r.cleanup)
	cfg.Flows.OnEnd(flowExecution, r.ended)
	return r
}

func (l Limits) withDefaults() Limits {
	orInt := func(n *int, def int) {
		if *n <= 0 {
			*n = def
		}
	}
	orInt(&l.Running, 100)
	orInt(&l.PerMember, 1)
	orInt(&l.Attempts, 3)
	if l.TurnTimeout <= 0 {
		l.TurnTimeout = 2 * time.Hour
	}
	if l.ReviewWait <= 0 {
		l.ReviewWait = 14 * 24 * time.Hour
	}
	return l
}

// Work keeps the queue moving and listens to what happens outside, until ctx ends.
// It returns nil then.
func (r *Runner) Work(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { r.keepPromoting(ctx) })
	group.Go(func() { r.dispatch(ctx) })
	group.Go(func() { r.keepWarm(ctx) })
	group.Wait()
	return nil
}

// Queue is where the flows of executions wait for a place on a node.
const Queue = "execution"

// Names of flows. Their versions are in New.
const (
	flowExecution = Queue
	flowCleanup   = "cleanup"
)

// ring wakes the queue.
func (r *Runner) ring() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}
