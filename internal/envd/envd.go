// Package envd is the daemon inside a local sandbox. It serves the E2B data
// plane: process.Process and filesystem.Filesystem over Connect, and the plain
// HTTP endpoints /health /init /files /envs /metrics.
//
// As process 1 it reaps orphans, keeps the tunnel to the host up, and gives the
// sandbox, which has no network device, a way out: an HTTP(S) proxy on loopback
// and the name squad.internal, both carried by the tunnel. See [Main].
//
// [NewServer] alone serves the data plane as a plain host process.
//
// Memory is bounded everywhere: contents are streamed, a command's output waits
// for its readers, and with no reader it is dropped. Per command two goroutines
// read its output; per watch one reads its events; all end with what they serve.
package envd

import (
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/user"
	"sync"

	"connectrpc.com/connect"

	"agentsquad/internal/envd/interpreter"
	"agentsquad/internal/envdpb/filesystem/filesystemconnect"
	"agentsquad/internal/envdpb/process/processconnect"
)

// Version is the envd version whose behaviour this package has.
const Version = "0.6.4"

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Config sets a [Server] up. The zero value serves without a token, as the user
// named "user" or, where there is none, the one who runs this process.
type Config struct {
	AccessToken    string            // asked of callers; /init may change it
	DefaultUser    string            // of commands and files when a caller names none
	DefaultWorkdir string            // the user's home if empty
	Env            map[string]string // of all commands, under what /init and the request set
	Reap           bool              // reap every child of this process; only as process 1
	Log            *slog.Logger      // discarded if nil
}

// Server is the data plane of one sandbox. It is safe for concurrent use.
type Server struct {
	config   Config
	log      *slog.Logger
	path     string
	handler  http.Handler
	state    state
	accounts accounts
	spawn    *spawner
	files    *files
	watchers watchers
	load     load

	closing sync.Once
	closed  chan struct{}

	codeMu sync.Mutex
	code   *interpreter.Server // nil until it is asked for
}

// NewServer returns a server ready to use as an http.Handler. It reads PATH, which
// commands inherit.
func NewServer(c Config) *Server {
	s := &Server{config: c, log: c.Log, closed: make(chan struct{})}
	s.path = os.Getenv("PATH") //nolint:forbidigo // handed on to commands, not configuration
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.path == "" {
		s.path = defaultPath
	}
	s.config.Env = maps.Clone(c.Env)
	s.state.token, s.state.workdir = c.AccessToken, c.DefaultWorkdir
	s.state.user = c.DefaultUser
	if s.state.user == "" {
		s.state.user = s.presentUser()
	}
	s.spawn = newSpawner(c.Reap)
	s.files = &files{server: s}
	s.handler = s.routes(&processes{server: s, byPID: map[int]*running{}})
	return s
}

// presentUser is "user" where it exists, else whoever runs this process.
func (s *Server) presentUser() string {
	if _, err := s.accounts.lookup("user"); err == nil {
		return "user"
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "root"
}

func (s *Server) routes(procs *processes) http.Handler {
	mux := http.NewServeMux()
	options := []connect.HandlerOption{
		connect.WithCodec(jsonCodec{}),
		connect.WithReadMaxBytes(16 << 20),
		// Output comes in small chunks and mostly over a local socket:
		// compressing it costs more than it saves.
		connect.WithCompressMinBytes(64 << 10),
	}
	path, handler := processconnect.NewProcessHandler(procs, options...)
	mux.Handle(path, batched(handler))
	mux.Handle(filesystemconnect.NewFilesystemHandler(s.files, options...))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /init", s.serveInit)
	mux.HandleFunc("GET /envs", s.serveEnvs)
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	mux.HandleFunc("GET /files", s.files.download)
	mux.HandleFunc("POST /files", s.files.upload)
	mux.HandleFunc("POST /files/compose", s.files.compose)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "no such endpoint: "+r.Method+" "+r.URL.Path)
	})
	return s.allowOrigins(s.authorize(mux))
}

// ServeHTTP serves one request of the data plane.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends the watchers that callers left behind. Commands go on.
func (s *Server) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		s.watchers.closeAll()
		s.closeCode()
	})
	return nil
}
