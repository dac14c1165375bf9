package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// channel is the name of the bell between nodes.
const channel = "squad_flows"

// defaultConcurrency is how many flows of a queue one node runs at once where
// the configuration names no number.
const defaultConcurrency = 64

// maxInput bounds what a flow is started or signalled with.
const maxInput = 1 << 20

// Config says how a node takes part.
type Config struct {
	Store *store.Store
	// Owner names this node; it must be unique among the living. Default: host,
	// process number and a random part.
	Owner string
	// Lease is how long a flow is held without a heartbeat: the time after which
	// a dead node's flows go to others. Default 15 s.
	Lease time.Duration
	// Concurrency is how many flows of each queue this node runs at once.
	// Parked ones do not count. Default 64 each.
	Concurrency map[string]int
	// OnEnd, where set, is called in the transaction that gives a flow its last
	// state, so that a row can end with its flow. An error undoes the end, and
	// it is tried again.
	OnEnd func(ctx context.Context, tx *store.Tx, end End) error
	// Tracer, where set, gets a span for each try of a step.
	Tracer trace.Tracer
	Log    *slog.Logger
}

// End is how a flow ended.
type End struct {
	ID     string
	Name   string
	Status store.FlowStatus
	Error  string
}

// Spec is a flow to start.
type Spec struct {
	ID       string // unique; a new one where empty
	Name     string // of a registered workflow function
	Queue    string // default "default"
	Priority int    // higher is first
	Input    any
}

// Engine runs flows on this node.
type Engine struct {
	cfg   Config
	store *store.Store
	log   *slog.Logger

	wake    chan struct{}    // dispatch has something to look at
	beat    chan struct{}    // the heartbeat is wanted at once
	herald  chan struct{}    // other nodes have something to look at
	cancels atomic.Bool      // and it is a cancellation
	renewed atomic.Int64     // when the leases were last renewed, monotonic
	strays  map[string]int64 // held by name only at the last heartbeat, with their fences

	mu        sync.Mutex
	recipes   map[store.Recipe]func(Context) error
	newest    map[string]int
	onEnd     map[string]func(ctx context.Context, tx *store.Tx, end End) error
	schedules []schedule
	running   map[string]*run
	held      map[string]int // flows being run, by queue
	stopping  bool

	runs sync.WaitGroup
}

