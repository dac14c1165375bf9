package event

import (
	"context"
	"runtime"
	"sync"
	"unique"

	squad "agentsquad"
)

// Sink is a reader that can say at once whether its network takes something.
// While it keeps up, the log itself writes to it, in rounds: to wake a goroutine
// for each of a thousand readers costs as much as half of the writing.
type Sink interface {
	// View says what the reader may see from now on.
	View() *View
	// Take writes that many events without waiting. taken means that they are
	// written, or that the rest of them is kept; more, that nothing is kept and
	// the next may come in the same way.
	Take(wire [][]byte, events int) (taken, more bool)
	// Drain waits until what Take kept is written.
	Drain() error
}

// View is what a reader may see. Two with the same key see the same.
type View struct {
	Key unique.Handle[string]
	See func(*squad.Event) bool
}

const (
	// perWriter is how many readers are worth a goroutine of the round.
	perWriter = 256
	// yieldEvery is after how many of them others have their turn with the
	// processor: whoever writes the next events does not wait for all readers of
	// these.
	yieldEvery = 32
)

// rounds are the readers that the log writes to itself.
type rounds struct {
	mu      sync.Mutex
	readers []*reader
}

// block is what readers at one point of the log, with one filter and one view,
// are sent next.
type block struct {
	wire         [][]byte
	passed, seen int
	cursor       int64 // behind it; 0 when the tail no longer holds that point
}

type blockKey struct {
	cursor       int64
	filter, view unique.Handle[string]
}

// ride takes part in the rounds until the sink has to be waited for, or until
// the tail no longer holds what it needs.
func (r *reader) ride(ctx context.Context) error {
	if !r.join() {
		return nil
	}
	select {
	case <-ctx.Done():
		r.leave()
		return context.Cause(ctx)
	case <-r.out:
		return r.sink.Drain()
	}
}

// join refuses when something new has come meanwhile: a round that began before
// would not be repeated for this reader.
func (r *reader) join() bool {
	p := &r.log.rounds
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, wake, _, _ := r.log.tail.after(r.cursor, 1, r.group); wake == nil || r.log.closed.Load() {
		return false
	}
	r.out, r.place = make(chan struct{}), len(p.readers)
	p.readers = append(p.readers, r)
	return true
}

// leave returns when no round writes to the reader any more.
func (r *reader) leave() {
	p := &r.log.rounds
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.place >= 0 {
		p.drop(r)
	}
}

func (p *rounds) drop(r *reader) {
	last := len(p.readers) - 1
	p.readers[r.place] = p.readers[last]
	p.readers[r.place].place = r.place
	p.readers[last] = nil
	p.readers = p.readers[:last]
	r.place = -1
	close(r.out)
}

// run writes what is new to all; who cannot take it goes on by itself.
func (p *rounds) run(last int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(runtime.GOMAXPROCS(0), 1+len(p.readers)/perWriter)
	gone := make([][]*reader, n)
	var writers sync.WaitGroup
	for i := range n {
		part := p.readers[i*len(p.readers)/n : (i+1)*len(p.readers)/n]
		writers.Go(func() { gone[i] = serve(part, last) })
	}
	writers.Wait()
	for _, part := range gone {
		for _, r := range part {
			p.drop(r)
		}
	}
}

// serve writes what is new to readers, and returns those that do not stay.
func serve(readers []*reader, last int64) (gone []*reader) {
	blocks := map[blockKey]*block{}
	for i, r := range readers {
		if !r.serve(last, blocks) {
			gone = append(gone, r)
		}
		if i%yieldEvery == 0 {
			runtime.Gosched()
		}
	}
	return gone
}

// end has all readers go on by themselves.
func (p *rounds) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.readers) > 0 {
		p.drop(p.readers[len(p.readers)-1])
	}
}

// serve writes what is new up to last, and says whether the reader stays.
func (r *reader) serve(last int64, blocks map[blockKey]*block) bool {
	view := r.sink.View()
	for r.cursor < last {
		key := blockKey{r.cursor, r.name, view.Key}
		b := blocks[key]
		if b == nil {
			b = r.block(view)
			blocks[key] = b
		}
		if b.cursor == 0 {
			return false
		}
		taken, more := true, true
		if b.seen > 0 {
			taken, more = r.sink.Take(b.wire, b.seen)
		}
		if taken {
			r.cursor = b.cursor
			r.log.delivered.Add(int64(b.passed))
		}
		if !more {
			return false
		}
	}
	return true
}

func (r *reader) block(view *View) *block {
	entries, _, _, _ := r.log.tail.after(r.cursor, batchSize, r.group)
	if len(entries) == 0 {
		return &block{}
	}
	b := &block{cursor: entries[len(entries)-1].Seq}
	entries = r.pass(entries)
	b.passed = len(entries)
	b.wire, b.seen = Wire(nil, entries, view.See)
	return b
}
