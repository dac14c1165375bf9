package interpreter

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const maxContexts = 64

// contexts are the interpreters of a sandbox, by id, and the one per language
// that is used when no context is named.
type contexts struct {
	mu         sync.Mutex
	byID       map[string]*interpreter
	byLanguage map[string]*interpreter
}

func (c *contexts) find(id string) (*interpreter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.byID[id]; found != nil {
		return found, nil
	}
	return nil, &failure{http.StatusNotFound, fmt.Sprintf("Context %s not found", id)}
}

// standard returns the default context of a language, made when first asked for.
func (c *contexts) standard(s *Server, language string) (*interpreter, error) {
	language = normal(language)
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.byLanguage[language]; found != nil {
		return found, nil
	}
	made, err := c.add(s, language, s.config.Workdir())
	if err != nil {
		return nil, err
	}
	if c.byLanguage == nil {
		c.byLanguage = map[string]*interpreter{}
	}
	c.byLanguage[language] = made
	return made, nil
}

// add makes a context. The caller holds mu.
func (c *contexts) add(s *Server, language, cwd string) (*interpreter, error) {
	if len(c.byID) >= maxContexts {
		return nil, &failure{http.StatusTooManyRequests, fmt.Sprintf("there are %d contexts already, remove one first", maxContexts)}
	}
	driver, err := driverOf(s.config.System, language)
	if err != nil {
		return nil, err
	}
	if c.byID == nil {
		c.byID = map[string]*interpreter{}
	}
	made := &interpreter{
		ID: strings.ToLower(rand.Text()), Language: language, Cwd: cwd,
		system: s.config.System, driver: driver, turn: make(chan struct{}, 1),
	}
	c.byID[made.ID] = made
	return made, nil
}

func (c *contexts) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.byID {
		i.stop()
	}
	c.byID, c.byLanguage = nil, nil
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Language string `json:"language"`
		Cwd      string `json:"cwd"`
	}
	if err := decode(w, r, &req); err != nil {
		fail(w, err)
		return
	}
	if req.Cwd == "" {
		req.Cwd = s.config.Workdir()
	}
	if !filepath.IsAbs(req.Cwd) {
		req.Cwd = filepath.Join(s.config.Workdir(), req.Cwd)
	}
	s.contexts.mu.Lock()
	made, err := s.contexts.add(s, normal(req.Language), req.Cwd)
	s.contexts.mu.Unlock()
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, made)
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.contexts.mu.Lock()
	defer s.contexts.mu.Unlock()
	out := make([]*interpreter, 0, len(s.contexts.byID))
	for _, i := range s.contexts.byID {
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b *interpreter) int { return strings.Compare(a.ID, b.ID) })
	reply(w, out)
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	found, err := s.contexts.find(r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	c := &s.contexts
	c.mu.Lock()
	delete(c.byID, found.ID)
	if c.byLanguage[found.Language] == found {
		delete(c.byLanguage, found.Language)
	}
	c.mu.Unlock()
	found.stop()
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) restart(w http.ResponseWriter, r *http.Request) {
	found, err := s.contexts.find(r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	found.stop() // the next snippet starts a new one
	w.WriteHeader(http.StatusNoContent)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a caller that left
}
