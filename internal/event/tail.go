package event

import (
	"context"
	"runtime"
	"sync"
	"time"

	"agentsquad/internal/store"
)

// What the tail keeps in memory, at least and while it lasts.
const (
	tailEntries = 8192
	tailBytes   = 16 << 20
)

// pollEvery covers a lost notice between nodes.
const pollEvery = 2 * time.Second

// perSubscriber spreads wake-ups: with many subscribers, events that come within
// a few milliseconds of each other are handed out together. A thousand wait at
// most 20 ms, and one waits not at all.
const perSubscriber = 20 * time.Microsecond

// wakeGroups is how many groups readers are woken in.
const wakeGroups = 32

// tail is the newest part of the log, in order and without gap.
type tail struct {
	mu      sync.RWMutex
	entries []*Entry
	bytes   int
	last    int64 // -1 until the database was asked
	wake    [wakeGroups]chan struct{}

	most, mostBytes int // what is kept
}

func (t *tail) reset() {
	t.last = -1
	t.most, t.mostBytes = tailEntries, tailBytes
	for i := range t.wake {
		t.wake[i] = make(chan struct{})
	}
}

func (t *tail) size() (last int64, buffered int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return max(t.last, 0), len(t.entries)
}

// begin says where the log stood when this node started.
func (t *tail) begin(last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = last
}

// append adds entries that follow the last one.
func (t *tail) append(entries []*Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		if e.Seq != t.last+1 { // old events were dropped while we looked away
			t.entries, t.bytes = nil, 0
		}
		t.entries = append(t.entries, e)
		t.bytes += len(e.Payload) + 256
		t.last = e.Seq
	}
	if len(t.entries) > 2*t.most || t.bytes > 2*t.mostBytes {
		t.trim()
	}
}

// trim moves what is kept to new memory: readers may still hold the old.
func (t *tail) trim() {
	from, bytes := len(t.entries), 0
	for from > 0 && len(t.entries)-from < t.most {
		n := len(t.entries[from-1].Payload) + 256
		if bytes+n > t.mostBytes {
			break
		}
		bytes += n
		from--
	}
	t.entries = append(make([]*Entry, 0, 2*t.most), t.entries[from:]...)
	t.bytes = bytes
}

// rouse wakes all who wait, group after group: each has its turn with the
// processor before the next is woken, so that whoever writes the next events
// does not stand in line behind a thousand readers of these.
func (t *tail) rouse() {
	for i := range t.wake {
		t.mu.Lock()
		close(t.wake[i])
		t.wake[i] = make(chan struct{})
		t.mu.Unlock()
		runtime.Gosched()
	}
}

// after returns entries that follow the number, at most limit of them. When
// there are none yet it returns the channel of the group that closes with the
// next; when they are no longer in memory it returns behind and the last number.
func (t *tail) after(seq int64, limit, group int) (entries []*Entry, wake <-chan struct{}, behind bool, last int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.last < 0 || seq >= t.last {
		return nil, t.wake[group], false, t.last
	}
	if len(t.entries) == 0 || seq+1 < t.entries[0].Seq {
		return nil, nil, true, t.last
	}
	from := int(seq + 1 - t.entries[0].Seq)
	to := min(len(t.entries), from+limit)
	return t.entries[from:to:to], nil, false, t.last
}

// spread is how far apart wake-ups are now.
func (l *Log) spread() time.Duration {
	return min(time.Duration(l.subscribers.Load())*perSubscriber, 20*time.Millisecond)
}

// follow keeps the tail up to the database until ctx ends.
func (l *Log) follow(ctx context.Context) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	if l.store.Dialect() == store.SQLite {
		poll.Stop() // nobody else writes
	}
	for {
		began := time.Now()
		if err := l.readOn(ctx); err != nil && ctx.Err() == nil {
			l.log.ErrorContext(ctx, "the event log cannot be read", "error", err)
			ring(l.bell)
			if !sleep(ctx, 200*time.Millisecond) {
				return
			}
		}
		if d := l.spread() - time.Since(began); d >= time.Millisecond && !sleep(ctx, d) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-l.bell:
		case <-poll.C:
		}
	}
}

// announce wakes all who wait, and writes to those that need no waking.
func (l *Log) announce() {
	l.tail.rouse()
	l.rounds.run(l.tail.last)
}

// readOn adds what is new in the database.
func (l *Log) readOn(ctx context.Context) error {
	const page = 1000
	if l.tail.last < 0 { // only this goroutine writes it
		last, err := l.store.LastSeq(ctx)
		if err != nil {
			return err
		}
		l.tail.begin(last)
		l.announce()
	}
	for {
		events, err := l.store.Events(ctx, store.EventFilter{After: l.tail.last, Limit: page})
		if err != nil || len(events) == 0 {
			return err
		}
		l.tail.append(paged(events))
		l.announce()
		if len(events) < page {
			return nil
		}
	}
}
