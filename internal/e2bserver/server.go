package e2bserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	squad "agentsquad"
)

// Server is the E2B-compatible API and the traffic proxy. Make it with [New],
// start it with [Server.Run].
type Server struct {
	cfg       Config
	log       *slog.Logger
	seed      seed
	host      Host
	routes    http.Handler
	proxy     http.Handler
	deadlines *deadlines
	library   *library
	ready     chan struct{} // closed once what was left by an earlier run is known
	work      sync.WaitGroup
	// workCtx ends with Run; builds and background changes hang on it.
	workCtx  context.Context
	stopWork context.CancelFunc

	mu      sync.RWMutex
	boxes   map[string]*box
	pending map[string]int    // starts under way, by owner
	gone    map[string]string // lost ones, and why
}

// New prepares a server: it makes its folders and reads its templates. Nothing
// is answered before [Server.Run] has looked at the sandboxes that exist.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if cfg.Host == nil || cfg.Keys == nil || cfg.Dir == "" {
		return nil, errors.New("e2b server needs a host, a folder and keys")
	}
	s := &Server{
		cfg: cfg, log: cfg.Log, host: cfg.Host, ready: make(chan struct{}),
		deadlines: newDeadlines(cfg.Now),
		boxes:     map[string]*box{}, pending: map[string]int{}, gone: map[string]string{},
	}
	for _, dir := range []string{s.boxDir(), s.templateDir(), s.uploadDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make state folder: %w", err)
		}
	}
	var err error
	if s.seed, err = loadSeed(cfg.Dir); err != nil {
		return nil, err
	}
	if s.library, err = openLibrary(s.templateDir(), cfg.Now, s.log); err != nil {
		return nil, err
	}
	s.workCtx, s.stopWork = context.WithCancel(context.Background())
	s.routes = s.controlPlane()
	s.proxy = s.dataPlane()
	return s, nil
}

func (s *Server) boxDir() string      { return filepath.Join(s.cfg.Dir, "boxes") }
func (s *Server) templateDir() string { return filepath.Join(s.cfg.Dir, "templates") }
func (s *Server) uploadDir() string   { return filepath.Join(s.cfg.Dir, "uploads") }

// Run takes up the sandboxes of an earlier run, then watches lifetimes and
// samples metrics until ctx ends. Sandboxes outlive it; builds do not.
func (s *Server) Run(ctx context.Context) error {
	if err := s.recover(ctx); err != nil {
		return fmt.Errorf("recover sandboxes: %w", err)
	}
	close(s.ready)
	s.work.Add(2)
	go func() {
		defer s.work.Done()
		s.deadlines.run(ctx, func(id string) { s.background(func(ctx context.Context) { s.expire(ctx, id) }) })
	}()
	go func() {
		defer s.work.Done()
		s.sampleAll(ctx)
	}()
	<-ctx.Done()
	s.stopWork()
	s.work.Wait()
	return nil
}

// background runs a change that no request waits for. Run waits for its end.
func (s *Server) background(do func(ctx context.Context)) {
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		do(s.workCtx)
	}()
}

// AwaitReady waits until the sandboxes of an earlier run are taken up, half a
// minute at most. Requests that come earlier are held back as long.
func (s *Server) AwaitReady(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	default:
	}
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	return &squad.Error{Code: squad.CodeUnavailable, Message: "The server is starting", RetryAfter: time.Second}
}

// find returns a sandbox by identifier, whoever owns it, or nil.
func (s *Server) find(id string) *box {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.boxes[bareID(id)]
}

// own returns a sandbox of an owner. A sandbox of another owner is not found.
func (s *Server) own(owner, id string) (*box, error) {
	if b := s.find(id); b != nil && b.owner == owner {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.rec.Build {
			return b, nil
		}
	}
	return nil, notFound(id)
}

func notFound(id string) error {
	return squad.Errorf(squad.CodeNotFound, "Sandbox %q doesn't exist or you don't have access to it", bareID(id))
}

// all returns the sandboxes that keep(record) wants.
func (s *Server) all(keep func(*record) bool) []*box {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*box
	for _, b := range s.boxes {
		b.mu.Lock()
		if keep(&b.rec) {
			out = append(out, b)
		}
		b.mu.Unlock()
	}
	return out
}
