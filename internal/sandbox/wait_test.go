package sandbox_test

import (
	"context"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// contextUntil ends when the condition holds, or when it is cancelled.
func contextUntil(t *testing.T, holds func() bool) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	if holds != nil {
		go func() {
			for !holds() && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			cancel()
		}()
	}
	return ctx, cancel
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 6000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

// waitPool waits until n sandboxes wait in the pool, ready.
func (h *house) waitPool(n int) {
	h.t.Helper()
	pooled := true
	waitFor(h.t, "the pool", func() bool {
		rows, err := h.store.Sandboxes(h.t.Context(), store.SandboxFilter{Pooled: &pooled, Statuses: []squad.SandboxStatus{squad.SandboxRunning}})
		return err == nil && len(rows) == n
	})
}
