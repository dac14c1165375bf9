package sandbox

import (
	"context"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// refill brings each pool to its target, one sandbox at a time per pool.
func (s *Service) refill(ctx context.Context) {
	if err := s.drainForgotten(ctx); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "drain forgotten sandboxes", "error", err)
	}
	for _, id := range s.pools.ids() {
		if err := s.refillOne(ctx, id); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "refill pool", "provider", id.provider, "template", id.template, "error", err)
		}
	}
}

// drainForgotten ends waiting sandboxes that no pool wants: prepared ones from
// before a restart, or those of a pool that is no longer configured. Young ones
// may be wanted by another node.
func (s *Service) drainForgotten(ctx context.Context) error {
	pooled, now := true, time.Now()
	rows, err := s.store.Sandboxes(ctx, store.SandboxFilter{
		Pooled: &pooled, Statuses: []squad.SandboxStatus{squad.SandboxRunning}, CreatedBefore: now.Add(-2 * demandWindow),
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if p := s.providers[row.Provider]; p == nil || p.Node != row.Node || s.pools.wants(poolID{row.Provider, row.Template, row.RepoURL}) {
			continue
		}
		if err := s.drain(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) refillOne(ctx context.Context, id poolID) error {
	p := s.providers[id.provider]
	for ctx.Err() == nil {
		want, mounts, act := s.pools.target(id, time.Now())
		if !act {
			return nil
		}
		row, surplus, err := s.reserve(ctx, p, id, want)
		if err != nil {
			return err
		}
		for _, r := range surplus {
			if err := s.drain(ctx, r); err != nil {
				return err
			}
		}
		if row.ID == "" {
			return nil
		}
		unlock := s.lock(row.ID)
		_, err = s.make(ctx, p, row, AcquireRequest{Mounts: mounts}, true)
		unlock()
		switch squad.CodeOf(err) {
		case squad.CodeQuota:
			s.pools.pause(id.provider)
		case squad.CodeInvalid, squad.CodeNotFound:
			s.pools.drop(id)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// reserve writes the row of one more waiting sandbox where one is missing, and
// names those that are too many. Count and row are one transaction under a lock,
// so that nodes that share a provider do not both fill the last place.
func (s *Service) reserve(ctx context.Context, p *provider, id poolID, want int) (row squad.Sandbox, surplus []squad.Sandbox, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		row, surplus = squad.Sandbox{}, nil
		if err := tx.Lock(ctx, "sandbox-pool/"+id.provider+"/"+p.Node); err != nil {
			return err
		}
		rows, err := s.waiting(ctx, tx.Query, p, id)
		if err != nil {
			return err
		}
		if id.key == "" { // keys are too many for labels; [Service.Pool] tells them
			s.metrics.waiting.WithLabelValues(id.provider, id.template).Set(float64(len(rows)))
		}
		if len(rows) > want {
			surplus = rows[want:]
			return nil
		}
		if len(rows) == want {
			return nil
		}
		if err := s.room(ctx, tx, p); err != nil {
			if squad.CodeOf(err) == squad.CodeQuota {
				return nil // those who work come first
			}
			return err
		}
		row = squad.Sandbox{
			ID: squad.NewID(), Provider: p.name, Node: p.Node, Template: id.template, Status: squad.SandboxCreated,
			Pooled: true, RepoURL: id.key, CPU: p.CPU, MemoryMB: p.MemoryMB,
		}
		return s.begin(ctx, tx, &row, squad.System())
	})
	return row, surplus, err
}

// evict makes room at a provider that has none: one waiting sandbox ends, of any
// pool. False says that none waits.
func (s *Service) evict(ctx context.Context, p *provider) bool {
	pooled := true
	rows, err := s.store.Sandboxes(ctx, store.SandboxFilter{
		Provider: p.name, Node: p.Node, Pooled: &pooled, Statuses: []squad.SandboxStatus{squad.SandboxRunning}, Limit: 1,
	})
	if err != nil || len(rows) == 0 {
		return false
	}
	s.pools.pause(p.name)
	if err := s.drain(ctx, rows[0]); err != nil {
		s.log.WarnContext(ctx, "evict waiting sandbox", "sandbox_id", rows[0].ID, "error", err)
		return false
	}
	return true
}

// drain takes a waiting sandbox out of the pool and destroys it; one that was
// claimed meanwhile is left alone.
func (s *Service) drain(ctx context.Context, row squad.Sandbox) error {
	taken := false
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		r, err := tx.Sandbox(ctx, row.ID)
		if err != nil || !r.Pooled || r.Status != squad.SandboxRunning {
			return err
		}
		r.Pooled, taken = false, true
		return tx.UpdateSandbox(ctx, &r)
	})
	if err != nil || !taken {
		return err
	}
	return s.destroy(ctx, squad.System(), row, "")
}
