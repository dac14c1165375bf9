package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

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
