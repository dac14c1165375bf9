package sandbox

import (
	"context"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// lease names the right to sweep a provider.
func (p *provider) lease() string { return "sandboxes/" + p.name + "/" + p.Node }

// hold is how long the lease outlives its holder: until the next pass and half
// of another.
func (w *sweep) hold() time.Duration { return w.cfg.SweepEvery + w.cfg.SweepEvery/2 }

// sweeper is who sweeps a provider. Of our own there is no other, and the lease of an
// earlier process is not waited for.
func (s *Service) sweeper(p *provider) string {
	if p.Own {
		return "own/" + p.Node
	}
	return s.cfg.Owner
}

// take gets the lease of the provider.
func (w *sweep) take(ctx context.Context) error {
	return w.store.Tx(ctx, func(tx *store.Tx) error {
		lease, mine, err := tx.AcquireLease(ctx, w.p.lease(), w.sweeper(w.p), w.hold())
		if err == nil && !mine {
			err = squad.Errorf(squad.CodeStale, "sandboxes of provider %s are swept by %s", w.p.name, lease.Owner)
		}
		w.lease = lease
		return err
	})
}

// leave gives the leases back when this process stops, so that the next one
// need not wait for them to run out.
func (s *Service) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		for _, p := range s.providers {
			lease, err := tx.Lease(ctx, p.lease())
			if squad.CodeOf(err) == squad.CodeNotFound || err == nil && lease.Owner != s.sweeper(p) {
				continue
			}
			if err == nil {
				err = tx.ReleaseLease(ctx, lease)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.log.WarnContext(ctx, "give back leases of sandboxes", "error", err)
	}
}

// fenced writes only while the lease is still ours, and keeps it so.
func (w *sweep) fenced(ctx context.Context, f func(tx *store.Tx) error) error {
	return w.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.RenewLease(ctx, &w.lease, w.hold()); err != nil {
			return err
		}
		return f(tx)
	})
}
