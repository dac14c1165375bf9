// Package interpreter runs snippets of code in interpreters that keep their
// state, and serves them as E2B's code interpreter does on port 49999 of a
// sandbox: POST /execute answers with one JSON object per line, /contexts makes
// and removes interpreters.
//
// A context is one interpreter process that runs a driver embedded here. The
// driver takes code on descriptor 4 and tells results on descriptor 3, so that
// the code's own output on 1 and 2 is never mistaken for the driver's. One
// snippet runs at a time in a context; others wait. A caller that leaves stops
// its snippet. Interpreters that die are started anew by the next snippet.
//
// Per living context four goroutines read its descriptors; they end with it.
package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
)

const maxBody = 16 << 20

// Command is a driver to be started.
type Command struct {
	Path  string
	Args  []string // without the program's name
	Dir   string
	Env   map[string]string // on top of what all commands of the sandbox get
	Files []uintptr         // descriptors 0, 1, 2, …
}

// Child is a started driver.
type Child struct {
	Done      <-chan struct{} // closed when it has exited
	Kill      func()          // ends it and what it started
	Interrupt func()          // as ^C would
}

// System is what the sandbox gives: how to start and to find programs.
type System interface {
	Start(Command) (Child, error)
	Find(program string) (path string, ok bool)
}

// Config sets a [Server] up.
type Config struct {
	System System
	// Workdir is where contexts start unless they say otherwise.
	Workdir func() string
	// Allow checks a request that runs code; nil allows all.
	Allow func(*http.Request) bool
	Log   *slog.Logger
}

// Server is the code interpreter of one sandbox.
type Server struct {
	config   Config
	mux      *http.ServeMux
	contexts contexts
}

// New returns a server; interpreters are started when first needed.
func New(c Config) *Server {
	s := &Server{config: c, mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "OK") })
	s.mux.HandleFunc("POST /execute", s.execute)
	s.mux.HandleFunc("POST /contexts", s.create)
	s.mux.HandleFunc("GET /contexts", s.list)
	s.mux.HandleFunc("DELETE /contexts/{id}", s.remove)
	s.mux.HandleFunc("POST /contexts/{id}/restart", s.restart)
	return s
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends all interpreters.
func (s *Server) Close() { s.contexts.closeAll() }

// failure is an error with the status it answers.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func fail(w http.ResponseWriter, err error) {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{http.StatusInternalServerError, err.Error()}
	}
	http.Error(w, f.text, f.status)
}

func decode(w http.ResponseWriter, r *http.Request, into any) error {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &failure{http.StatusRequestEntityTooLarge, "the request is larger than 16 MB"}
	case err != nil:
		return &failure{http.StatusBadRequest, "the body is not valid JSON: " + err.Error()}
	}
	return nil
}

// execute runs a snippet and streams what it does.
func (s *Server) execute(w http.ResponseWriter, r *http.Request) {
	if s.config.Allow != nil && !s.config.Allow(r) {
		fail(w, &failure{http.StatusUnauthorized, "a valid access token is required"})
		return
	}
	var req struct {
		Code     string            `json:"code"`
		Context  string            `json:"context_id"`
		Language string            `json:"language"`
		Env      map[string]string `json:"env_vars"`
	}
	if err := decode(w, r, &req); err != nil {
		fail(w, err)
		return
	}
	c, err := s.pick(req.Context, req.Language)
	if err != nil {
		fail(w, err)
		return
	}
	out := &lines{w: w}
	err = c.run(r.Context(), snippet{Code: req.Code, Env: req.Env}, out.send)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case !out.begun:
		fail(w, err)
	default:
		_ = out.send(map[string]any{"type": "unexpected_end_of_execution"})
	}
}

// pick finds the context a snippet is for.
func (s *Server) pick(id, language string) (*interpreter, error) {
	switch {
	case id != "" && language != "":
		return nil, &failure{http.StatusBadRequest, "Only one of context_id or language can be provided"}
	case id != "":
		return s.contexts.find(id)
	}
	return s.contexts.standard(s, language)
}

// lines writes one JSON object per line, each at once.
type lines struct {
	w     http.ResponseWriter
	begun bool
}

func (l *lines) send(v any) error {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "application/x-ndjson")
		l.w.Header().Set("Cache-Control", "no-store")
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := l.w.Write(append(escaped(data), '\n')); err != nil {
		return err
	}
	return http.NewResponseController(l.w).Flush()
}

func normal(language string) string {
	switch l := strings.ToLower(strings.TrimSpace(language)); l {
	case "", "py", "python3":
		return "python"
	case "js", "node":
		return "javascript"
	case "ts":
		return "typescript"
	case "sh", "shell":
		return "bash"
	default:
		return l
	}
}
