package git

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	squad "agentsquad"
)

// Source says where a repository's mirror comes from.
type Source struct {
	ID  string // names the folder of the mirror
	URL string // upstream address; empty where Dir is the repository itself
	// Dir is the bare repository of the local forge. Such a mirror is never
	// fetched: it is the original.
	Dir string
}

// MirrorsConfig describes [Mirrors].
type MirrorsConfig struct {
	Dir    string  // folder that holds the mirrors
	Runner *Runner // must be allowed to read by path
	// Auth gives the credential for upstream; nil means none is needed.
	Auth func(ctx context.Context, repositoryID string) (user, secret string, err error)
	// Fresh is how old a fetch may be to be good enough; default 2 s.
	Fresh time.Duration
	// FetchTimeout bounds one fetch; default 15 minutes.
	FetchTimeout time.Duration
	Log          *slog.Logger
}

// Mirrors keeps one bare copy of each upstream repository, shared by all who read
// it. Fetches of one repository are joined: those who ask while one runs get its
// result. It is safe for concurrent use.
type Mirrors struct {
	cfg MirrorsConfig

	mu  sync.Mutex
	all map[string]*Mirror
}

// NewMirrors makes the keeper of mirrors.
func NewMirrors(cfg MirrorsConfig) *Mirrors {
	if cfg.Fresh == 0 {
		cfg.Fresh = 2 * time.Second
	}
	if cfg.FetchTimeout == 0 {
		cfg.FetchTimeout = 15 * time.Minute
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Mirrors{cfg: cfg, all: map[string]*Mirror{}}
}

// Runner returns the runner of the mirrors.
func (s *Mirrors) Runner() *Runner { return s.cfg.Runner }

var safeID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// Open returns the mirror of a repository without touching the network or disk.
func (s *Mirrors) Open(src Source) (*Mirror, error) {
	if !safeID.MatchString(src.ID) {
		return nil, squad.Invalid("id", "%q cannot name a mirror", src.ID)
	}
	if src.Dir == "" {
		if err := CheckURL(src.URL); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.all[src.ID]; m != nil && m.src == src {
		return m, nil
	}
	m := &Mirror{keeper: s, src: src, dir: src.Dir}
	if m.dir == "" {
		m.dir = filepath.Join(s.cfg.Dir, src.ID+".git")
	}
	s.all[src.ID] = m
	return m, nil
}

// EndFetches ends the fetches that run, and returns when none of them works on a
// mirror any more: what asked for them has ended.
func (s *Mirrors) EndFetches() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.all))
	s.mu.Unlock()
	for _, m := range all {
		m.mu.Lock()
		f := m.flight
		m.mu.Unlock()
		if f != nil {
			f.cancel()
			<-f.done
		}
	}
}

// Mirror is the bare copy of one repository.
type Mirror struct {
	keeper *Mirrors
	src    Source
	dir    string

	// refs is held for reading by whoever changes single refs (a push) and for
	// writing by a fetch, whose pruning would otherwise remove a ref that was
	// pushed upstream after the fetch had listed upstream's refs.
	refs  sync.RWMutex
	asked time.Time // when upstream was asked for its default branch; guarded by refs

	mu      sync.Mutex
	flight  *flight
	fetched time.Time
	doubted bool      // reading failed as if objects were damaged
	cleared time.Time // when a doubt was last found to be wrong
}

type flight struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Dir is the folder of the bare repository; it exists after the first Fetch.
func (m *Mirror) Dir() string { return m.dir }

// Local says whether the mirror is the original itself.
func (m *Mirror) Local() bool { return m.src.Dir != "" }

// URL is the upstream address, empty for a local one.
func (m *Mirror) URL() string { return m.src.URL }

// Auth returns the credential for upstream.
func (m *Mirror) Auth(ctx context.Context) (Auth, error) {
	if m.Local() || m.keeper.cfg.Auth == nil {
		return Auth{}, nil
	}
	user, secret, err := m.keeper.cfg.Auth(ctx, m.src.ID)
	if err != nil {
		return Auth{}, fmt.Errorf("read credential of repository %s: %w", m.src.ID, err)
	}
	return Auth{URL: m.src.URL, User: user, Secret: secret}, nil
}

// HoldRefs keeps fetches away while the caller changes refs; call the returned
// function to let go.
func (m *Mirror) HoldRefs() func() {
	m.refs.RLock()
	return m.refs.RUnlock
}

// Fetch makes the mirror hold what upstream holds, unless a fetch within the
// keeper's Fresh did so already. Concurrent callers share one fetch, which goes on
// when the caller that began it leaves. A damaged mirror is rebuilt.
func (m *Mirror) Fetch(ctx context.Context, progress func(Progress)) error {
	if m.Local() {
		if _, err := os.Stat(filepath.Join(m.dir, "HEAD")); err != nil {
			return squad.Wrap(squad.CodeNotFound, err, "the repository has no data on this server")
		}
		return nil
	}
	if progress == nil {
		progress = ProgressOf(ctx)
	}
	m.mu.Lock()
	if m.flight == nil && time.Since(m.fetched) < m.keeper.cfg.Fresh {
		m.mu.Unlock()
		return nil
	}
	f := m.flight
	if f == nil {
		// The fetch serves others too, so it does not end with this caller; the
		// timeout ends it, and [Mirrors.EndFetches].
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.keeper.cfg.FetchTimeout)
		f = &flight{cancel: cancel, done: make(chan struct{})}
		m.flight = f
		go m.fly(c, f, progress)
	}
	m.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.done:
		return f.err
	}
}

