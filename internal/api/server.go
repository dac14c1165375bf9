package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
	"agentsquad/internal/task"
)

// Prefix is where the API begins.
const Prefix = "/api/v1"

// Config says what a [Server] is made of.
type Config struct {
	Store  *store.Store
	Events *event.Log
	Life   *task.Life
	Ports  Ports
	Log    *slog.Logger
	// Registry receives the metrics of the API and is served at /metrics.
	Registry *prometheus.Registry
	Version  string
	// PublicURL is the base of links that leave the machine; empty means the
	// address that the request was sent to.
	PublicURL string
	// BehindProxy trusts the forwarding headers of a reverse proxy.
	BehindProxy     bool
	SessionLifetime time.Duration // 0 means a week
	// Ready says why the server cannot work yet; nil means that it can.
	Ready func(ctx context.Context) error
	// Heartbeat is the pause between comments on a silent stream; 0 means 15 s.
	Heartbeat time.Duration
	// Now is the clock of expiry; nil means the machine's.
	Now func() time.Time
}

// Server answers HTTP. Make it with [New]; it is safe for concurrent use.
type Server struct {
	cfg     Config
	store   *store.Store
	events  *event.Log
	life    *task.Life
	ports   Ports
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
	signIn  *limiter
	keys    sync.Map // idempotency keys in use, to their mutex
	handler http.Handler
	openAPI []byte
	docs    []byte

	// stopping ends the streams when the server stops: they have no other end.
	stopping context.Context
	stop     context.CancelCauseFunc
}

// New builds the server. It starts nothing.
func New(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, store: cfg.Store, events: cfg.Events, life: cfg.Life, ports: cfg.Ports, log: cfg.Log, now: cfg.Now}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.cfg.SessionLifetime == 0 {
		s.cfg.SessionLifetime = 7 * 24 * time.Hour
	}
	if s.cfg.Heartbeat == 0 {
		s.cfg.Heartbeat = 15 * time.Second
	}
	if s.cfg.Registry == nil {
		s.cfg.Registry = prometheus.NewRegistry()
	}
	s.metrics = newMetrics(s.cfg.Registry)
	s.signIn = newLimiter(20, 600, s.now)
	s.stopping, s.stop = context.WithCancelCause(context.Background())

	mux := http.NewServeMux()
	api := humago.New(mux, describe(cfg.Version))
	s.routes(api)
	if err := s.document(api); err != nil {
		return nil, err
	}
	s.plainRoutes(mux)
	s.handler = s.chain(mux)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Stop ends all event streams, so that a graceful stop need not wait for them.
// Readers resume by cursor when the server is back.
func (s *Server) Stop() { s.stop(errors.New("the server stops")) }

// OpenAPI is the OpenAPI 3.1 document.
func (s *Server) OpenAPI() []byte { return s.openAPI }

func (s *Server) chain(mux *http.ServeMux) http.Handler {
	routed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := infoOf(r.Context())
		defer func() { i.route = r.Pattern }()
		mux.ServeHTTP(w, r)
	})
	own := headers(compress(s.authenticate(bounded(patient(routed)))))
	return s.observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := s.ports.Claimed; c != nil && c.Claims(r) {
			infoOf(r.Context()).route = "e2b"
			c.ServeHTTP(w, r)
			return
		}
		if p := strings.TrimRight(r.URL.Path, "/"); len(p) > len(Prefix) && isAPI(p) {
			r.URL.Path = p
		}
		own.ServeHTTP(w, r)
	}))
}

// routes registers every operation of the document.
func (s *Server) routes(api huma.API) {
	s.sessionRoutes(api)
	s.squadRoutes(api)
	s.memberRoutes(api)
	s.repositoryRoutes(api)
	s.taskRoutes(api)
	s.taskVerbRoutes(api)
	s.executionRoutes(api)
	s.messageRoutes(api)
	s.pullRoutes(api)
	s.credentialRoutes(api)
	s.userRoutes(api)
	s.tokenRoutes(api)
	s.sandboxRoutes(api)
	s.sandboxFileRoutes(api)
	s.checkoutRoutes(api)
	s.insightRoutes(api)
	s.systemRoutes(api)
	s.templateRoutes(api)
	s.streamRoutes(api)
}

// plainRoutes are those that are no part of the document.
func (s *Server) plainRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", s.metricsHandler(s.cfg.Registry))
	mux.HandleFunc("GET /signin", s.signInLink)
	mux.HandleFunc("GET "+Prefix+"/openapi.json", s.serveOpenAPI)
	mux.HandleFunc("GET "+Prefix+"/docs", s.serveDocs)
	mux.HandleFunc("GET "+Prefix+"/sandboxes/{id}/terminal", s.terminal)
	mux.HandleFunc("GET "+Prefix+"/sandboxes/{id}/exec", s.exec)
	mux.Handle(Prefix+"/webhooks/", orUnavailable(s.ports.Webhooks, "webhooks"))
	mux.Handle("/mcp", orUnavailable(s.ports.MCP, "MCP"))
	mux.Handle("/mcp/", orUnavailable(s.ports.MCP, "MCP"))
	mux.Handle("/git/", orUnavailable(s.ports.Gateway, "the gateway"))
	mux.Handle("/llm/", orUnavailable(s.ports.Gateway, "the gateway"))
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, squad.Errorf(squad.CodeNotFound, "no route %s %s; see %s/docs", r.Method, r.URL.Path, Prefix))
	})
	page := s.ports.Page
	if page == nil {
		page = http.HandlerFunc(stubPage)
	}
	mux.Handle("/", page)
}

func orUnavailable(h http.Handler, what string) http.Handler {
	if h != nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, unavailable(what))
	})
}

// unavailable is the answer where a port is not given.
func unavailable(what string) error {
	return squad.Errorf(squad.CodeUnavailable, "%s is not part of this installation, or not ready yet", what)
}

func stubPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>Agent Squad</title><p>Agent Squad runs. The page is not in this build; the API is at <a href=%q>%s/docs</a>.\n", Prefix+"/docs", Prefix)
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	err := s.store.Ping(ctx)
	if err == nil && s.cfg.Ready != nil {
		err = s.cfg.Ready(ctx)
	}
	if err == nil && s.stopping.Err() != nil {
		err = context.Cause(s.stopping)
	}
	answer := map[string]string{"status": "ready"}
	status := http.StatusOK
	if err != nil {
		s.log.WarnContext(ctx, "not ready", "error", err)
		answer, status = map[string]string{"status": "not ready"}, http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone: nobody to tell
}

func isStream(route string) bool {
	return strings.Contains(route, "/sse") || strings.HasSuffix(route, "/terminal") || strings.HasSuffix(route, "/exec") || route == "e2b"
}
