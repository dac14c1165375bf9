package flow_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/flow"
	"agentsquad/internal/pgtest"
	"agentsquad/internal/store"
)

func both(t *testing.T, f func(t *testing.T, s *store.Store)) {
	t.Helper()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			f(t, open(t, freshURL(t, dialect)))
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

// node is an engine that tells the test when a flow ends.
type node struct {
	*flow.Engine
	t     testing.TB
	store *store.Store
	stop  func() error

	mu   sync.Mutex
	ends map[string]chan flow.End
}

func newNode(t testing.TB, s *store.Store, change func(*flow.Config)) *node {
	n := &node{t: t, store: s, ends: map[string]chan flow.End{}}
	cfg := flow.Config{Store: s, Lease: 2 * time.Second, OnEnd: func(_ context.Context, tx *store.Tx, end flow.End) error {
		tx.AfterCommit(func() { n.end(end.ID) <- end })
		return nil
	}}
	if change != nil {
		change(&cfg)
	}
	n.Engine = flow.New(cfg)
	return n
}

func (n *node) end(id string) chan flow.End {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends[id] == nil {
		n.ends[id] = make(chan flow.End, 10)
	}
	return n.ends[id]
}

// run starts the engine; it is stopped, at the latest, with the test.
func (n *node) run() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	n.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	n.t.Cleanup(func() {
		if err := n.stop(); err != nil {
			n.t.Error(err)
		}
	})
}

func (n *node) do(f func(ctx context.Context, tx *store.Tx) error) {
	n.t.Helper()
	if err := n.store.Tx(n.t.Context(), func(tx *store.Tx) error { return f(n.t.Context(), tx) }); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) start(spec flow.Spec) {
	n.t.Helper()
	n.do(func(ctx context.Context, tx *store.Tx) error { return n.Start(ctx, tx, spec) })
}

// wait returns how the flow ended.
func (n *node) wait(id string) flow.End {
	n.t.Helper()
	return receive(n.t, n.end(id))
}

func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(60 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// until asks again and again for something that other goroutines bring about.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !f(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func constant(v any) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return v, nil }
}

func TestFlow_StepsRunInOrderAndOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		var calls atomic.Int64
		n.Register("sum", 1, func(c flow.Context) error {
			var upTo, sum int
			if err := c.Input(&upTo); err != nil {
				return err
			}
			for i := range upTo {
				var v int
				if err := c.Do(fmt.Sprint("add", i), func(context.Context) (any, error) { calls.Add(1); return i, nil }, &v, flow.Retry{}); err != nil {
					return err
				}
				sum += v
			}
			return c.Do("sum", constant(sum), nil, flow.Once)
		})
		n.run()
		n.start(flow.Spec{ID: "a", Name: "sum", Input: 10})
		n.start(flow.Spec{ID: "a", Name: "sum", Input: 10}) // again is nothing
		if end := n.wait("a"); end.Status != store.FlowSucceeded || calls.Load() != 10 {
			t.Fatalf("%+v after %d calls", end, calls.Load())
		}
		steps, err := s.FlowSteps(t.Context(), "a")
		if err != nil || len(steps) != 11 || string(steps[10].Result) != "45" {
			t.Fatalf("journal %+v, %v", steps, err)
		}
	})
}

func TestStart_RollsBackWithItsRow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		n.Register("f", 1, func(flow.Context) error { return nil })
		boom := errors.New("boom")
		err := s.Tx(t.Context(), func(tx *store.Tx) error {
			if err := n.Start(t.Context(), tx, flow.Spec{ID: "x", Name: "f"}); err != nil {
				return err
			}
			return boom
		})
		if !errors.Is(err, boom) {
			t.Fatal(err)
		}
		if _, err := s.Flow(t.Context(), "x"); squad.CodeOf(err) != squad.CodeNotFound {
			t.Fatalf("the flow is there: %v", err)
		}
	})
}

func TestDo_RetriesThenSucceeds(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		var calls atomic.Int64
		n.Register("f", 1, func(c flow.Context) error {
			var got string
			err := c.Do("try", func(context.Context) (any, error) {
				if calls.Add(1) < 4 {
					return nil, errors.New("not yet")
				}
				return "done", nil
			}, &got, flow.Retry{Backoff: time.Millisecond})
			if got != "done" {
				t.Errorf("result %q, %v", got, err)
			}
			return err
		})
		n.run()
		n.start(flow.Spec{ID: "x", Name: "f"})
		if end := n.wait("x"); end.Status != store.FlowSucceeded || calls.Load() != 4 {
			t.Fatalf("%+v after %d calls", end, calls.Load())
		}
	})
}

