// Package e2btest is an E2B server in memory, for tests of programs that use
// package e2b. Its control plane keeps sandboxes in a map and can be told to
// fail in the ways that real ones do: before or after the work, by status, by
// silence, by a cut connection. What runs inside a sandbox is up to the test,
// which hands in a handler for the data plane.
package e2btest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say what the server is like.
type Options struct {
	// Key that requests must carry; empty accepts any.
	Key string
	// Envd makes the daemon of a new sandbox. Nil answers its health only.
	Envd func(sandboxID, token string) http.Handler
	// Older serves the deprecated paths only, as servers before /v2 did.
	Older bool
	// Limit is the most sandboxes at once; more are refused as E2B does. 0 is none.
	Limit int
	// Header of each answer of the control plane, as a gateway before it adds.
	Header http.Header
	// PageSize bounds a page of a list below what was asked for.
	PageSize int
}

// Fault makes one request fail.
type Fault struct {
	// After lets the request do its work before it fails.
	After bool
	// Status is the answer; 0 cuts the connection instead.
	Status int
	// Header and Message of the answer.
	Header  http.Header
	Message string
	// Hang gives no answer until the client goes away.
	Hang bool
	// Delay waits before the request goes on, and then does not fail it.
	Delay time.Duration
}

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	*httptest.Server
	opts Options

	mu        sync.Mutex
	boxes     map[string]*box
	snapshots map[string]bool
	requests  []string
	made      int
	fault     func(r *http.Request) *Fault
}

type box struct {
	id, template, token, state string
	metadata                   map[string]string
	extra                      map[string]any
	started, end               time.Time
	envd                       http.Handler
	life                       context.Context
	cut                        context.CancelFunc
}

// New starts a server; the test closes it.
func New(opts Options) *Server {
	s := &Server{opts: opts, boxes: map[string]*box{}, snapshots: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Fail asks f about each request from now on; nil lets it pass.
func (s *Server) Fail(f func(r *http.Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Requests returns "METHOD /path" of the control plane requests so far.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Running returns the ids of the sandboxes there are, oldest first.
func (s *Server) Running() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, b := range s.sorted() {
		ids = append(ids, b.id)
	}
	return ids
}

// Made returns how many sandboxes were ever made.
func (s *Server) Made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

// Body returns the create request of a sandbox.
func (s *Server) Body(id string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.boxes[id]; b != nil {
		return b.extra
	}
	return nil
}

// Vanish ends a sandbox as if its machine had failed.
func (s *Server) Vanish(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
}

func (s *Server) drop(id string) bool {
	b := s.boxes[id]
	if b == nil {
		return false
	}
	b.cut()
	delete(s.boxes, id)
	return true
}

// add makes a sandbox; s.mu is held.
func (s *Server) add(template string, timeout time.Duration, metadata map[string]string, body map[string]any) *box {
	b := &box{
		id: "i" + random(10), template: template, token: random(16), state: "running",
		metadata: metadata, extra: body, started: time.Now().UTC(), end: time.Now().UTC().Add(timeout),
	}
	b.life, b.cut = context.WithCancel(context.Background())
	b.envd = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if s.opts.Envd != nil {
		b.envd = s.opts.Envd(b.id, b.token)
	}
	s.boxes[b.id] = b
	s.made++
	return b
}

// expire drops what has outlived its time; s.mu is held.
func (s *Server) expire() {
	now := time.Now()
	for id, b := range s.boxes {
		if b.state == "running" && now.After(b.end) {
			s.drop(id)
		}
	}
}

func (s *Server) sorted() []*box {
	s.expire()
	var all []*box
	for _, b := range s.boxes {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *box) int {
		if c := a.started.Compare(b.started); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	return all
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
