// Package e2btest starts a whole E2B-compatible server for tests: gVisor
// sandboxes, envd in them, and the API on a loopback port.
//
// The TestMain of a package that uses it calls gvisor.Dispatch first. Everything
// ends with the test; sandboxes that it left are killed.
package e2btest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"agentsquad/internal/e2bserver"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/tunnel"
)

// The keys that a started server knows.
const (
	Key      = "e2b_a11ce0000000000000000000000000000000a11c" // owner alice
	OtherKey = "e2b_b0b00000000000000000000000000000000000b0" // owner bob
	SquadKey = "e2b_5c0ad0000000000000000000000000000005c0ad" // owner squad
)

// Stack is a running server.
type Stack struct {
	Server  *e2bserver.Server
	Runtime *gvisor.Runtime
	URL     string // http://127.0.0.1:port
	Dir     string
	Log     *strings.Builder
	// KeepSandboxes leaves them running when the server stops, for a test that
	// starts another in the same folder.
	KeepSandboxes bool
}

func keys(_ context.Context, key string) (string, bool) {
	owner, ok := map[string]string{Key: "alice", OtherKey: "bob", SquadKey: e2bserver.OwnerSquad}[key]
	return owner, ok
}

// Start starts a server, or skips the test where sandboxes cannot run.
func Start(t testing.TB, change ...func(*e2bserver.Config)) *Stack {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2b") //nolint:usetesting // short: it holds unix sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return StartIn(t, dir, change...)
}

// StartIn is Start in a folder that may hold the state of an earlier server.
func StartIn(t testing.TB, dir string, change ...func(*e2bserver.Config)) *Stack {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: sandboxes need Linux")
	}
	s := &Stack{Dir: dir, Log: &strings.Builder{}}
	log := slog.New(slog.NewTextHandler(&lockedWriter{out: s.Log}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	s.Runtime, err = gvisor.New(gvisor.Config{
		Dir: filepath.Join(dir, "gv"), EnvdPath: Envd(t), Log: log,
		Accept: func(id string, h tunnel.Header, c net.Conn) { s.Server.Accept(id, h, c) },
	})
	if err != nil && strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatalf("start runtime: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + listener.Addr().String()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	cfg := e2bserver.Config{
		Runtime: s.Runtime, Dir: filepath.Join(dir, "e2b"), Domain: "localhost:" + port, Keys: keys, Log: log,
	}
	for _, c := range change {
		c(&cfg)
	}
	if s.Server, err = e2bserver.New(cfg); err != nil {
		t.Fatalf("start server: %v", err)
	}
	s.run(t, listener)
	return s
}

func (s *Stack) run(t testing.TB, listener net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Server.Run(ctx) }()
	web := &http.Server{Handler: s.Server}
	go func() { _ = web.Serve(listener) }()
	t.Cleanup(func() {
		_ = web.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("server: %v", err)
		}
		if !s.KeepSandboxes {
			s.killAll()
		}
		_ = s.Runtime.Close()
		if t.Failed() {
			t.Logf("log of the server:\n%s", s.Log)
		}
	})
}

func (s *Stack) killAll() {
	var wg sync.WaitGroup
	for _, sb := range s.Runtime.List() {
		wg.Go(func() { _ = sb.Kill(context.Background()) })
	}
	wg.Wait()
}

var buildEnvd = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("squad-test-envd-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	made := filepath.Join(dir, fmt.Sprintf("envd-%d", os.Getpid()))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", made, "agentsquad/cmd/envd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build envd: %w\n%s", err, out)
	}
	// Under one name for all test processes, put there whole.
	path := filepath.Join(dir, "envd")
	return path, os.Rename(made, path)
})

// Envd builds the daemon once per process and returns its path.
func Envd(t testing.TB) string {
	t.Helper()
	path, err := buildEnvd()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

type lockedWriter struct {
	mu  sync.Mutex
	out *strings.Builder
}

// Write implements io.Writer.
func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}
