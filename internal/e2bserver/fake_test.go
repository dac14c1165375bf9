package e2bserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/e2bserver"
	"agentsquad/internal/tunnel"
)

// fakeHost is a host without sandboxes, for the rules of the server itself: who
// may do what when. Real sandboxes are in the other tests.
type fakeHost struct {
	mu        sync.Mutex
	machines  map[string]*fakeMachine
	templates map[string]bool
	created   int
	// hold, if set, is waited for by Pause, Resume and Kill.
	hold chan struct{}
	fail error
}

func newFakeHost() *fakeHost {
	return &fakeHost{machines: map[string]*fakeMachine{}, templates: map[string]bool{"base": true}}
}

func (h *fakeHost) Create(_ context.Context, spec e2bserver.MachineSpec) (e2bserver.Machine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return nil, h.fail
	}
	h.created++
	m := &fakeMachine{host: h, id: spec.ID, done: make(chan struct{})}
	h.machines[spec.ID] = m
	return m, nil
}

func (h *fakeHost) Recover(context.Context) (map[string]e2bserver.Machine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]e2bserver.Machine{}
	for id, m := range h.machines {
		out[id] = m
	}
	return out, nil
}

func (h *fakeHost) Templates() ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for n := range h.templates {
		names = append(names, n)
	}
	return names, nil
}

func (h *fakeHost) ImportImage(context.Context, e2bserver.ImageSource) (string, map[string]string, error) {
	return "", nil, errors.New("the double has no images")
}

func (h *fakeHost) ImportFolder(context.Context, io.Reader, string, string) (int64, error) {
	return 0, errors.New("the double has no folders")
}

func (h *fakeHost) RemoveTemplate(_ context.Context, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.templates, name)
	return nil
}

func (h *fakeHost) get(id string) *fakeMachine {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machines[id]
}

func (h *fakeHost) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.machines)
}

// wait blocks while the test holds machines back.
func (h *fakeHost) wait(ctx context.Context) error {
	h.mu.Lock()
	hold, err := h.hold, h.fail
	h.mu.Unlock()
	if hold == nil {
		return err
	}
	select {
	case <-hold:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type fakeMachine struct {
	host *fakeHost
	id   string

	mu     sync.Mutex
	paused bool
	inits  []map[string]any
	done   chan struct{}
	seen   *http.Request
	conns  []net.Conn
}

// Open serves a tiny envd, or a web server on port 8080, on the other end of a pipe.
func (m *fakeMachine) Open(_ context.Context, h tunnel.Header) (net.Conn, error) {
	if h.Kind == tunnel.KindPort && h.Port != 8080 {
		return nil, &tunnel.Refusal{Reason: "connection refused"}
	}
	client, server := net.Pipe()
	m.mu.Lock()
	m.conns = append(m.conns, server)
	m.mu.Unlock()
	go func() {
		_ = (&http.Server{Handler: http.HandlerFunc(m.serve)}).Serve(&pipeListener{conn: server})
	}()
	return client, nil
}

func (m *fakeMachine) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.seen = r.Clone(context.Background())
	m.mu.Unlock()
	switch r.URL.Path {
	case "/init":
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		m.mu.Lock()
		m.inits = append(m.inits, body)
		m.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case "/stream":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "/swallow":
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
	case "/early":
		_ = http.NewResponseController(w).EnableFullDuplex()
		_ = http.NewResponseController(w).Flush()
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "%d bytes, %v", n, err)
	case "/cookie":
		w.Header().Set("Set-Cookie", "a=b; Domain=example.com; Path=/")
	default:
		_, _ = io.WriteString(w, "hello from "+m.id)
	}
}

func (m *fakeMachine) request() *http.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

