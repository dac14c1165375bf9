package gvisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"github.com/google/uuid"

	"agentsquad"
	"agentsquad/internal/tunnel"
)

// Runtime makes and keeps the sandboxes of one data folder. One process may use
// a folder at a time; [New] holds a lock on it.
type Runtime struct {
	cfg     Config
	runsc   *runsc
	cgroups *cgroups
	lock    *os.File
	starts  chan struct{} // bounds how many start at once
	envd    string        // image that holds the daemon

	stop context.CancelFunc // ends the watchdog, where there is one

	mu     sync.Mutex
	boxes  map[string]*Sandbox
	closed bool
}

// New opens the data folder, makes the base template from the host and returns
// a runtime. Call [Runtime.Recover] next to take over what ran before.
func New(cfg Config) (*Runtime, error) {
	cfg = cfg.withDefaults()
	if !filepath.IsAbs(cfg.Dir) {
		return nil, squad.Invalid("dir", "the data folder %q must be an absolute path", cfg.Dir)
	}
	for _, d := range []string{"sandboxes", "templates", "bin", "runsc"} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("open data folder: %w", err)
		}
	}
	spread(filepath.Join(cfg.Dir, "sandboxes"))
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	rootless := os.Geteuid() != 0
	if cfg.Rootless != nil {
		rootless = *cfg.Rootless
	}
	r := &Runtime{
		cfg: cfg, lock: lock,
		runsc:   &runsc{root: filepath.Join(cfg.Dir, "runsc"), rootless: rootless, overlay: cfg.Overlay},
		cgroups: findCgroups(cgroupName(cfg)),
		starts:  make(chan struct{}, cfg.ParallelStarts),
		boxes:   map[string]*Sandbox{},
	}
	if !rootless {
		if r.runsc.netns, err = emptyNetwork(); err != nil {
			cfg.Log.Warn("each sandbox makes a network namespace of its own", "error", err)
		}
	}
	r.cgroups.pruneOthers(cfg.CgroupParent)
	if err := r.prepare(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	if r.cgroups.parents["memory"] == "" {
		go r.guard(ctx)
	}
	return r, nil
}

func (r *Runtime) prepare() error {
	if err := r.installRunsc(); err != nil {
		return err
	}
	if err := r.installEnvd(); err != nil {
		return err
	}
	return r.makeBase()
}

// Warnings names the limits that this machine cannot enforce.
func (r *Runtime) Warnings() []string { return r.cgroups.missing }

// Close stops listening and watching. Sandboxes go on running; a later runtime
// takes them over with [Runtime.Recover].
func (r *Runtime) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	boxes := r.boxes
	r.boxes = map[string]*Sandbox{}
	r.mu.Unlock()
	r.stop()
	for _, s := range boxes {
		s.closeDoor()
		s.unwatch()
	}
	r.cgroups.prune()
	if r.runsc.netns != nil {
		_ = r.runsc.netns.Close()
	}
	return r.lock.Close()
}

func (r *Runtime) folder(id string) folder {
	return folder(filepath.Join(r.cfg.Dir, "sandboxes", id))
}

// Get returns a sandbox that has not ended.
func (r *Runtime) Get(id string) (*Sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.boxes[id]; s != nil {
		return s, nil
	}
	return nil, squad.NotFound("sandbox", id)
}

// List returns all sandboxes that have not ended, oldest first.
func (r *Runtime) List() []*Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Sandbox, 0, len(r.boxes))
	for _, s := range r.boxes {
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i].Info(), all[j].Info()
		if a.CreatedAt.Equal(b.CreatedAt) {
			return a.ID < b.ID
		}
		return a.CreatedAt.Before(b.CreatedAt)
	})
	return all
}

// add puts a new sandbox on the list; the name must be free.
func (r *Runtime) add(s *Sandbox) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return squad.Errorf(squad.CodeUnavailable, "the sandbox runtime is closing")
	}
	if r.boxes[s.id] != nil {
		return squad.Errorf(squad.CodeConflict, "sandbox %q exists already", s.id)
	}
	r.boxes[s.id] = s
	return nil
}

func (r *Runtime) remove(s *Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boxes[s.id] == s {
		delete(r.boxes, s.id)
	}
}

// accept hands a stream from inside to the owner of the runtime.
func (r *Runtime) accept(id string, h tunnel.Header, c net.Conn) {
	if r.cfg.Accept == nil {
		if h.Replied() {
			_ = tunnel.Deny(c, "no way out is configured")
		}
		_ = c.Close()
		return
	}
	r.cfg.Accept(id, h, c)
}

// slot waits for the right to start a sandbox.
func (r *Runtime) slot(ctx context.Context) (release func(), err error) {
	select {
	case r.starts <- struct{}{}:
		return func() { <-r.starts }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a start slot: %w", context.Cause(ctx))
	}
}

// crowded says whether a sandbox that starts now should sleep, not spin, while its
// kernel and its programs wait for each other. To spin answers a system call sooner, and
// where many do it on few processors it takes from all of them more than it saves.
func (r *Runtime) crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	running := 0
	for _, s := range r.boxes {
		if s.Info().Status == squad.SandboxRunning {
			running++
		}
	}
	return running >= r.cfg.Crowd
}

// newSandboxID makes a name for a sandbox that was given none.
func newSandboxID() string {
	id := uuid.New()
	return fmt.Sprintf("%x", id[:10])
}

// userError keeps an error that users may see and hides any other behind a
// sentence.
func userError(code squad.Code, err error, format string, args ...any) error {
	var known *squad.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		code = squad.CodeTimeout
	}
	return squad.Wrap(code, err, format, args...)
}
