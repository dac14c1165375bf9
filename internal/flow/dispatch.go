package flow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	squad "agentsquad"
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

// heartbeat renews all leases in one statement, and learns what was lost and
// what is to be cancelled.
func (e *Engine) heartbeat(ctx context.Context) {
	tick := time.NewTicker(e.cfg.Lease / 3)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-e.beat:
		}
		if err := e.renew(ctx); err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "leases were not renewed", "error", err)
		}
		if n%3 == 0 {
			if err := errors.Join(e.share(ctx), e.failOrphans(ctx)); err != nil && ctx.Err() == nil {
				e.log.WarnContext(ctx, "recipes were not shared", "error", err)
			}
		}
	}
}

// renew asks the database which flows are ours.
func (e *Engine) renew(ctx context.Context) error {
	at := int64(time.Since(started)) // before the question: the lease begins no later
	e.mu.Lock()
	before := make(map[string]*run, len(e.running))
	for id, r := range e.running {
		before[id] = r
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease)
	defer cancel()
	ours, err := e.store.RenewFlows(ctx, e.cfg.Owner, e.cfg.Lease)
	if err != nil {
		return err
	}
	e.renewed.Store(at)
	found, strays := map[string]bool{}, map[string]int64{}
	for _, f := range ours {
		r := before[f.ID]
		if r == nil || r.hold.Fence != f.Fence {
			strays[f.ID] = f.Fence // taken up a moment ago, or lost from sight
			continue
		}
		found[f.ID] = true
		if f.Cancel != "" {
			r.cancel(&Cancelled{f.Cancel})
		}
	}
	for id, r := range before {
		if !found[id] {
			r.lose(ErrLost) // or ended meanwhile, which then has no effect
		}
	}
	return e.freeStrays(ctx, strays)
}

// freeStrays gives up flows that the database holds for us and that we do not
// run: the answer to a claim got lost. Twice in a row, or it may be on its way.
func (e *Engine) freeStrays(ctx context.Context, strays map[string]int64) error {
	was := e.strays
	e.strays = strays
	for id, fence := range strays {
		e.mu.Lock()
		r := e.running[id]
		e.mu.Unlock()
		if was[id] != fence || r != nil && r.hold.Fence == fence {
			continue
		}
		e.log.WarnContext(ctx, "flow was held but not run, giving it up", "flow_id", id)
		if err := e.store.ReleaseFlow(ctx, store.Hold{FlowID: id, Owner: e.cfg.Owner, Fence: fence}); err != nil {
			return err
		}
	}
	return nil
}

// share tells the other nodes what this one can run.
func (e *Engine) share(ctx context.Context) error {
	recipes := e.known()
	return e.store.Tx(ctx, func(tx *store.Tx) error { return tx.ShareRecipes(ctx, e.cfg.Owner, recipes, 3*e.cfg.Lease) })
}

// failOrphans ends flows whose recipe no living node has.
func (e *Engine) failOrphans(ctx context.Context) error {
	orphans, err := e.store.OrphanFlows(ctx, 2*e.cfg.Lease)
	if err != nil {
		return err
	}
	for _, f := range orphans {
		e.mu.Lock()
		newest := e.newest[f.Name]
		e.mu.Unlock()
		reason := fmt.Sprintf("the flow began with version %d of %q, which no running node has any more (newest here: %d); "+
			"start it again, or run the program that began it until it has ended", f.Version, f.Name, newest)
		err := e.store.Tx(ctx, func(tx *store.Tx) error {
			ended, err := tx.EndIdleFlow(ctx, f.ID, store.FlowFailed, reason)
			if err != nil || !ended {
				return err
			}
			return e.ended(ctx, tx, End{ID: f.ID, Name: f.Name, Status: store.FlowFailed, Error: reason})
		})
		if err != nil && squad.CodeOf(err) != squad.CodeStale {
			return err
		}
		e.log.WarnContext(ctx, "flow failed: nobody has its recipe", "flow_id", f.ID, "name", f.Name, "version", f.Version)
	}
	return nil
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
