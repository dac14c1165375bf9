package e2btest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	var f *Fault
	if fault != nil {
		f = fault(r)
	}
	if f != nil && f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
		f = nil
	}
	if f == nil {
		s.route(w, r)
		return
	}
	if f.After {
		s.route(&discard{header: http.Header{}}, r)
	}
	switch {
	case f.Hang:
		_, _ = io.Copy(io.Discard, r.Body) // the server sees a client leave only after its body
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.Status == 0:
		panic(http.ErrAbortHandler)
	}
	for name, values := range f.Header {
		w.Header()[name] = values
	}
	fail(w, f.Status, f.Message)
}

// discard swallows the answer of a request whose reply is lost.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if id := r.Header.Get("E2b-Sandbox-Id"); id != "" {
		s.data(w, r, id)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.opts.Key != "" && r.Header.Get("X-API-KEY") != s.opts.Key {
		fail(w, http.StatusUnauthorized, "Invalid API key")
		return
	}
	for name, values := range s.opts.Header {
		w.Header()[name] = values
	}
	path := r.URL.Path
	if strings.HasPrefix(path, "/v2/") {
		if s.opts.Older {
			http.NotFound(w, r)
			return
		}
		path = strings.TrimPrefix(path, "/v2")
	} else if s.opts.Older && strings.HasSuffix(path, "/connect") {
		http.NotFound(w, r)
		return
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "sandboxes" && len(parts) == 1:
		s.collection(w, r)
	case path == "/sandboxes/metrics":
		s.metrics(w, r)
	case parts[0] == "sandboxes":
		s.one(w, r, parts[1], strings.Join(parts[2:], "/"))
	case parts[0] == "snapshots":
		s.listSnapshots(w, r)
	case parts[0] == "templates" && r.Method == http.MethodDelete:
		s.deleteSnapshot(w, strings.TrimPrefix(path, "/templates/"))
	default:
		http.NotFound(w, r)
	}
}

// data is the data plane: the daemon, or a port, which is one of this machine.
func (s *Server) data(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	s.expire()
	b := s.boxes[id]
	running := b != nil && b.state == "running"
	s.mu.Unlock()
	if !running {
		reply(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox was not found", "code": 502})
		return
	}
	handler := b.envd
	if port := r.Header.Get("E2b-Sandbox-Port"); port != "49983" {
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:" + port})
		proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) {
			reply(w, http.StatusBadGateway, json.RawMessage(fmt.Sprintf(
				`{"sandboxId":%q,"message":"The sandbox is running but port is not open","port":%s,"code":502}`, id, port)))
		}
		handler = proxy
	}
	done := make(chan struct{})
	defer close(done)
	gone := http.NewResponseController(w)
	go func() { // a sandbox that ends takes its streams with it
		select {
		case <-b.life.Done():
			_ = gone.SetReadDeadline(time.Now())
			_ = gone.SetWriteDeadline(time.Now())
		case <-done:
		}
	}()
	handler.ServeHTTP(w, r)
}

func fail(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]any{"code": status, "message": message})
}

func reply(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
