package e2bserver

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	squad "agentsquad"
)

// The states of a sandbox that the protocol knows.
const (
	running = "running"
	paused  = "paused"
)

// record is what is kept of a sandbox across restarts.
type record struct {
	ID       string            `json:"id"`
	Owner    string            `json:"owner"`
	Template string            `json:"template"`        // as shown to users
	Alias    string            `json:"alias,omitempty"` // the name it was asked for by
	Image    string            `json:"image"`           // the host's name of it
	Base     string            `json:"base,omitempty"`  // and of the registry's image underneath
	State    string            `json:"state"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Env      map[string]string `json:"env,omitempty"`

	StartedAt time.Time     `json:"started_at"` // of the first start
	AwakeAt   time.Time     `json:"awake_at"`   // of the last start or resume
	EndAt     time.Time     `json:"end_at"`
	PausedAt  time.Time     `json:"paused_at,omitzero"`
	Timeout   time.Duration `json:"timeout"`

	AutoPause       bool    `json:"auto_pause,omitempty"`
	AutoPauseMemory bool    `json:"auto_pause_memory,omitempty"`
	AutoResume      bool    `json:"auto_resume,omitempty"`
	AllowInternet   *bool   `json:"allow_internet,omitempty"`
	Network         network `json:"network,omitzero"`

	CPU      int     `json:"cpu"`
	MemoryMB int64   `json:"memory_mb"`
	DiskMB   int64   `json:"disk_mb"`
	Mounts   []Mount `json:"mounts,omitempty"`
	// Doomed says that a kill was asked for and has not succeeded yet.
	Doomed bool `json:"doomed,omitempty"`
	// Build says that the sandbox builds a template: it is in no list.
	Build bool `json:"build,omitempty"`
	// Workdir and User are the defaults its template sets.
	Workdir string `json:"workdir,omitempty"`
	User    string `json:"user,omitempty"`
}

// live is one run of a sandbox, from a start or resume to the next pause or end.
type live struct {
	ctx       context.Context // ends with the run; all its streams hang on it
	end       context.CancelCauseFunc
	transport *http.Transport // to envd
	ports     *http.Transport // to everything else
}

// drop closes the connections that wait for a next request.
func (l *live) drop() {
	l.transport.CloseIdleConnections()
	l.ports.CloseIdleConnections()
}

// box is one sandbox as the server holds it.
type box struct {
	id    string
	owner string
	// op is held by whoever changes the state; a token in a channel so that
	// waiting for it can be given up.
	op chan struct{}

	mu      sync.Mutex
	rec     record
	machine Machine
	run     *live // nil unless running
	ending  bool  // a kill has begun
	policy  *policy
	samples ring[metric]
	notes   ring[note]
	last    Usage
	outs    map[*outConn]struct{} // connections to the outside

	counts egressCounts
}

func newBox(rec record, m Machine) *box {
	return &box{
		id: rec.ID, owner: rec.Owner, op: make(chan struct{}, 1), rec: rec, machine: m,
		policy:  newPolicy(rec.AllowInternet, rec.Network),
		outs:    map[*outConn]struct{}{},
		samples: ring[metric]{max: 720}, notes: ring[note]{max: 1000},
	}
}

// view returns a copy of the record that the caller may keep.
func (b *box) view() record {
	b.mu.Lock()
	defer b.mu.Unlock()
	rec := b.rec
	rec.Metadata = maps.Clone(rec.Metadata)
	return rec
}

// lock waits for the right to change the state. The error is a conflict when a
// kill has begun.
func (b *box) lock(ctx context.Context) error {
	select {
	case b.op <- struct{}{}:
	case <-ctx.Done():
		return squad.Wrap(squad.CodeUnavailable, ctx.Err(), "Sandbox %q is busy changing its state", b.id)
	}
	b.mu.Lock()
	ending := b.ending
	b.mu.Unlock()
	if ending {
		b.unlock()
		return squad.Errorf(squad.CodeConflict, "Sandbox %q is being killed", b.id)
	}
	return nil
}

func (b *box) unlock() { <-b.op }

// current returns the live run, or nil.
func (b *box) current() *live {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.run
}

// change alters the record and returns it.
func (b *box) change(alter func(*record)) record {
	b.mu.Lock()
	defer b.mu.Unlock()
	alter(&b.rec)
	return b.rec
}

var (
	errPaused = errors.New("the sandbox was paused")
	errKilled = errors.New("the sandbox was killed")
)

// stop ends the current run and cuts its streams.
func (b *box) stop(cause error) {
	b.mu.Lock()
	run := b.run
	b.run = nil
	b.mu.Unlock()
	if run != nil {
		run.end(cause)
		run.drop()
	}
}

// ring keeps the last max values.
type ring[T any] struct {
	max    int
	values []T
	next   int
}

func (r *ring[T]) add(v T) {
	if len(r.values) < r.max {
		r.values = append(r.values, v)
		return
	}
	r.values[r.next] = v
	r.next = (r.next + 1) % r.max
}

// all returns the values, oldest first.
func (r *ring[T]) all() []T {
	out := make([]T, 0, len(r.values))
	out = append(out, r.values[r.next:]...)
	return append(out, r.values[:r.next]...)
}
