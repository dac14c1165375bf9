package flow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentsquad/internal/flow"
	"agentsquad/internal/store"
)

// The database throws every connection out, again and again; the results of
// steps wait until they can be written, and every flow ends.
func TestFlow_OutlivesBrokenConnections(t *testing.T) {
	t.Parallel()
	url := freshURL(t, store.Postgres)
	s := open(t, url)
	n := newNode(t, s, func(c *flow.Config) { c.Lease = 10 * time.Second })
	n.Register("f", 1, func(c flow.Context) error {
		for i := range 10 {
			step := func(context.Context) (any, error) { time.Sleep(time.Millisecond); return i, nil }
			if err := c.Do(fmt.Sprint("s", i), step, nil, flow.Retry{}); err != nil {
				return err
			}
		}
		return nil
	})
	n.run()
	for i := range 30 {
		n.start(flow.Spec{ID: fmt.Sprint("x", i), Name: "f"})
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for range 3 {
		const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
		if _, err := conn.Exec(t.Context(), cut); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all ended", func() bool {
		got, err := s.CountFlows(t.Context(), store.FlowFilter{Statuses: []store.FlowStatus{store.FlowSucceeded}})
		return err == nil && got == 30
	})
}