func (m *fakeMachine) change(ctx context.Context, paused bool) error {
	if err := m.host.wait(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused = paused
	return nil
}

func (m *fakeMachine) Pause(ctx context.Context, _ bool) error  { return m.change(ctx, true) }
func (m *fakeMachine) Resume(ctx context.Context, _ bool) error { return m.change(ctx, false) }

func (m *fakeMachine) Snapshot(_ context.Context, name string) error {
	m.host.mu.Lock()
	defer m.host.mu.Unlock()
	m.host.templates[name] = true
	return nil
}

func (m *fakeMachine) Fork(ctx context.Context, ids []string) ([]e2bserver.Machine, []error) {
	out, errs := make([]e2bserver.Machine, len(ids)), make([]error, len(ids))
	for i, id := range ids {
		if i == 1 {
			errs[i] = squad.Errorf(squad.CodeUnavailable, "no room for a second fork")
			continue
		}
		out[i], errs[i] = m.host.Create(ctx, e2bserver.MachineSpec{ID: id})
	}
	return out, errs
}

func (m *fakeMachine) Lend(_ context.Context, name, _ string) (string, error) { return "/" + name, nil }

func (m *fakeMachine) Kill(ctx context.Context) error {
	if err := m.host.wait(ctx); err != nil {
		return err
	}
	m.host.mu.Lock()
	delete(m.host.machines, m.id)
	m.host.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		_ = c.Close()
	}
	return nil
}

func (m *fakeMachine) Usage(context.Context) (e2bserver.Usage, error) {
	return e2bserver.Usage{At: time.Now(), CPUTime: time.Second, Memory: 1 << 20, DiskUsed: 1 << 10}, nil
}

func (m *fakeMachine) Paused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.paused
}

func (m *fakeMachine) Done() <-chan struct{} { return m.done }

type pipeListener struct {
	conn net.Conn
	once sync.Once
}

func (l *pipeListener) Accept() (c net.Conn, err error) {
	err = errors.New("one connection only")
	l.once.Do(func() { c, err = l.conn, nil })
	return c, err
}
func (l *pipeListener) Close() error   { return nil }
func (l *pipeListener) Addr() net.Addr { return l.conn.LocalAddr() }

// rig is a server over a host, with the two keys of alice and bob.
type rig struct {
	t      testing.TB
	server *e2bserver.Server
	stop   func()
}

const (
	alice = "e2b_a11ce0"
	bob   = "e2b_b0b000"
)

func keys(_ context.Context, key string) (string, bool) {
	owner, ok := map[string]string{alice: "alice", bob: "bob", "e2b_5c0ad0": e2bserver.OwnerSquad}[key]
	return owner, ok
}

func newRig(t testing.TB, host e2bserver.Host, change ...func(*e2bserver.Config)) *rig {
	t.Helper()
	cfg := e2bserver.Config{Host: host, Dir: t.TempDir(), Domain: "localhost:7777", Keys: keys}
	for _, c := range change {
		c(&cfg)
	}
	s, err := e2bserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	r := &rig{t: t, server: s}
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// call makes a request to the control plane and returns the answer.
func (r *rig) call(key, method, path, body string) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if body == "" {
		req.Body = http.NoBody
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	w := httptest.NewRecorder()
	r.server.ServeHTTP(w, req)
	return w
}

// must is call that expects a status and decodes the answer into out.
func (r *rig) must(status int, out any, key, method, path, body string) http.Header {
	r.t.Helper()
	w := r.call(key, method, path, body)
	if w.Code != status {
		r.t.Fatalf("%s %s: status %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	if out != nil {
		if err := json.Unmarshal(bytes.TrimSpace(w.Body.Bytes()), out); err != nil {
			r.t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
		}
	}
	return w.Header()
}

// sandbox is the answer to a create, as a client reads it.
type sandbox struct {
	SandboxID       string            `json:"sandboxID"`
	TemplateID      string            `json:"templateID"`
	EnvdVersion     string            `json:"envdVersion"`
	EnvdAccessToken string            `json:"envdAccessToken"`
	TrafficToken    *string           `json:"trafficAccessToken"`
	Domain          *string           `json:"domain"`
	State           string            `json:"state"`
	EndAt           time.Time         `json:"endAt"`
	StartedAt       time.Time         `json:"startedAt"`
	Metadata        map[string]string `json:"metadata"`
}

func (r *rig) create(key, body string) sandbox {
	r.t.Helper()
	var sb sandbox
	r.must(http.StatusCreated, &sb, key, "POST", "/v2/sandboxes", body)
	return sb
}

// clear kills all sandboxes, so that nothing of the test is left running.
func (r *rig) clear() {
	r.t.Helper()
	for _, key := range []string{alice, bob} {
		var all []sandbox
		r.must(http.StatusOK, &all, key, "GET", "/v2/sandboxes", "")
		for _, sb := range all {
			r.call(key, "DELETE", "/sandboxes/"+sb.SandboxID, "")
		}
	}
}
