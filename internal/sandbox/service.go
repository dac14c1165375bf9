package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/store"
)

// Config is what a [Service] is made of.
type Config struct {
	Store *store.Store
	// Providers by name, at least one.
	Providers map[string]Provider
	// Default names the provider that is used unless a squad or a request says
	// otherwise. May be empty where there is one provider.
	Default string
	// Installation labels our sandboxes at the provider. Defaults to an
	// identifier kept in the database.
	Installation string
	// Owner names this process in leases. Defaults to a new identifier.
	Owner string
	// Pools are kept warm.
	Pools []Pool
	// Retry bounds repetition. Defaults: 3 tries, 1 s to 10 s apart.
	Retry Retry
	// SweepEvery is how often health and agreement are checked. Defaults to 30 s.
	SweepEvery time.Duration
	// Grace is how long a sandbox may be without its row's word, and a row without
	// its sandbox, before the sweep calls it left over. Defaults to 2 min; it must
	// be longer than a creation takes.
	Grace time.Duration
	// MaxAge is when a sandbox that no execution holds is destroyed. Defaults to 24 h.
	MaxAge time.Duration
	// Retention is how long rows of ended sandboxes stay. Defaults to 7 days.
	Retention time.Duration
	// CommandTimeout bounds commands that name no bound. Defaults to 5 min.
	CommandTimeout time.Duration
	// MaxOutput bounds what a command result keeps of each stream. Defaults to 1 MiB.
	MaxOutput int
	// Nodes are the other nodes on the same database; nil where there are none.
	Nodes Nodes
	// OnLost is told of sandboxes that were found dead, after the commit.
	OnLost func(context.Context, squad.Sandbox)
	// Metrics gets our collectors; nil keeps them to ourselves.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Service is the life of sandboxes. It is safe for concurrent use.
type Service struct {
	cfg       Config
	store     *store.Store
	providers map[string]*provider
	metrics   *metrics
	log       *slog.Logger
	pools     *pools
	began     time.Time

	mu      sync.Mutex
	handles map[string]*e2b.Sandbox // by row id
	making  map[string]*sync.Mutex  // by row id
	charged map[string]time.Time    // by row id: until when its cost is booked
	peers   map[string]*provider    // by provider and node

}

const settingInstallation = "sandbox.installation"

// New makes a service. It reads the database, and speaks to no provider.
func New(ctx context.Context, cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	if cfg.Store == nil || len(cfg.Providers) == 0 {
		return nil, errors.New("make sandbox service: a store and a provider are needed")
	}
	if cfg.Default == "" && len(cfg.Providers) == 1 {
		cfg.Default = slices.Collect(maps.Keys(cfg.Providers))[0]
	}
	if _, ok := cfg.Providers[cfg.Default]; !ok {
		return nil, fmt.Errorf("make sandbox service: default provider %q is not among the providers", cfg.Default)
	}
	if cfg.Installation == "" {
		id, err := installation(ctx, cfg.Store)
		if err != nil {
			return nil, fmt.Errorf("make sandbox service: %w", err)
		}
		cfg.Installation = id
	}
	s := &Service{
		cfg: cfg, store: cfg.Store, log: cfg.Log, metrics: newMetrics(cfg.Metrics), began: time.Now(),
		providers: map[string]*provider{}, handles: map[string]*e2b.Sandbox{},
		making: map[string]*sync.Mutex{}, charged: map[string]time.Time{}, peers: map[string]*provider{},
	}
	for name, p := range cfg.Providers {
		if p.Client == nil {
			return nil, fmt.Errorf("make sandbox service: provider %s has no client", name)
		}
		s.providers[name] = newProvider(name, p, cfg.Retry, s.metrics, s.log)
	}
	s.pools = newPools(cfg.Pools, s.providers)
	return s, nil
}

func (c Config) withDefaults() Config {
	orDuration := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	orDuration(&c.SweepEvery, 30*time.Second)
	orDuration(&c.Grace, 2*time.Minute)
	orDuration(&c.MaxAge, 24*time.Hour)
	orDuration(&c.Retention, 7*24*time.Hour)
	orDuration(&c.CommandTimeout, 5*time.Minute)
	if c.MaxOutput == 0 {
		c.MaxOutput = 1 << 20
	}
	if c.Owner == "" {
		c.Owner = squad.NewID()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Retry = c.Retry.withDefaults()
	return c
}

// installation reads the label of this installation, and makes it the first time.
func installation(ctx context.Context, st *store.Store) (id string, err error) {
	err = st.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, settingInstallation); err != nil {
			return err
		}
		id, err = tx.Setting(ctx, settingInstallation)
		if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
			return err
		}
		if id == "" {
			id = squad.NewID()
			return tx.SetSetting(ctx, settingInstallation, id)
		}
		return nil
	})
	return id, err
}

// Run keeps pools warm, sandboxes observed and both sides in agreement, until
// ctx ends. It returns nil then.
func (s *Service) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { s.greet(ctx) })
	group.Go(func() { s.every(ctx, s.cfg.SweepEvery, nil, s.sweepAll) })
	group.Go(func() { s.every(ctx, s.cfg.SweepEvery, s.pools.wake, s.refill) })
	group.Wait()
	s.leave(ctx)
	return nil
}

// every calls f at once, then by the clock and by the bell.
func (s *Service) every(ctx context.Context, d time.Duration, bell <-chan struct{}, f func(context.Context)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		f(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-bell:
		}
	}
}

// provider returns a provider by name, "" meaning the default.
func (s *Service) provider(name string) (*provider, error) {
	if name == "" {
		name = s.cfg.Default
	}
	p := s.providers[name]
	if p == nil {
		return nil, squad.Invalid("provider", "there is no sandbox provider %q here; configured: %v", name, slices.Sorted(maps.Keys(s.providers)))
	}
	return p, nil
}

// of returns the provider of a row: on the node where its sandbox is.
func (s *Service) of(ctx context.Context, row squad.Sandbox) (*provider, error) {
	p := s.providers[row.Provider]
	if p == nil {
		return nil, squad.Errorf(squad.CodeUnavailable, "sandbox %s belongs to provider %q, which is not configured here", row.ID, row.Provider)
	}
	if row.Node == p.Node || row.Status.Final() {
		return p, nil
	}
	return s.peer(ctx, p, row)
}

// own reads a sandbox that is the actor's to use.
func (s *Service) own(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error) {
	row, err := s.store.Sandbox(ctx, id)
	if squad.CodeOf(err) == squad.CodeNotFound || err == nil && !actor.OwnsSandbox(row) {
		return squad.Sandbox{}, squad.NotFound("sandbox", id)
	}
	return row, err
}

// lock makes work on one row single in this process; between processes the
// epoch of the execution that holds it does.
func (s *Service) lock(id string) func() {
	s.mu.Lock()
	m := s.making[id]
	if m == nil {
		m = new(sync.Mutex)
		s.making[id] = m
	}
	s.mu.Unlock()
	m.Lock()
	return m.Unlock
}

func (s *Service) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handles, id)
	delete(s.making, id)
	delete(s.charged, id)
}
