package flow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"agentsquad/internal/store"
)

// maxClaim is how many flows are taken up in one statement.
const maxClaim = 32

// started is the origin of this process's monotonic times.
var started = time.Now()

// Run takes part until ctx ends, then hands over: it takes up nothing new, ends
// the contexts of running steps with [ErrStopping], waits for them as long as a
// lease, and gives up its flows, so that another node, or the next start, goes on
// at once. It returns an error only if the database could not be told.
func (e *Engine) Run(ctx context.Context) error {
	// Steps outlive ctx by the time of the handing over.
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(ErrStopping)
	if e.store.Dialect() == store.SQLite {
		// There is one node only, so whoever held a flow is dead.
		if n, err := e.store.ReleaseFlows(ctx, ""); err != nil {
			return fmt.Errorf("take over flows: %w", err)
		} else if n > 0 {
			e.log.InfoContext(ctx, "flows go on after a crash", "count", n)
		}
	}
	e.renewed.Store(int64(time.Since(started)))
	if err := e.share(ctx); err != nil {
		return err
	}
	service, quit := context.WithCancel(base)
	defer quit()
	var services sync.WaitGroup
	services.Go(func() { e.heartbeat(service) })
	services.Go(func() { e.tell(service) })
	services.Go(func() {
		_ = e.store.Listen(service, []string{channel}, func(_, payload string) {
			if payload == "cancel" {
				nudge(e.beat)
			}
			nudge(e.wake)
		})
	})
	var schedules sync.WaitGroup
	for _, s := range e.schedules {
		schedules.Go(func() { e.keep(ctx, s) })
	}
	e.dispatch(ctx, base)
	err := e.handOver(base, stop)
	schedules.Wait()
	quit()
	services.Wait()
	return err
}

// dispatch takes up flows until ctx ends.
func (e *Engine) dispatch(ctx, base context.Context) {
	for ctx.Err() == nil {
		wait, err := e.pass(ctx, base)
		if err != nil && ctx.Err() == nil {
			e.log.ErrorContext(ctx, "flows cannot be taken up", "error", err)
			wait = time.Second
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// pass wakes what is due and takes up what there is room for; it returns when
// to look again if nobody rings.
func (e *Engine) pass(ctx, base context.Context) (time.Duration, error) {
	// Other nodes' leases run out without a bell.
	wait := min(e.cfg.Lease/4, 2*time.Second)
	next, err := e.store.WakeFlows(ctx)
	if err != nil {
		return wait, err
	}
	if next > 0 {
		wait = min(wait, next)
	}
	queues, err := e.store.ReadyQueues(ctx)
	if err != nil {
		return wait, err
	}
	recipes := e.known()
	for _, q := range queues {
		for {
			n := min(e.free(q), maxClaim)
			claimed, err := e.store.ClaimFlows(ctx, e.cfg.Owner, q, recipes, n, e.cfg.Lease)
			if err != nil {
				return wait, err
			}
			for _, f := range claimed {
				e.begin(base, f)
			}
			if len(claimed) < n || n <= 0 {
				break
			}
		}
	}
	return max(wait, time.Millisecond), nil
}

// tell passes the bell on to other nodes, at most every few milliseconds.
func (e *Engine) tell(ctx context.Context) {
	if e.store.Dialect() == store.SQLite {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.herald:
		}
		payload := "ready"
		if e.cancels.Swap(false) {
			payload = "cancel"
		}
		if err := e.store.Notify(ctx, channel, payload); err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "other nodes were not told", "error", err)
		}
		t := time.NewTimer(3 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// handOver ends all runs and gives up what is held.
func (e *Engine) handOver(base context.Context, stop context.CancelCauseFunc) error {
	e.mu.Lock()
	e.stopping = true
	all := make([]*run, 0, len(e.running))
	for _, r := range e.running {
		all = append(all, r)
	}
	e.mu.Unlock()
	for _, r := range all {
		r.lose(ErrStopping)
	}
	ended := make(chan struct{})
	go func() { e.runs.Wait(); close(ended) }()
	t := time.NewTimer(e.cfg.Lease)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
		e.log.Warn("steps did not end in time; their flows are given up", "flows", len(all))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(base), 10*time.Second)
	defer cancel()
	_, err := e.store.ReleaseFlows(ctx, e.cfg.Owner)
	if err == nil {
		err = e.store.Tx(ctx, func(tx *store.Tx) error { return tx.UnshareRecipes(ctx, e.cfg.Owner) })
	}
	if err == nil {
		err = e.store.Notify(ctx, channel, "ready")
	}
	stop(ErrStopping)
	if err != nil {
		return fmt.Errorf("hand over flows: %w", err)
	}
	return nil
}
