package flow_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/flow"
	"agentsquad/internal/store"
)

func TestAwait_SignalsAreKeptAndTakenInOrder(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		got := make(chan string, 10)
		n.Register("f", 1, func(c flow.Context) error {
			for i := range 3 {
				var v string
				ok, err := c.Await("word", 0, &v)
				if err != nil || !ok {
					return fmt.Errorf("await: %v %w", ok, err)
				}
				if err := c.Do(fmt.Sprint("tell", i), func(context.Context) (any, error) { got <- v; return nil, nil }, nil, flow.Once); err != nil {
					return err
				}
			}
			return nil
		})
		n.start(flow.Spec{ID: "x", Name: "f"})
		send := func(word string) {
			n.do(func(ctx context.Context, tx *store.Tx) error { return n.Signal(ctx, tx, "x", "word", word) })
		}
		send("one") // before it runs at all
		send("two")
		n.run()
		if a, b := receive(t, got), receive(t, got); a != "one" || b != "two" {
			t.Fatalf("got %s %s", a, b)
		}
		until(t, "parked", func() bool {
			f, err := s.Flow(t.Context(), "x")
			return err == nil && f.Status == store.FlowParked && f.Awaits == "word"
		})
		send("three")
		if c := receive(t, got); c != "three" {
			t.Fatalf("got %s", c)
		}
		n.wait("x")
		err := s.Tx(t.Context(), func(tx *store.Tx) error { return n.Signal(t.Context(), tx, "x", "word", "late") })
		if squad.CodeOf(err) != squad.CodeConflict {
			t.Fatalf("signal to an ended flow: %v", err)
		}
	})
}

func TestAwait_TimeoutAndLook(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		n.Register("f", 1, func(c flow.Context) error {
			ok, err := c.Await("never", 20*time.Millisecond, nil)
			if ok || err != nil {
				return fmt.Errorf("first: %v %w", ok, err)
			}
			ok, err = c.Await("never", -1, nil)
			if ok || err != nil {
				return fmt.Errorf("second: %v %w", ok, err)
			}
			return nil
		})
		n.run()
		n.start(flow.Spec{ID: "x", Name: "f"})
		if end := n.wait("x"); end.Status != store.FlowSucceeded {
			t.Fatalf("%+v", end)
		}
	})
}

// A waiting flow is a row: no goroutine, no place in its queue.
func TestAwait_ParkedFlowsCostNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, func(c *flow.Config) { c.Concurrency = map[string]int{"default": 4} })
		n.Register("f", 1, func(c flow.Context) error { _, err := c.Await("go", time.Hour, nil); return err })
		n.run()
		const many = 100
		for i := range many {
			n.start(flow.Spec{ID: fmt.Sprint(i), Name: "f"})
		}
		until(t, "all parked", func() bool {
			got, err := s.CountFlows(t.Context(), store.FlowFilter{Statuses: []store.FlowStatus{store.FlowParked}})
			return err == nil && got == many
		})
		until(t, "none running", func() bool { return len(n.Running()) == 0 })
		n.do(func(ctx context.Context, tx *store.Tx) error { return n.Signal(ctx, tx, "77", "go", nil) })
		if end := n.wait("77"); end.Status != store.FlowSucceeded {
			t.Fatalf("%+v", end)
		}
	})
}

// Signals race with the flow's parking; none may be lost.
func TestAwait_NoSignalFallsBetween(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		const rounds = 60
		n.Register("f", 1, func(c flow.Context) error {
			for range rounds {
				if ok, err := c.Await("go", 0, nil); err != nil || !ok {
					return fmt.Errorf("await: %v %w", ok, err)
				}
			}
			return nil
		})
		n.run()
		n.start(flow.Spec{ID: "x", Name: "f"})
		for range rounds {
			n.do(func(ctx context.Context, tx *store.Tx) error { return n.Signal(ctx, tx, "x", "go", nil) })
			runtime.Gosched()
		}
		if end := n.wait("x"); end.Status != store.FlowSucceeded {
			t.Fatalf("%+v", end)
		}
	})
}

