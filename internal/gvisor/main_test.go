package gvisor_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"agentsquad/internal/envd"
	"agentsquad/internal/envdpb/process"
	"agentsquad/internal/envdpb/process/processconnect"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/gvisor/gvisortest"
	"agentsquad/internal/tunnel"
)

// envdProgram is the daemon as it is shipped; empty means the test program.
var envdProgram string

func TestMain(m *testing.M) {
	gvisor.Dispatch()
	envd.Dispatch()
	gvisortest.Static()
	envdProgram = os.Getenv(envdEnv)
	if data := os.Getenv(serverEnv); data != "" {
		server(data)
	}
	if data := os.Getenv(busyEnv); data != "" {
		busy(data)
	}
	dir, err := os.MkdirTemp("", "gvrt")
	if err != nil {
		panic(err)
	}
	program := filepath.Join(dir, "envd")
	build := exec.CommandContext(context.Background(), "go", "build", "-ldflags=-s -w", "-o", program, "agentsquad/cmd/envd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if envdProgram == "" && build.Run() == nil {
		envdProgram = program
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// envdEnv names a daemon that is already built.
const envdEnv = "GVISOR_TEST_ENVD"

// sh runs a script as root in the sandbox and returns its output, with errors, and
// its exit code.
func sh(ctx context.Context, s *gvisor.Sandbox, script string) (string, int, error) {
	return shAs(ctx, s, "root", script)
}

func shAs(ctx context.Context, s *gvisor.Sandbox, user, script string) (string, int, error) {
	session, err := s.Tunnel(ctx)
	if err != nil {
		return "", 0, err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return session.Open(ctx, tunnel.Header{Kind: tunnel.KindControl})
	}}
	defer transport.CloseIdleConnections()
	client := processconnect.NewProcessClient(&http.Client{Transport: transport}, "http://envd")
	req := connect.NewRequest(&process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", script}}})
	req.Header().Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":")))
	stream, err := client.Start(ctx, req)
	if err != nil {
		return "", 0, err
	}
	defer stream.Close()
	var out strings.Builder
	code := -1
	for stream.Receive() {
		event := stream.Msg().GetEvent()
		out.Write(event.GetData().GetStdout())
		out.Write(event.GetData().GetStderr())
		if end := event.GetEnd(); end != nil {
			code = int(end.GetExitCode())
		}
	}
	return strings.TrimSpace(out.String()), code, stream.Err()
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
	cfg := gvisor.Config{Dir: shortDir(t), EnvdPath: envdProgram}
	if path := os.Getenv("GVISOR_TEST_RUNSC"); path != "" {
		cfg.Runsc, _ = os.ReadFile(path)
	}
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
func cgroupOf(dir string) string { return gvisor.CgroupName(dir) }

// shortDir is a folder with a name short enough for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gvr") //nolint:usetesting // unix sockets need a short path
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
