package gvisor_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsquad/internal/gvisor"
	"agentsquad/internal/tunnel"
)

func TestMain(m *testing.M) {
	gvisor.Dispatch()
	if filepath.Base(os.Args[0]) == "envd" {
		daemon(os.Args[2])
	}
	if dir := os.Getenv(serverEnv); dir != "" {
		server(dir)
	}
	os.Exit(m.Run())
}

// daemon is process 1 of the tests' sandboxes: it runs shell scripts sent as
// HTTP bodies. The real one is tested in its own room.
func daemon(socket string) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", func(w http.ResponseWriter, r *http.Request) {
		script, _ := io.ReadAll(r.Body)
		cmd := exec.Command("/bin/sh", "-c", string(script))
		cmd.Dir = "/"
		out, _ := cmd.CombinedOutput()
		w.Header().Set("Exit-Code", strconv.Itoa(cmd.ProcessState.ExitCode()))
		_, _ = w.Write(out)
	})
	conns := make(chan net.Conn)
	go func() { _ = http.Serve(chanListener(conns), mux) }()
	link := tunnel.NewLink(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}, func(_ tunnel.Header, c net.Conn) { conns <- c })
	link.Run(context.Background())
	os.Exit(0)
}

type chanListener chan net.Conn

func (l chanListener) Accept() (net.Conn, error) { return <-l, nil }
func (l chanListener) Close() error              { return nil }
func (l chanListener) Addr() net.Addr            { return &net.UnixAddr{} }

// sh runs a script in the sandbox and returns its output and exit code.
func sh(ctx context.Context, s *gvisor.Sandbox, script string) (string, int, error) {
	session, err := s.Tunnel(ctx)
	if err != nil {
		return "", 0, err
	}
	conn, err := session.Open(ctx, tunnel.Header{Kind: tunnel.KindEnvd})
	if err != nil {
		return "", 0, err
	}
	defer conn.Close()
	client := http.Client{Transport: &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, "POST", "http://envd/run", bytes.NewBufferString(script))
	if err != nil {
		return "", 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	code, _ := strconv.Atoi(resp.Header.Get("Exit-Code"))
	return strings.TrimSpace(string(out)), code, err
}

func mustRun(t testing.TB, s *gvisor.Sandbox, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out, code, err := sh(ctx, s, script)
	if err != nil || code != 0 {
		t.Fatalf("run %q: exit %d, %v\n%s", script, code, err, out)
	}
	return out
}

func newRuntime(t testing.TB, change ...func(*gvisor.Config)) *gvisor.Runtime {
	t.Helper()
	cfg := gvisor.Config{Dir: shortDir(t)}
	for _, c := range change {
		c(&cfg)
	}
	r, err := gvisor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range r.List() {
			_ = s.Kill(context.Background())
		}
		_ = r.Close()
	})
	return r
}

// cgroupOf is the name of the cgroups of a data folder.
func cgroupOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("squad-%x", sum[:4])
}

// shortDir is a folder with a name short enough for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func create(t testing.TB, r *gvisor.Runtime, spec gvisor.Spec) *gvisor.Sandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	s, err := r.Create(ctx, spec)
	if err != nil {
		t.Fatal(fmt.Errorf("create: %w", err))
	}
	return s
}