func TestCancel_ReachesARunningStepAndLetsItCleanUp(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, nil)
		running, cleaned := make(chan struct{}, 1), make(chan error, 1)
		n.Register("f", 1, func(c flow.Context) error {
			err := c.Do("long", func(ctx context.Context) (any, error) {
				running <- struct{}{}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}, nil, flow.Retry{})
			cleanup := c.Detach().Do("cleanup", func(ctx context.Context) (any, error) { cleaned <- ctx.Err(); return nil, nil }, nil, flow.Once)
			return errors.Join(err, cleanup)
		})
		n.run()
		n.start(flow.Spec{ID: "x", Name: "f"})
		receive(t, running)
		n.do(func(ctx context.Context, tx *store.Tx) error { return n.Cancel(ctx, tx, "x", "changed my mind") })
		if err := receive(t, cleaned); err != nil {
			t.Fatalf("cleanup began with %v", err)
		}
		if end := n.wait("x"); end.Status != store.FlowCancelled || end.Error != "changed my mind" {
			t.Fatalf("%+v", end)
		}
	})
}

func TestCancel_WakesParkedAndEndsQueued(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, func(c *flow.Config) { c.Concurrency = map[string]int{"closed": 0} })
		n.Register("f", 1, func(c flow.Context) error { return c.Sleep("long", time.Hour) })
		n.run()
		n.start(flow.Spec{ID: "parked", Name: "f"})
		n.start(flow.Spec{ID: "queued", Name: "f", Queue: "closed"})
		until(t, "parked", func() bool {
			f, err := s.Flow(t.Context(), "parked")
			return err == nil && f.Status == store.FlowParked
		})
		for _, id := range []string{"parked", "queued"} {
			n.do(func(ctx context.Context, tx *store.Tx) error { return n.Cancel(ctx, tx, id, "stop") })
			if end := n.wait(id); end.Status != store.FlowCancelled || end.Error != "stop" {
				t.Fatalf("%s: %+v", id, end)
			}
		}
	})
}

func TestCancel_OnAnotherNode(t *testing.T) {
	t.Parallel()
	url := freshURL(t, store.Postgres)
	runs := newNode(t, open(t, url), nil)
	asks := newNode(t, open(t, url), func(c *flow.Config) { c.Concurrency = map[string]int{"default": 0} })
	running := make(chan struct{}, 1)
	fn := func(c flow.Context) error {
		return c.Do("long", func(ctx context.Context) (any, error) { running <- struct{}{}; <-ctx.Done(); return nil, ctx.Err() }, nil, flow.Once)
	}
	for _, n := range []*node{runs, asks} {
		n.Register("f", 1, fn)
		n.run()
	}
	asks.start(flow.Spec{ID: "x", Name: "f"})
	receive(t, running)
	asks.do(func(ctx context.Context, tx *store.Tx) error { return asks.Cancel(ctx, tx, "x", "from afar") })
	if end := runs.wait("x"); end.Status != store.FlowCancelled || end.Error != "from afar" {
		t.Fatalf("%+v", end)
	}
}

func TestRun_HandsOver(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		running := make(chan error, 10)
		var first, second atomic.Int64
		fn := func(c flow.Context) error {
			if err := c.Do("first", func(context.Context) (any, error) { first.Add(1); return nil, nil }, nil, flow.Once); err != nil {
				return err
			}
			return c.Do("second", func(ctx context.Context) (any, error) {
				if second.Add(1) == 1 {
					running <- nil
					<-ctx.Done()
					running <- context.Cause(ctx)
					return nil, ctx.Err()
				}
				return nil, nil
			}, nil, flow.Once)
		}
		a := newNode(t, s, func(c *flow.Config) { c.Lease = time.Hour })
		a.Register("f", 1, fn)
		a.run()
		a.start(flow.Spec{ID: "x", Name: "f"})
		receive(t, running)
		if err := a.stop(); err != nil {
			t.Fatal(err)
		}
		if cause := receive(t, running); !errors.Is(cause, flow.ErrStopping) {
			t.Fatalf("step ended with %v", cause)
		}
		b := newNode(t, s, nil)
		b.Register("f", 1, fn)
		b.run()
		if end := b.wait("x"); end.Status != store.FlowSucceeded || first.Load() != 1 || second.Load() != 2 {
			t.Fatalf("%+v, first ran %d times, second %d", end, first.Load(), second.Load())
		}
	})
}

