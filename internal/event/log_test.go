package event_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/pgtest"
	"agentsquad/internal/store"
)

func both(t *testing.T, f func(t *testing.T, s *store.Store, url string)) {
	t.Helper()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := freshURL(t, dialect)
			f(t, open(t, url), url)
		})
	}
}

func freshURL(t testing.TB, dialect string) string {
	t.Helper()
	if dialect == store.Postgres {
		return pgtest.URL(t)
	}
	return "sqlite:" + filepath.Join(t.TempDir(), "squad.db")
}

func open(t testing.TB, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newLog(t testing.TB, s *store.Store) *event.Log {
	t.Helper()
	l := event.NewLog(s, nil)
	t.Cleanup(l.Close)
	return l
}

// bounded is the test's context with an end, so that a lost event fails the
// test instead of hanging it.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// collect reads n events.
func collect(ctx context.Context, l *event.Log, f store.EventFilter, n int) ([]squad.Event, error) {
	var out []squad.Event
	f.Limit = n
	for e, err := range l.Subscribe(ctx, f) {
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

func wantGapless(t *testing.T, events []squad.Event, from int64) {
	t.Helper()
	for i, e := range events {
		if e.Seq != from+int64(i) {
			t.Fatalf("event %d has number %d, want %d", i, e.Seq, from+int64(i))
		}
	}
}

func appendN(ctx context.Context, l *event.Log, n int, taskID string) error {
	for i := range n {
		e := squad.Event{Type: squad.EventLog, TaskID: taskID, Payload: event.Payload(squad.LogChunk{Text: fmt.Sprint(i)})}
		if err := l.Append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func TestSubscribe_StoredThenLiveWithoutGap(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, _ string) {
		ctx, l := bounded(t), newLog(t, s)
		if err := appendN(ctx, l, 50, "a"); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				got, err := collect(ctx, l, store.EventFilter{After: 10}, 90)
				if err != nil {
					t.Error(err)
					return
				}
				wantGapless(t, got, 11)
			})
		}
		if err := appendN(ctx, l, 50, "b"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
	})
}

func TestSubscribe_OtherNodeHears(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	ctx := bounded(t)
	here, there := newLog(t, open(t, url)), newLog(t, open(t, url))
	got := make(chan []squad.Event, 1)
	go func() {
		events, err := collect(ctx, there, store.EventFilter{}, 100)
		if err != nil {
			t.Error(err)
		}
		got <- events
	}()
	if err := appendN(ctx, here, 100, "x"); err != nil {
		t.Fatal(err)
	}
	wantGapless(t, <-got, 1)
}

func TestSubscribe_CloseEndsReaders(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, _ string) {
		l := newLog(t, s)
		ended := make(chan error, 1)
		begun := make(chan struct{})
		go func() {
			for _, err := range l.Subscribe(bounded(t), store.EventFilter{}) {
				if err != nil {
					ended <- err
					return
				}
				close(begun)
			}
		}()
		if err := appendN(bounded(t), l, 1, ""); err != nil {
			t.Fatal(err)
		}
		<-begun
		l.Close()
		if err := <-ended; !errors.Is(err, event.ErrClosed) {
			t.Fatalf("ended with %v", err)
		}
		if err := l.Append(t.Context(), squad.Event{Type: squad.EventLog}); !errors.Is(err, event.ErrClosed) {
			t.Fatalf("append after close: %v", err)
		}
	})
}

func TestSubscribe_FilterSeesOnlyItsStream(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store, _ string) {
		ctx, l := bounded(t), newLog(t, s)
		for range 10 {
			if err := errors.Join(appendN(ctx, l, 1, "a"), appendN(ctx, l, 1, "b")); err != nil {
				t.Fatal(err)
			}
		}
		// A second log knows none of them from memory: it reads the database.
		for _, l := range []*event.Log{l, newLog(t, s)} {
			got, err := collect(ctx, l, store.EventFilter{TaskID: "b"}, 10)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range got {
				if e.TaskID != "b" || e.Seq != int64(2*i+2) {
					t.Fatalf("event %d: %+v", i, e)
				}
			}
		}
	})
}

// A reader that is slower than memory lasts reads on from the database, and
// writers do not wait for it.
func TestSubscribe_SlowReaderLosesNothing(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string][2]int{"by number": {50, 1 << 20}, "by size": {1000, 50 * 300}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, s *store.Store, _ string) {
				l := newLog(t, s)
				l.KeepOnly(keep[0], keep[1])
				slowReader(t, l)
			})
		})
	}
}

func slowReader(t *testing.T, l *event.Log) {
	ctx := bounded(t)
	const total = 1000
	first, resume := make(chan struct{}), make(chan struct{})
	result := make(chan []squad.Event, 1)
	go func() {
		var got []squad.Event
		for e, err := range l.Subscribe(ctx, store.EventFilter{Limit: total}) {
			if err != nil {
				t.Error(err)
				break
			}
			if got = append(got, e); len(got) == 1 {
				close(first)
				<-resume
			}
		}
		result <- got
	}()
	es := make([]squad.Event, 20)
	for i := range es {
		es[i] = squad.Event{Type: squad.EventLog}
	}
	for i := range total / len(es) {
		if err := l.Append(ctx, es...); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-first
		}
	}
	if _, err := collect(ctx, l, store.EventFilter{After: total - 10}, 10); err != nil {
		t.Fatal(err)
	}
	if n := l.Stats().Buffered; n > 500 {
		t.Errorf("%d events are kept in memory", n)
	}
	close(resume)
	got := <-result
	if len(got) != total {
		t.Fatalf("read %d of %d", len(got), total)
	}
	wantGapless(t, got, 1)
	if l.Stats().CatchUps == 0 {
		t.Fatal("the reader never went to the database")
	}
}

func TestAppend_BadEventIsRefusedAlone(t *testing.T) {
	t.Parallel()
	l := newLog(t, open(t, freshURL(t, store.SQLite)))
	for name, e := range map[string]squad.Event{
		"no type":   {},
		"not JSON":  {Type: "x", Payload: []byte("{")},
		"too large": {Type: "x", Payload: event.Payload(string(make([]byte, 2<<20)))},
	} {
		if err := l.Append(t.Context(), e); squad.CodeOf(err) != squad.CodeInvalid && squad.CodeOf(err) != squad.CodeTooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
}
