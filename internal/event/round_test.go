package event_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unique"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// pipe is a sink with a network of moods: sometimes it takes all, sometimes
// half, sometimes nothing.
type pipe struct {
	view  *event.View
	moods int // of which only one is good; 0 means that it takes everything
	want  int // events
	whole chan struct{}

	mu    sync.Mutex
	turns int
	got   []byte
	rest  []byte
}

func newPipe(view *event.View, moods, want int) *pipe {
	return &pipe{view: view, moods: moods, want: want, whole: make(chan struct{})}
}

func (p *pipe) write(b []byte) {
	from := max(0, len(p.got)-1) // an end may come in two pieces
	p.got = append(p.got, b...)
	n := bytes.Count(p.got[from:], []byte("\n\n"))
	if p.want -= n; n > 0 && p.want == 0 {
		close(p.whole)
	}
}

func (p *pipe) View() *event.View { return p.view }

func (p *pipe) Take(wire [][]byte, _ int) (taken, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := bytes.Join(wire, nil)
	p.turns++
	switch {
	case p.moods == 0 || p.turns%p.moods == 0:
		p.write(all)
		return true, true
	case p.turns%2 == 0:
		p.write(all[:len(all)/2])
		p.rest = all[len(all)/2:]
		return true, false
	default:
		return false, false
	}
}

func (p *pipe) Drain() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(p.rest)
	p.rest = nil
	return nil
}

// follow reads until ctx ends or the log closes, and returns why.
func (p *pipe) follow(ctx context.Context, l *event.Log, f store.EventFilter) error {
	for batch, err := range l.Feed(ctx, f, p) {
		if err != nil {
			return err
		}
		wire, _ := event.Wire(nil, batch, p.view.See)
		p.mu.Lock()
		p.write(bytes.Join(wire, nil))
		p.mu.Unlock()
	}
	return nil
}

// numbers are those of the events that have arrived.
func (p *pipe) numbers(t *testing.T) (all []int64) {
	t.Helper()
	for frame := range strings.SplitSeq(strings.TrimSuffix(string(p.got), "\n\n"), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(frame, "id: "), "\n")
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || strings.Count(frame, "\n") != 2 {
			t.Fatalf("a torn event: %q", frame)
		}
		all = append(all, n)
	}
	return all
}

func everything(key string) *event.View {
	return &event.View{Key: unique.Make(key), See: func(*squad.Event) bool { return true }}
}

// However a reader takes what it is offered, it gets what it may see, once and in
// order, also when the memory of the log is too short for it.
func TestFeed_EachSinkGetsItsEventsOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, _ string) {
		l := newLog(t, s)
		l.KeepOnly(30, 1<<20)
		ctx, cancel := context.WithCancel(bounded(t))
		defer cancel()
		const total, each = 300, 100 // three hundred readers have two writers
		even := &event.View{Key: unique.Make("even"), See: func(e *squad.Event) bool { return e.Seq%2 == 0 }}
		var pipes []*pipe // in turn of every event, every second, every third
		var readers sync.WaitGroup
		for i := range 3 * each {
			view, f := everything("all"), store.EventFilter{}
			switch i % 3 {
			case 1:
				view = even
			case 2:
				f.TaskID = "third"
			}
			p := newPipe(view, i/3%5, total/(i%3+1))
			pipes = append(pipes, p)
			readers.Go(func() { _ = p.follow(ctx, l, f) })
		}
		for range total / 3 {
			e := squad.Event{Type: squad.EventLog}
			third := e
			third.TaskID = "third"
			if err := l.Append(ctx, e, e, third); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range pipes {
			select {
			case <-p.whole:
			case <-ctx.Done():
				t.Fatalf("reader %d lacks events", i)
			}
		}
		cancel()
		readers.Wait()
		for i, p := range pipes {
			for k, n := range p.numbers(t) {
				if want := int64(k+1) * int64(i%3+1); n != want {
					t.Fatalf("reader %d: event %d has number %d, want %d", i, k, n, want)
				}
			}
		}
		if n := l.Stats(); n.Subscribers != 0 || n.Delivered != each*(total+total+total/3) {
			t.Fatalf("%+v", n)
		}
	})
}

func TestFeed_CloseEndsSinks(t *testing.T) {
	t.Parallel()
	l := newLog(t, open(t, freshURL(t, store.SQLite)))
	ended := make(chan error, 1)
	p := newPipe(everything("all"), 0, 1)
	go func() { ended <- p.follow(bounded(t), l, store.EventFilter{}) }()
	if err := appendN(bounded(t), l, 1, ""); err != nil {
		t.Fatal(err)
	}
	<-p.whole
	l.Close()
	if err := <-ended; !errors.Is(err, event.ErrClosed) {
		t.Fatalf("ended with %v", err)
	}
}

// A reader that lacks something must not wait for the next round: the one that wrote
// what it lacks may be over, and no other may come.
func TestFeed_WhoLacksSomethingIsNotWaitingForARound(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, _ string) {
		l := newLog(t, s)
		ctx := bounded(t)
		if err := appendN(ctx, l, 3, ""); err != nil {
			t.Fatal(err)
		}
		for range l.Subscribe(ctx, store.EventFilter{After: 2}) { // until the log has the last in hand
			break
		}
		if l.Joins(2) {
			t.Error("a reader without the last event waits for a round")
		}
		if !l.Joins(3) {
			t.Error("a reader with all events is not written to in rounds")
		}
	})
}