// A flow goes on with the version it began with while newer ones start with the
// new; when nobody has its version any more, it fails and says so.
func TestRegister_VersionsOfARecipe(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		say := make(chan string, 10)
		recipe := func(word string) func(flow.Context) error {
			return func(c flow.Context) error {
				if _, err := c.Await("go", 0, nil); err != nil {
					return err
				}
				return c.Do("say", func(context.Context) (any, error) { say <- word; return nil, nil }, nil, flow.Once)
			}
		}
		old := newNode(t, s, nil)
		old.Register("f", 1, recipe("old"))
		old.run()
		for _, id := range []string{"kept", "orphan"} {
			old.start(flow.Spec{ID: id, Name: "f"})
			until(t, "parked", func() bool {
				f, err := s.Flow(t.Context(), id)
				return err == nil && f.Status == store.FlowParked
			})
		}
		if err := old.stop(); err != nil {
			t.Fatal(err)
		}
		signal := func(n *node, id string) {
			n.do(func(ctx context.Context, tx *store.Tx) error { return n.Signal(ctx, tx, id, "go", nil) })
		}
		mixed := newNode(t, s, nil)
		mixed.Register("f", 1, recipe("old"))
		mixed.Register("f", 2, recipe("new"))
		mixed.run()
		mixed.start(flow.Spec{ID: "fresh", Name: "f"})
		signal(mixed, "kept")
		if w := receive(t, say); w != "old" {
			t.Fatalf("the flow went on as %s", w)
		}
		signal(mixed, "fresh")
		if w := receive(t, say); w != "new" {
			t.Fatalf("a fresh flow ran as %s", w)
		}
		if err := mixed.stop(); err != nil {
			t.Fatal(err)
		}
		bare := newNode(t, s, func(c *flow.Config) { c.Lease = 60 * time.Millisecond })
		bare.Register("f", 2, recipe("new"))
		bare.run()
		signal(bare, "orphan")
		if end := bare.wait("orphan"); end.Status != store.FlowFailed || !strings.Contains(end.Error, `version 1 of "f"`) {
			t.Fatalf("%+v", end)
		}
	})
}

func TestQueue_LimitAndPriority(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		n := newNode(t, s, func(c *flow.Config) { c.Concurrency = map[string]int{"narrow": 1} })
		order := make(chan string, 20)
		var now, most atomic.Int64
		n.Register("f", 1, func(c flow.Context) error {
			return c.Do("work", func(context.Context) (any, error) {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				order <- c.ID()
				runtime.Gosched()
				return nil, nil
			}, nil, flow.Once)
		})
		for i := range 5 {
			n.start(flow.Spec{ID: fmt.Sprint("low", i), Name: "f", Queue: "narrow"})
			n.start(flow.Spec{ID: fmt.Sprint("high", i), Name: "f", Queue: "narrow", Priority: 5})
		}
		n.run()
		for i := range 10 {
			want := fmt.Sprint("high", i)
			if i >= 5 {
				want = fmt.Sprint("low", i-5)
			}
			if got := receive(t, order); got != want {
				t.Fatalf("turn %d: %s, want %s", i, got, want)
			}
		}
		if most.Load() != 1 {
			t.Fatalf("%d ran at once", most.Load())
		}
	})
}

func TestEvery_OneNodeAtATime(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		var now, runs atomic.Int64
		enough := make(chan struct{})
		for range 3 {
			if s.Dialect() == store.SQLite && runs.Load() > 0 {
				break
			}
			n := newNode(t, s, nil)
			n.Every("tick", 20*time.Millisecond, func(context.Context) error {
				if now.Add(1) > 1 {
					t.Error("two at once")
				}
				runtime.Gosched()
				now.Add(-1)
				if runs.Add(1) == 5 {
					close(enough)
				}
				return errors.New("is only logged")
			})
			n.run()
		}
		receive(t, enough)
	})
}
