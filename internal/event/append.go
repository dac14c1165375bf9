package event

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

const (
	// maxQueued bounds the calls of Append that wait for a commit.
	maxQueued = 1024
	// maxCommit is how many events one commit may take along.
	maxCommit = 1000
	// maxPayload bounds one event: what is longer belongs in a file.
	maxPayload = 1 << 20
)

// batch is one call of Append on its way to the database.
type batch struct {
	events []squad.Event
	done   chan error
}

// Append writes events in a transaction of their own and returns once they are
// committed. Calls that come together share one commit; each call's events stay
// together and in order. For an event about a changed row use store.Tx.Append.
// When ctx ends first, the events may or may not be written.
func (l *Log) Append(ctx context.Context, events ...squad.Event) error {
	if len(events) == 0 {
		return nil
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	b := &batch{events: make([]squad.Event, len(events)), done: make(chan error, 1)}
	for i, e := range events {
		if err := check(&e); err != nil {
			return err
		}
		if e.At.IsZero() {
			e.At = now
		}
		b.events[i] = e
	}
	if err := l.enqueue(ctx, b); err != nil {
		return err
	}
	select {
	case err := <-b.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// check refuses here what would spoil the commit for others.
func check(e *squad.Event) error {
	switch {
	case e.Type == "":
		return squad.Invalid("type", "an event needs a type")
	case len(e.Payload) > maxPayload:
		return squad.Errorf(squad.CodeTooLarge, "an event of %d bytes is too large, the limit is %d", len(e.Payload), maxPayload)
	case len(e.Payload) > 0 && !json.Valid(e.Payload):
		return squad.Invalid("payload", "the payload of an event must be JSON")
	}
	return nil
}

// enqueue holds the read lock while it sends, so that Close cannot close the
// channel under it; the committer keeps the channel moving meanwhile.
func (l *Log) enqueue(ctx context.Context, b *batch) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closing {
		return ErrClosed
	}
	select {
	case l.appends <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// commit writes batches until the channel is closed and empty. A commit costs
// most of a millisecond of processor time however little is in it, and what many
// readers wait for waits for company anyway: with them, commits keep a distance.
func (l *Log) commit() {
	var began time.Time
	for first := range l.appends {
		if d := l.spread()/5 - time.Since(began); d >= time.Millisecond {
			time.Sleep(d)
		}
		began = time.Now()
		all := []*batch{first}
		n := len(first.events)
	more:
		for n < maxCommit {
			select {
			case b, ok := <-l.appends:
				if !ok {
					break more
				}
				all = append(all, b)
				n += len(b.events)
			default:
				break more
			}
		}
		err := l.write(all)
		if err == nil {
			l.appended.Add(int64(n))
		}
		for _, b := range all {
			b.done <- err
		}
	}
}

func (l *Log) write(all []*batch) error {
	// Not any caller's context: the commit belongs to several.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := l.store.Tx(ctx, func(tx *store.Tx) error {
		for _, b := range all {
			if err := tx.Append(ctx, b.events...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("append events: %w", err)
	}
	return nil
}
