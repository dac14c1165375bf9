package sandbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// Pool keeps sandboxes of a template ready.
type Pool struct {
	// Provider and Template; empty means the default ones.
	Provider string
	Template string
	// Min wait at all times. Max is how many may wait after a burst, when as many
	// are kept as were taken in the last minutes. Max below Min means Min. With
	// Min 0 a provider that costs money keeps none.
	Min, Max int
}

// demandWindow is how long a claim counts as demand.
const demandWindow = 5 * time.Minute

// pools knows what is wanted warm. What waits is in the database.
type pools struct {
	wake chan struct{}
	// prepared is how many sandboxes may wait for one [AcquireRequest.PoolKey].
	prepared int

	mu    sync.Mutex
	kinds map[poolID]*pool
}

type poolID struct{ provider, template, key string }

type pool struct {
	Pool
	group        string  // of prepared ones, see [PoolSpec]
	mounts       []Mount // of prepared ones
	dropped      bool    // drain all, then forget it
	claims       []time.Time
	hits, misses int64
	rest         time.Time // no refill before, since a limit was reached
}

// quotaRest is how long a pool is left as it is after a limit was reached: what
// room there is belongs to those who work.
const quotaRest = time.Minute

func newPools(configured []Pool, providers map[string]*provider) *pools {
	ps := &pools{wake: make(chan struct{}, 1), prepared: 2, kinds: map[poolID]*pool{}}
	for _, c := range configured {
		p := providers[c.Provider]
		if p == nil {
			continue
		}
		if c.Template == "" {
			c.Template = p.Template
		}
		c.Max = max(c.Max, c.Min)
		if c.Min == 0 && p.PerVCPUSecond+p.PerGiBSecond > 0 {
			c.Max = 0 // what waits costs money: only where it was asked for
		}
		ps.kinds[poolID{c.Provider, c.Template, ""}] = &pool{Pool: c}
	}
	return ps
}

// fits says whether a waiting sandbox can serve the request: waiting ones have
// no environment, network or mounts of their own, save the prepared ones.
func (ps *pools) fits(p *provider, req AcquireRequest) bool {
	if len(req.Env) > 0 || req.Network != nil || req.Lifetime > 0 {
		return false
	}
	return len(req.Mounts) == 0 || req.PoolKey != ""
}

// count notes where a sandbox came from. A key that is asked for is kept warm
// while it is asked for, where the template has a pool at all.
func (ps *pools) count(p *provider, req AcquireRequest, source string) {
	if source == fromTask || !ps.fits(p, req) {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	id := poolID{p.name, req.Template, req.PoolKey}
	kind := ps.kinds[id]
	if kind == nil {
		plain := ps.kinds[poolID{p.name, req.Template, ""}]
		if plain == nil || req.PoolKey == "" {
			return
		}
		kind = &pool{Pool: Pool{Provider: p.name, Template: req.Template, Max: min(ps.prepared, plain.Max)}, mounts: req.Mounts}
		ps.kinds[id] = kind
	}
	kind.claims = append(kind.claims, time.Now())
	result := "hit"
	if source == fromPool {
		kind.hits++
	} else {
		kind.misses++
		result = "miss"
	}
	p.metrics.pool.WithLabelValues(p.name, req.Template, result).Inc()
	ps.ring()
}

// ring wakes the refill.
func (ps *pools) ring() {
	select {
	case ps.wake <- struct{}{}:
	default:
	}
}

// target is how many should wait now; prepared ones without demand are dropped.
// False says that the pool rests.
func (ps *pools) target(id poolID, now time.Time) (want int, mounts []Mount, act bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	kind := ps.kinds[id]
	if kind == nil || kind.dropped {
		delete(ps.kinds, id)
		return 0, nil, true
	}
	if now.Before(kind.rest) {
		return 0, nil, false
	}
	for len(kind.claims) > 0 && now.Sub(kind.claims[0]) > demandWindow {
		kind.claims = kind.claims[1:]
	}
	if id.key != "" && len(kind.claims) == 0 && kind.Min == 0 {
		delete(ps.kinds, id)
		return 0, nil, true
	}
	return min(max(kind.Min, len(kind.claims)), kind.Max), kind.mounts, true
}

// pause lets the pools of a provider rest.
func (ps *pools) pause(provider string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for id, kind := range ps.kinds {
		if id.provider == provider {
			kind.rest = time.Now().Add(quotaRest)
		}
	}
}

func (ps *pools) wants(id poolID) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	kind := ps.kinds[id]
	return kind != nil && !kind.dropped
}

func (ps *pools) ids() []poolID {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ids := make([]poolID, 0, len(ps.kinds))
	for id := range ps.kinds {
		ids = append(ids, id)
	}
	return ids
}

// Pool tells the state of the warm pools, prepared ones by their key.
func (s *Service) Pool(ctx context.Context) ([]squad.PoolState, error) {
	states := []squad.PoolState{}
	for _, id := range s.pools.ids() {
		p := s.providers[id.provider]
		rows, err := s.waiting(ctx, s.store.Query, p, id)
		if err != nil {
			return nil, err
		}
		s.pools.mu.Lock()
		kind := s.pools.kinds[id]
		if kind != nil && !kind.dropped {
			states = append(states, squad.PoolState{
				Provider: id.provider, Template: id.template, Key: id.key, Waiting: len(rows), Min: kind.Min, Max: kind.Max, Hits: kind.hits, Misses: kind.misses,
			})
		}
		s.pools.mu.Unlock()
	}
	slices.SortFunc(states, func(a, b squad.PoolState) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Template, b.Template), cmp.Compare(a.Key, b.Key))
	})
	return states, nil
}

// Drain destroys what waits in the pools of this machine, for an end of the program:
// nobody works in them, and the next start makes new ones. Sandboxes elsewhere end by
// their own time.
func (s *Service) Drain(ctx context.Context) error {
	var errs []error
	for _, id := range s.pools.ids() {
		p := s.providers[id.provider]
		if p.Node == "" {
			continue
		}
		rows, err := s.waiting(ctx, s.store.Query, p, id)
		errs = append(errs, err)
		for _, row := range rows {
			errs = append(errs, s.destroy(ctx, squad.System(), row, ""))
		}
	}
	return errors.Join(errs...)
}

func (s *Service) waiting(ctx context.Context, q *store.Query, p *provider, id poolID) ([]squad.Sandbox, error) {
	pooled := true
	rows, err := q.Sandboxes(ctx, store.SandboxFilter{
		Provider: id.provider, Template: id.template, Node: p.Node, Pooled: &pooled,
		Statuses: []squad.SandboxStatus{squad.SandboxCreated, squad.SandboxRunning},
	})
	out := rows[:0]
	for _, r := range rows {
		if r.RepoURL == id.key {
			out = append(out, r)
		}
	}
	return out, err
}
