// Package flow is durable execution: workflow functions that survive crashes,
// restarts and the loss of a node, kept in our own database so that a row and
// its flow commit together.
//
// A workflow function sees only [Context]: it is deterministic, and all effects
// are in steps. Each finished step is written to a journal; after a crash the
// function runs again from the start, and finished steps answer from the journal.
// A step that was under way when the node died runs again, so steps are
// at-least-once: every effect is find-or-create by key.
//
// A node holds a flow by a lease with a fencing number, which grows each time the
// flow changes hands; every write is refused when its number is old. So a frozen
// node that wakes up cannot spoil what another has done since. Leases are judged
// by the database's clock.
//
// A flow that waits (for a time, a signal, a later try) is a row and nothing
// else: no goroutine, no memory. The seam is small on purpose: Temporal's SDK can
// stand behind the same [Context].
//
// [Engine.Run] starts the goroutines: one each for dispatch and heartbeat, two
// for PostgreSQL's notices, one per schedule and one per flow being run; it
// returns when all have ended.
package flow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	squad "agentsquad"
)

// Context is all that a workflow function sees of the world. It must be used
// only by the goroutine that runs the function. When the flow parks or is handed
// over, its methods do not return: the goroutine ends, deferred calls run, and
// the function is called again later. So deferred calls must have no effects.
type Context interface {
	// ID is the flow's own identifier.
	ID() string
	// Fence is the number under which this node holds the flow. Effects outside
	// the database can carry it, to tell an old holder's from a new one's.
	Fence() int64
	// Input decodes what the flow was started with.
	Input(v any) error
	// Do runs a step under a key that is unique in the flow, once it has
	// succeeded never again, and decodes its result into out, which may be nil.
	// A failed step is tried again as r says; the last failure is kept in the
	// journal and returned, here and on each replay. When the flow is cancelled
	// the step's context ends and Do returns an error that is [ErrCancelled].
	Do(key string, step func(ctx context.Context) (any, error), out any, r Retry) error
	// Sleep waits until d after it was first called under this key.
	Sleep(key string, d time.Duration) error
	// Await takes the oldest signal of that name, waiting for one as long as the
	// timeout: 0 is for ever, less is not at all. It is false when none came.
	Await(signal string, timeout time.Duration, out any) (bool, error)
	// Detach returns a Context on which steps run although the flow was
	// cancelled: for cleaning up.
	Detach() Context
}

// Why the context of a step ends.
var (
	// ErrCancelled says that somebody asked the flow to end.
	ErrCancelled = errors.New("flow cancelled")
	// ErrLost says that another node took the flow over.
	ErrLost = errors.New("flow was taken over by another node")
	// ErrStopping says that this node stops; another goes on with the flow.
	ErrStopping = errors.New("node is stopping")
)

// Cancelled is the error with which a cancelled flow's steps end; errors.Is says
// that it is [ErrCancelled].
type Cancelled struct{ Cause string }

// Error names the cause.
func (c *Cancelled) Error() string { return "flow cancelled: " + c.Cause }

// Is makes it an [ErrCancelled].
func (c *Cancelled) Is(target error) bool { return target == ErrCancelled }

// Retry says how a step is tried again. The zero value is five tries, the first
// after half a second, doubling up to a minute, ten minutes for each.
type Retry struct {
	Attempts   int           // tries in all; 0 means 5, less than 0 no end, 1 no second
	Backoff    time.Duration // wait before the second try; 0 means 500 ms
	MaxBackoff time.Duration // longest wait; 0 means one minute
	Timeout    time.Duration // of one try; 0 means ten minutes, less than 0 none
	// If says whether an error is worth another try; nil means every one that
	// is not [Permanent].
	If func(error) bool
}

// Once is a step that is tried once.
var Once = Retry{Attempts: 1}

func (r Retry) withDefaults() Retry {
	if r.Attempts == 0 {
		r.Attempts = 5
	}
	if r.Backoff <= 0 {
		r.Backoff = 500 * time.Millisecond
	}
	if r.MaxBackoff <= 0 {
		r.MaxBackoff = time.Minute
	}
	if r.Timeout == 0 {
		r.Timeout = 10 * time.Minute
	}
	return r
}

// again says whether and after what wait a try follows the one that failed.
func (r Retry) again(attempt int, err error) (time.Duration, bool) {
	var p *permanent
	if errors.As(err, &p) || r.If != nil && !r.If(err) || r.Attempts > 0 && attempt >= r.Attempts {
		return 0, false
	}
	wait := r.Backoff
	for i := 1; i < attempt && wait < r.MaxBackoff; i++ {
		wait *= 2
	}
	wait = min(wait, r.MaxBackoff)
	// Half of it is chance, so that many that failed together do not return together.
	wait = wait/2 + time.Duration(rand.Int64N(int64(wait/2)+1))
	var e *squad.Error
	if errors.As(err, &e) && e.RetryAfter > wait {
		wait = e.RetryAfter
	}
	return wait, true
}

// permanent marks an error that no further try can cure.
type permanent struct{ err error }

func (p *permanent) Error() string { return p.err.Error() }
func (p *permanent) Unwrap() error { return p.err }

// Permanent marks an error so that the step is not tried again.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// failure is how the journal keeps an error: what a replay returns is what the
// first run returned.
type failure struct {
	Code    squad.Code `json:"code"`
	Message string     `json:"message"`
	Field   string     `json:"field,omitempty"`
}

func failureOf(err error) failure {
	var e *squad.Error
	if errors.As(err, &e) {
		return failure{Code: e.Code, Message: e.Message, Field: e.Field}
	}
	return failure{Code: squad.CodeInternal, Message: err.Error()}
}

func (f failure) err(key string) error {
	return fmt.Errorf("step %s: %w", key, &squad.Error{Code: f.Code, Message: f.Message, Field: f.Field})
}