// A long wait before the next try costs no goroutine: the flow parks.
func TestDo_LongBackoffParks(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		var calls atomic.Int64
		n.Register("f", 1, func(c flow.Context) error {
			return c.Do("try", func(context.Context) (any, error) {
				if calls.Add(1) == 1 {
					return nil, &squad.Error{Code: squad.CodeQuota, Message: "later", RetryAfter: 1200 * time.Millisecond}
				}
				return nil, nil
			}, nil, flow.Retry{Backoff: time.Millisecond})
		})
		n.run()
		n.start(flow.Spec{ID: "x", Name: "f"})
		until(t, "parked", func() bool {
			f, err := s.Flow(t.Context(), "x")
			return err == nil && f.Status == store.FlowParked && !f.WakeAt.IsZero()
		})
		if end := n.wait("x"); end.Status != store.FlowSucceeded || calls.Load() != 2 {
			t.Fatalf("%+v after %d calls", end, calls.Load())
		}
	})
}

func TestDo_LastFailureIsKept(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		var calls atomic.Int64
		n.Register("f", 1, func(c flow.Context) error {
			err := c.Do("bad", func(context.Context) (any, error) {
				calls.Add(1)
				return nil, flow.Permanent(squad.Errorf(squad.CodeRule, "no such thing"))
			}, nil, flow.Retry{})
			if squad.CodeOf(err) != squad.CodeRule {
				t.Errorf("error %v", err)
			}
			// Parks, so that the error is read again from the journal.
			if e := c.Sleep("nap", 5*time.Millisecond); e != nil {
				return e
			}
			return err
		})
		n.run()
		n.start(flow.Spec{ID: "x", Name: "f"})
		end := n.wait("x")
		if end.Status != store.FlowFailed || end.Error != "step bad: no such thing" || calls.Load() != 1 {
			t.Fatalf("%+v after %d calls", end, calls.Load())
		}
	})
}

func TestDo_TimeoutOfOneTry(t *testing.T) {
	t.Parallel()
	n := newNode(t, open(t, freshURL(t, store.SQLite)), nil)
	n.Register("f", 1, func(c flow.Context) error {
		return c.Do("slow", func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, nil,
			flow.Retry{Attempts: 2, Backoff: time.Millisecond, Timeout: 5 * time.Millisecond})
	})
	n.run()
	n.start(flow.Spec{ID: "x", Name: "f"})
	if end := n.wait("x"); end.Status != store.FlowFailed || end.Error != "step slow: the step took longer than 5ms" {
		t.Fatalf("%+v", end)
	}
}

// The row of what a flow works on ends with the flow, whatever ended it, and an
// error there undoes both until it works.
func TestOnEnd_CommitsWithTheEnd(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		n.Register("f", 1, func(flow.Context) error { panic("ouch") })
		var calls atomic.Int64
		n.OnEnd("f", func(ctx context.Context, tx *store.Tx, end flow.End) error {
			if err := tx.SetSetting(ctx, end.ID, string(end.Status)); err != nil {
				return err
			}
			if calls.Add(1) == 1 {
				return errors.New("not yet")
			}
			return nil
		})
		n.run()
		n.start(flow.Spec{ID: "x", Name: "f"})
		n.wait("x")
		if v, err := s.Setting(t.Context(), "x"); err != nil || v != "failed" || calls.Load() != 2 {
			t.Fatalf("%q after %d calls, %v", v, calls.Load(), err)
		}
	})
}

func TestDo_PanicIsAnError(t *testing.T) {
	t.Parallel()
	n := newNode(t, open(t, freshURL(t, store.SQLite)), nil)
	n.Register("step", 1, func(c flow.Context) error {
		return c.Do("p", func(context.Context) (any, error) { panic("ouch") }, nil, flow.Once)
	})
	n.Register("function", 1, func(flow.Context) error { panic("ouch") })
	n.Register("twice", 1, func(c flow.Context) error {
		return errors.Join(c.Do("k", constant(1), nil, flow.Once), c.Do("k", constant(2), nil, flow.Once))
	})
	n.run()
	for name, want := range map[string]string{
		"step": "step p: step panicked: ouch", "function": "workflow function panicked: ouch", "twice": `step key "k" is used twice`,
	} {
		n.start(flow.Spec{ID: name, Name: name})
		if end := n.wait(name); end.Status != store.FlowFailed || end.Error != want {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