// Exists says whether there is something to read from, fresh or not.
func (m *Mirror) Exists() bool {
	_, err := os.Stat(filepath.Join(m.dir, "HEAD"))
	return err == nil
}

func (m *Mirror) fly(ctx context.Context, f *flight, progress func(Progress)) {
	defer f.cancel()
	m.refs.Lock()
	f.err = m.update(ctx, progress)
	m.refs.Unlock()
	m.mu.Lock()
	m.flight = nil
	if f.err == nil {
		m.fetched = time.Now()
	}
	m.mu.Unlock()
	close(f.done)
}

// Doubt is told that reading failed as it does where objects are damaged, which a
// fetch alone does not notice. The next Fetch looks at every object, and rebuilds the
// mirror where one is bad. It says whether that is worth waiting for.
func (m *Mirror) Doubt(err error) bool {
	var failed *Error
	if m.Local() || !errors.As(err, &failed) || failed.Kind != KindCorrupt && !strings.Contains(failed.Stderr, "pack-objects died") {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.cleared) < doubtPause {
		return false
	}
	m.doubted, m.fetched = true, time.Time{}
	return true
}

// doubtPause bounds how often whoever reads can have all objects looked at in vain.
const doubtPause = 10 * time.Minute

func (m *Mirror) update(ctx context.Context, progress func(Progress)) error {
	m.mu.Lock()
	doubted := m.doubted
	m.mu.Unlock()
	err := m.fetchInto(ctx, m.dir, progress)
	kind := KindOf(err)
	if !doubted && err == nil || err != nil && kind != KindCorrupt && kind != KindOther {
		return err
	}
	bad := m.damaged(ctx, doubted || kind == KindCorrupt)
	m.mu.Lock()
	m.doubted = false
	if !bad {
		m.cleared = time.Now()
	}
	m.mu.Unlock()
	if !bad {
		return err
	}
	m.keeper.cfg.Log.WarnContext(ctx, "mirror is damaged and will be rebuilt", "repository_id", m.src.ID, "error", err)
	return m.rebuild(ctx, progress)
}

// damaged says whether the mirror itself, and not upstream, is at fault. To read every
// object takes long; else it is asked only whether they are there.
func (m *Mirror) damaged(ctx context.Context, every bool) bool {
	r := m.keeper.cfg.Runner
	if _, err := r.Line(ctx, m.dir, "rev-parse", "--git-dir"); err != nil {
		return true
	}
	args := []string{"fsck", "--no-dangling", "--no-progress"}
	if !every {
		args = append(args, "--connectivity-only")
	}
	_, err := r.Run(ctx, Call{Dir: m.dir, Args: args, Timeout: 10 * time.Minute})
	return err != nil && ctx.Err() == nil
}

// rebuild makes a new mirror beside the damaged one and takes its place. What can
// still be read of the refs that exist nowhere else (checkpoints, pushes that wait
// for upstream) is carried over; the damaged folder is kept.
func (m *Mirror) rebuild(ctx context.Context, progress func(Progress)) error {
	fresh := m.dir + ".rebuild"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("clear %s: %w", fresh, err)
	}
	if err := m.fetchInto(ctx, fresh, progress); err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	m.rescue(ctx, fresh)
	old := m.dir + ".damaged"
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("clear %s: %w", old, err)
	}
	if err := os.Rename(m.dir, old); err != nil {
		return fmt.Errorf("set damaged mirror aside: %w", err)
	}
	if err := os.Rename(fresh, m.dir); err != nil {
		return fmt.Errorf("put rebuilt mirror in place: %w", err)
	}
	return nil
}

func (m *Mirror) rescue(ctx context.Context, fresh string) {
	r := m.keeper.cfg.Runner
	refs, err := r.Line(ctx, m.dir, "for-each-ref", "--format=%(refname)", "refs/squad/")
	if err != nil {
		m.keeper.cfg.Log.WarnContext(ctx, "damaged mirror lists no refs", "repository_id", m.src.ID, "error", err)
		return
	}
	for _, ref := range strings.Fields(refs) {
		if _, err := r.Run(ctx, Call{Dir: fresh, Args: []string{"fetch", "--quiet", "--no-tags", "--", m.dir, ref + ":" + ref}}); err != nil {
			m.keeper.cfg.Log.WarnContext(ctx, "ref of damaged mirror is lost", "repository_id", m.src.ID, "ref", ref, "error", err)
		}
	}
}
