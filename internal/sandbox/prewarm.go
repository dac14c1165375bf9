package sandbox

import (
	"context"
	"slices"

	squad "agentsquad"
)

// PoolSpec says for what sandboxes are prepared.
type PoolSpec struct {
	// Key names them: who asks with the same [AcquireRequest.PoolKey] may get one.
	Key string
	// Group has one key at a time, say a branch of a repository: a new key of the
	// group ends the sandboxes of the old one. Empty belongs to no group.
	Group string
	// SquadID is the squad whose provider and template are used where Provider and
	// Template are empty. Until they are claimed the sandboxes are nobody's.
	SquadID  string
	Provider string
	Template string
	Mounts   []Mount
}

// maxPrepared bounds how many sandboxes wait for one key.
const maxPrepared = 16

// Prewarm keeps n sandboxes prepared as spec says, and replaces what was kept for
// an older key of its group; 0 ends those of the key. It only notes the wish, so
// that it may be called often; [Service.Run] makes them. The wish lasts until it
// is replaced, the process ends, or a sandbox cannot be made so.
func (s *Service) Prewarm(ctx context.Context, spec PoolSpec, n int) error {
	if spec.Key == "" {
		return squad.Invalid("key", "prepared sandboxes need a key")
	}
	if n < 0 || n > maxPrepared {
		return squad.Invalid("n", "0 to %d sandboxes are prepared for one key", maxPrepared)
	}
	req := AcquireRequest{SquadID: spec.SquadID, Provider: spec.Provider, Template: spec.Template, Mounts: spec.Mounts, PoolKey: spec.Key}
	p, err := s.complete(ctx, &req)
	if err != nil {
		return err
	}
	s.pools.want(poolID{p.name, req.Template, spec.Key}, spec, n)
	return nil
}

// want notes a wish for prepared sandboxes.
func (ps *pools) want(id poolID, spec PoolSpec, n int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for other, kind := range ps.kinds {
		older := spec.Group != "" && kind.group == spec.Group && other.key != spec.Key
		if older || n == 0 && other == id {
			kind.dropped = true
		}
	}
	if n > 0 {
		kind := ps.kinds[id]
		if kind == nil {
			kind = &pool{Pool: Pool{Provider: id.provider, Template: id.template}}
			ps.kinds[id] = kind
		}
		kind.Min, kind.Max, kind.group, kind.dropped = n, max(n, ps.prepared), spec.Group, false
		kind.mounts = slices.Clone(spec.Mounts)
	}
	ps.ring()
}

// drop forgets prepared sandboxes that cannot be made: what they are made of is
// gone. The next who asks for the key starts it anew.
func (ps *pools) drop(id poolID) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if kind := ps.kinds[id]; kind != nil && id.key != "" {
		kind.dropped = true
	}
}
