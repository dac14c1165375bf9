package runner

import (
	"context"
	"time"

	squad "agentsquad"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

// Warm sandboxes have the repository in them, so that a new head of the base makes
// those of the old one useless: the next task would wait for a new one. So where
// work goes on, the newest head is looked at now and then, and after each merge.
const (
	warmEvery = time.Minute
	warmFor   = time.Hour // since the last execution on the repository
)

// keepWarm keeps sandboxes ready on the newest commit of what is worked on.
func (r *Runner) keepWarm(ctx context.Context) {
	if r.cfg.Limits.Warm <= 0 {
		return
	}
	kept := map[string]sandbox.PoolSpec{}
	tick := time.NewTicker(warmEvery)
	defer tick.Stop()
	for {
		if err := r.warmUp(ctx, kept, time.Now()); err != nil && ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "keep sandboxes warm", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.moved:
		}
	}
}

// warmUp looks once. kept is what waits, by repository and branch.
func (r *Runner) warmUp(ctx context.Context, kept map[string]sandbox.PoolSpec, now time.Time) error {
	recent, err := r.cfg.Store.Executions(ctx, store.ExecutionFilter{Newest: true, Limit: 100})
	if err != nil {
		return err
	}
	looked := map[string]bool{}
	for _, e := range recent {
		if now.Sub(e.CreatedAt) > warmFor {
			break
		}
		s, err := r.scene(ctx, e.ID)
		if err != nil {
			continue // its member or repository is gone
		}
		group := s.repo.ID + "/" + s.base()
		if looked[group] {
			continue
		}
		looked[group] = true
		if err := r.warmOne(ctx, s, group, kept); err != nil {
			return err
		}
	}
	for group, spec := range kept {
		if looked[group] {
			continue
		}
		delete(kept, group)
		if err := r.cfg.Sandboxes.Prewarm(ctx, spec, 0); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) warmOne(ctx context.Context, s scene, group string, kept map[string]sandbox.PoolSpec) error {
	tree, err := r.cfg.Gateway.Prepare(ctx, s.provider(), s.repo, s.base())
	if err != nil || len(tree.Mounts) == 0 {
		return ignoreNotFound(err) // the branch is gone, or the provider mounts nothing
	}
	spec := sandbox.PoolSpec{
		Key: tree.Key, Group: group, SquadID: s.squad.ID, Provider: s.provider(), Template: s.template(), Mounts: tree.Mounts,
	}
	kept[group] = spec
	err = r.cfg.Sandboxes.Prewarm(ctx, spec, r.cfg.Limits.Warm)
	if squad.CodeOf(err) == squad.CodeInvalid {
		return nil // a template that is not there: whoever needs it is told
	}
	return err
}

// move says that a base may have moved.
func (r *Runner) move() {
	select {
	case r.moved <- struct{}{}:
	default:
	}
}
