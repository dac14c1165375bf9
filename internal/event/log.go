// Package event is the ordered log of everything that happened, and the bell
// that wakes its readers after each commit, on every node.
//
// The events table is the truth. A [Log] keeps the newest entries in memory, read
// once from the database and shared by all subscribers; a reader that falls
// behind them reads on from the database by its own cursor. So a slow reader
// costs others nothing, writers never wait for readers, and nobody sees a gap or
// a repeat. Between nodes the bell is PostgreSQL's NOTIFY: a hint, sent after
// commit and coalesced; a poll every two seconds covers a lost one.
//
// [NewLog] starts three goroutines (four on PostgreSQL); [Log.Close] ends them. With
// many a [Sink] one of them has others help while a round of writes lasts.
package event

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"agentsquad/internal/store"
)

// channel is the name of the bell between nodes.
const channel = "squad_events"

// ErrClosed ends subscriptions and refuses appends once the log is closed.
var ErrClosed = errors.New("event log is closed")

// Log is the log of one database. It is safe for concurrent use.
type Log struct {
	store   *store.Store
	archive *Archive // of what the store dropped; may be nil
	log     *slog.Logger
	stop    context.CancelCauseFunc
	done    sync.WaitGroup

	bell    chan struct{} // the tail has something to read
	herald  chan struct{} // other nodes have something to read
	appends chan *batch

	mu      sync.RWMutex
	closing bool // appends are refused

	closed atomic.Bool // subscriptions end
	tail   tail
	rounds rounds

	subscribers, joined, delivered, catchUps, appended, told atomic.Int64
}

// Stats says how the log is doing. Counts are since the start of this node.
type Stats struct {
	Subscribers int64 `json:"subscribers" doc:"Open subscriptions"`
	LastSeq     int64 `json:"last_seq" doc:"Number of the newest event"`
	Buffered    int   `json:"buffered" doc:"Events held in memory for readers"`
	Appended    int64 `json:"appended" doc:"Events appended through this node's stream door"`
	Delivered   int64 `json:"delivered" doc:"Events handed to subscribers"`
	CatchUps    int64 `json:"catch_ups" doc:"Reads from the database by readers that were behind"`
}

// NewLog starts the log of a store. Close it before the store.
func NewLog(s *store.Store, log *slog.Logger) *Log {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	l := &Log{
		store: s, log: log, stop: stop,
		bell: make(chan struct{}, 1), herald: make(chan struct{}, 1), appends: make(chan *batch, maxQueued),
	}
	l.tail.reset()
	s.OnCommit(func(last int64) {
		ring(l.bell)
		if s.Dialect() == store.Postgres {
			raise(&l.told, last)
			ring(l.herald)
		}
	})
	l.done.Go(func() { l.follow(ctx) })
	l.done.Go(l.commit)
	if s.Dialect() == store.Postgres {
		l.done.Go(func() {
			_ = s.Listen(ctx, []string{channel}, func(string, string) { ring(l.bell) })
		})
		l.done.Go(func() { l.tell(ctx) })
	}
	return l
}

// UseArchive has the log read and prune through an archive. Call it before the log is
// used.
func (l *Log) UseArchive(a *Archive) { l.archive = a }

// Close commits what was accepted, ends all subscriptions and waits for the
// log's goroutines. A second call does nothing.
func (l *Log) Close() {
	l.mu.Lock()
	first := !l.closing
	l.closing = true
	l.mu.Unlock()
	if first {
		close(l.appends)
		l.closed.Store(true)
		l.stop(ErrClosed)
		l.tail.rouse()
		l.rounds.end()
	}
	l.done.Wait()
}

// Stats returns counts for the status page.
func (l *Log) Stats() Stats {
	last, buffered := l.tail.size()
	return Stats{
		Subscribers: l.subscribers.Load(), LastSeq: last, Buffered: buffered,
		Appended: l.appended.Load(), Delivered: l.delivered.Load(), CatchUps: l.catchUps.Load(),
	}
}

// Payload is the JSON form of v for an event. What cannot be encoded is a
// mistake in the program; the event then says so instead of getting lost.
func Payload(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"encoding_error": err.Error()})
	}
	return b
}

// ring wakes the one who waits on c, now or at the next look.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func raise(v *atomic.Int64, to int64) {
	for {
		was := v.Load()
		if to <= was || v.CompareAndSwap(was, to) {
			return
		}
	}
}

// tell sends the bell to other nodes: after commit, and at most one every few
// milliseconds, because each NOTIFY takes a lock that all commits share.
func (l *Log) tell(ctx context.Context) {
	var sent int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.herald:
		}
		if last := l.told.Load(); last > sent {
			c, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := l.store.Notify(c, channel, strconv.FormatInt(last, 10))
			cancel()
			if err != nil && ctx.Err() == nil {
				l.log.WarnContext(ctx, "other nodes were not told of new events", "error", err)
			} else {
				sent = last
			}
		}
		if !sleep(ctx, 3*time.Millisecond) {
			return
		}
	}
}

// sleep waits, and says whether ctx is still on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
