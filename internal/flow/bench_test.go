package flow_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"agentsquad/internal/flow"
	"agentsquad/internal/store"
)

// One step of a flow: run, journal, acknowledged.
func BenchmarkFlowStep(b *testing.B) {
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		b.Run(dialect, func(b *testing.B) {
			n := newNode(b, open(b, freshURL(b, dialect)), func(c *flow.Config) { c.Lease = time.Minute })
			times := make(chan []time.Duration, 1)
			n.Register("steps", 1, func(c flow.Context) error {
				var mine []time.Duration
				i := 0
				for b.Loop() {
					i++
					t := time.Now()
					if err := c.Do(fmt.Sprint("s", i), func(context.Context) (any, error) { return i, nil }, nil, flow.Retry{}); err != nil {
						return err
					}
					mine = append(mine, time.Since(t))
				}
				times <- mine
				return nil
			})
			n.run()
			n.start(flow.Spec{ID: "x", Name: "steps"})
			all := receive(b, times)
			n.wait("x")
			slices.Sort(all)
			at := func(p float64) float64 { return float64(all[int(p*float64(len(all)-1))].Microseconds()) / 1000 }
			b.ReportMetric(at(0.50), "p50-ms")
			b.ReportMetric(at(0.99), "p99-ms")
		})
	}
}

// Signal to running again, for a flow parked among 2,000.
func BenchmarkFlowWake(b *testing.B) {
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		b.Run(dialect, func(b *testing.B) {
			n := newNode(b, open(b, freshURL(b, dialect)), func(c *flow.Config) { c.Lease = time.Minute })
			awake := make(chan time.Time, 1)
			n.Register("park", 1, func(c flow.Context) error {
				for {
					if _, err := c.Await("go", 0, nil); err != nil {
						return err
					}
					if err := c.Do(fmt.Sprint("woke", time.Now().UnixNano()), func(context.Context) (any, error) { awake <- time.Now(); return nil, nil }, nil, flow.Once); err != nil {
						return err
					}
				}
			})
			n.Register("crowd", 1, func(c flow.Context) error { _, err := c.Await("never", 0, nil); return err })
			n.run()
			n.do(func(ctx context.Context, tx *store.Tx) error {
				for i := range 2_000 {
					if err := n.Start(ctx, tx, flow.Spec{ID: fmt.Sprint("c", i), Name: "crowd"}); err != nil {
						return err
					}
				}
				return nil
			})
			parked := func(want int) func() bool {
				return func() bool {
					got, err := n.store.CountFlows(b.Context(), store.FlowFilter{Statuses: []store.FlowStatus{store.FlowParked}})
					return err == nil && got == want
				}
			}
			until(b, "all parked", parked(2_000))
			var all []time.Duration
			i := 0
			for b.Loop() {
				b.StopTimer()
				i++
				id := fmt.Sprint("w", i)
				n.start(flow.Spec{ID: id, Name: "park"})
				until(b, "parked", parked(2_000+i))
				b.StartTimer()
				t := time.Now()
				n.do(func(ctx context.Context, tx *store.Tx) error { return n.Signal(ctx, tx, id, "go", nil) })
				all = append(all, receive(b, awake).Sub(t))
				b.StopTimer()
				until(b, "parked again", parked(2_000+i))
				b.StartTimer()
			}
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