// New makes an engine. Register the workflow functions before [Engine.Run].
func New(cfg Config) *Engine {
	if cfg.Owner == "" {
		host, _ := os.Hostname()
		cfg.Owner = fmt.Sprintf("%s:%d:%s", host, os.Getpid(), squad.NewID()[24:])
	}
	if cfg.Lease <= 0 {
		cfg.Lease = 15 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{
		cfg: cfg, store: cfg.Store, log: cfg.Log.With("owner", cfg.Owner),
		wake: make(chan struct{}, 1), beat: make(chan struct{}, 1), herald: make(chan struct{}, 1),
		recipes: map[store.Recipe]func(Context) error{}, newest: map[string]int{},
		onEnd:   map[string]func(context.Context, *store.Tx, End) error{},
		running: map[string]*run{}, held: map[string]int{},
	}
}

// Owner is the name of this node.
func (e *Engine) Owner() string { return e.cfg.Owner }

// Register makes a workflow function known. A flow is run by the version it
// began with; new flows begin with the highest. When a function changes its
// steps, register it as a new version and keep the old one until its flows have
// ended: flows whose version no node knows any more fail and say so. Registering
// the same name and version twice is a mistake in the program, and panics.
func (e *Engine) Register(name string, version int, fn func(Context) error) {
	if name == "" || version < 1 || fn == nil {
		panic(fmt.Sprintf("flow: bad registration %q version %d", name, version))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := store.Recipe{Name: name, Version: version}
	if e.recipes[r] != nil {
		panic(fmt.Sprintf("flow: %q version %d is registered already", name, version))
	}
	e.recipes[r] = fn
	e.newest[name] = max(e.newest[name], version)
}

// OnEnd is [Config.OnEnd] for the flows of one name. It is also the way to learn
// of an end that the function itself could not see: a panic, a version that
// nobody has, a cancellation before it began. Call it before [Engine.Run].
func (e *Engine) OnEnd(name string, f func(ctx context.Context, tx *store.Tx, end End) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onEnd[name] = f
}

// Start writes a flow in the caller's transaction; it begins when that commits.
// Starting the same ID again does nothing, unless it names another function.
func (e *Engine) Start(ctx context.Context, tx *store.Tx, spec Spec) error {
	e.mu.Lock()
	version := e.newest[spec.Name]
	e.mu.Unlock()
	if version == 0 {
		return fmt.Errorf("start flow: no function %q is registered", spec.Name)
	}
	input, err := encode(spec.Input)
	if err != nil {
		return fmt.Errorf("start flow %s: %w", spec.Name, err)
	}
	if spec.Queue == "" {
		spec.Queue = "default"
	}
	f := store.Flow{ID: spec.ID, Name: spec.Name, Version: version, Queue: spec.Queue, Priority: spec.Priority, Input: input}
	created, err := tx.CreateFlow(ctx, &f)
	if err != nil {
		return err
	}
	if !created {
		was, err := tx.Flow(ctx, spec.ID)
		if err != nil {
			return err
		}
		if was.Name != spec.Name {
			return squad.Errorf(squad.CodeConflict, "flow %s exists already, of another kind (%s)", spec.ID, was.Name)
		}
		return nil
	}
	tx.AfterCommit(e.ring)
	return nil
}

// Signal keeps a signal for a flow until it awaits one of that name. A flow that
// has ended is CodeConflict.
func (e *Engine) Signal(ctx context.Context, tx *store.Tx, flowID, name string, payload any) error {
	b, err := encode(payload)
	if err != nil {
		return fmt.Errorf("signal flow %s: %w", flowID, err)
	}
	if err := tx.SignalFlow(ctx, flowID, name, b); err != nil {
		return err
	}
	tx.AfterCommit(e.ring)
	return nil
}

// Cancel asks a flow to end. A running step's context ends with a [*Cancelled]
// as cause; a parked flow wakes and finds it; one that never began ends at once.
// A flow that has ended is left alone.
func (e *Engine) Cancel(ctx context.Context, tx *store.Tx, flowID, cause string) error {
	f, err := tx.CancelFlow(ctx, flowID, cause)
	if err != nil || f.Status.Final() {
		return err
	}
	if f.Status == store.FlowReady && f.Attempt == 0 {
		ended, err := tx.EndIdleFlow(ctx, flowID, store.FlowCancelled, cause)
		if err == nil && ended {
			err = e.ended(ctx, tx, End{ID: flowID, Name: f.Name, Status: store.FlowCancelled, Error: cause})
		}
		if err != nil {
			return err
		}
	}
	tx.AfterCommit(func() {
		e.mu.Lock()
		r := e.running[flowID]
		e.mu.Unlock()
		if r != nil {
			r.cancel(&Cancelled{cause})
		} else {
			e.cancels.Store(true)
		}
		e.ring()
	})
	return nil
}

// Running is how many flows of each queue this node runs now. Parked ones are
// rows in the database and nothing else.
func (e *Engine) Running() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.held)
}

func (e *Engine) ended(ctx context.Context, tx *store.Tx, end End) error {
	e.mu.Lock()
	own := e.onEnd[end.Name]
	e.mu.Unlock()
	for _, f := range []func(context.Context, *store.Tx, End) error{e.cfg.OnEnd, own} {
		if f == nil {
			continue
		}
		if err := f(ctx, tx, end); err != nil {
			return err
		}
	}
	return nil
}

// ring wakes dispatch here and on other nodes.
func (e *Engine) ring() {
	nudge(e.wake)
	nudge(e.herald)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// encode is the bounded JSON form of an input, a payload or a result.
func encode(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(b) > maxInput {
		return nil, squad.Errorf(squad.CodeTooLarge, "%d bytes are too many for the journal, the limit is %d", len(b), maxInput)
	}
	return b, nil
}

// known lists what this node can run.
func (e *Engine) known() []store.Recipe {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]store.Recipe, 0, len(e.recipes))
	for r := range e.recipes {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b store.Recipe) int {
		if a.Name != b.Name {
			if a.Name < b.Name {
				return -1
			}
			return 1
		}
		return a.Version - b.Version
	})
	return out
}

// free is how many more flows of a queue this node may take up.
func (e *Engine) free(queue string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return 0
	}
	limit, ok := e.cfg.Concurrency[queue]
	if !ok {
		limit = defaultConcurrency
	}
	return limit - e.held[queue]
}
