package event

import (
	"context"
	"fmt"
	"iter"
	"unique"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// batchSize is how many events a reader is handed at once.
const batchSize = 256

// Subscribe yields the events that pass the filter, from f.After on and then as
// they come, in order, without gap or repeat, until ctx ends, the log closes or
// the database fails. The last yield then carries the error; f.Limit ends the
// sequence after so many events, without error.
//
// A reader may take as long as it likes with an event: it delays only itself.
func (l *Log) Subscribe(ctx context.Context, f store.EventFilter) iter.Seq2[squad.Event, error] {
	return func(yield func(squad.Event, error) bool) {
		n := 0
		for batch, err := range l.Batches(ctx, f) {
			if err != nil {
				yield(squad.Event{}, err)
				return
			}
			for _, e := range batch {
				if !yield(e.Event, nil) {
					return
				}
				if n++; n == f.Limit {
					return
				}
			}
		}
	}
}

// Batches is [Log.Subscribe] for readers that write to a network: it yields
// what is there at once, never an empty batch, so that they flush once for each.
// f.Limit plays no part.
func (l *Log) Batches(ctx context.Context, f store.EventFilter) iter.Seq2[[]*Entry, error] {
	return l.Feed(ctx, f, nil)
}

// Feed is [Log.Batches] for a reader with a sink, to which the log writes by
// itself what comes while the reader keeps up. Only the other batches are
// yielded, never while one is being taken.
func (l *Log) Feed(ctx context.Context, f store.EventFilter, sink Sink) iter.Seq2[[]*Entry, error] {
	return func(yield func([]*Entry, error) bool) {
		l.subscribers.Add(1)
		defer l.subscribers.Add(-1)
		r := reader{log: l, filter: f, cursor: max(f.After, 0), group: int(l.joined.Add(1) % wakeGroups), sink: sink}
		f.After, f.Limit = 0, 0
		r.name = unique.Make(fmt.Sprintf("%#v", f))
		for {
			batch, err := r.next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			l.delivered.Add(int64(len(batch)))
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// reader is one subscription: a filter and the number it has come to.
type reader struct {
	log    *Log
	filter store.EventFilter
	cursor int64
	group  int

	// Of a reader with a sink. While it takes part in the rounds, their lock
	// guards the cursor and these.
	sink  Sink
	name  unique.Handle[string] // of the filter
	place int                   // in the rounds, or -1
	out   chan struct{}
}

// next waits for the next events that pass.
func (r *reader) next(ctx context.Context) ([]*Entry, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		entries, wake, behind, last := r.log.tail.after(r.cursor, batchSize, r.group)
		var err error
		switch {
		case behind:
			entries, err = r.catchUp(ctx, last)
		case wake != nil:
			err = r.wait(ctx, wake)
		default:
			r.cursor = entries[len(entries)-1].Seq
			entries = r.pass(entries)
		}
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			return entries, nil
		}
	}
}

func (r *reader) wait(ctx context.Context, wake <-chan struct{}) error {
	if r.log.closed.Load() {
		return ErrClosed
	}
	if r.sink != nil {
		return r.ride(ctx)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wake:
		return nil
	}
}

// pass keeps what the filter lets through. The shared slice is not changed.
func (r *reader) pass(entries []*Entry) []*Entry {
	for i, e := range entries {
		if r.filter.Match(&e.Event) {
			continue
		}
		out := append([]*Entry(nil), entries[:i]...)
		for _, e := range entries[i+1:] {
			if r.filter.Match(&e.Event) {
				out = append(out, e)
			}
		}
		return out
	}
	return entries
}

// catchUp reads from the database what the tail no longer holds.
func (r *reader) catchUp(ctx context.Context, last int64) ([]*Entry, error) {
	r.log.catchUps.Add(1)
	f := r.filter
	f.After, f.Limit = r.cursor, batchSize
	events, err := r.log.Stored(ctx, f)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	entries := paged(events)
	if len(events) == batchSize {
		r.cursor = events[len(events)-1].Seq
	} else {
		// Everything up to last was there to be read, and did not pass.
		r.cursor = last
		if n := len(events); n > 0 {
			r.cursor = max(last, events[n-1].Seq)
		}
	}
	return entries, nil
}
