package inside_test

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
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"agentsquad/internal/envdpb/filesystem/filesystemconnect"
	"agentsquad/internal/envdpb/process"
	"agentsquad/internal/envdpb/process/processconnect"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/gvisor/gvisortest"
	"agentsquad/internal/tunnel"
)

var (
	sharedRuntime *gvisor.Runtime
	unable        error    // why there are no sandboxes on this machine
	accepters     sync.Map // sandbox id to func(tunnel.Header, net.Conn)
)

func TestMain(m *testing.M) {
	gvisor.Dispatch()
	gvisortest.Static()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "envd")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "envd")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "agentsquad/cmd/envd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build envd: %v\n%s", err, out)
		return 1
	}
	sharedRuntime, err = gvisor.New(gvisor.Config{Dir: filepath.Join(dir, "d"), EnvdPath: program, Accept: accept})
	if err != nil {
		unable = err // each test says so and is skipped
		return m.Run()
	}
	defer sharedRuntime.Close()
	return m.Run()
}

func accept(id string, h tunnel.Header, c net.Conn) {
	if f, ok := accepters.Load(id); ok {
		f.(func(tunnel.Header, net.Conn))(h, c)
		return
	}
	c.Close()
}

// sandbox is a real one with clients over its tunnel.
type sandbox struct {
	t     testing.TB
	box   *gvisor.Sandbox
	http  *http.Client
	procs processconnect.ProcessClient
	files filesystemconnect.FilesystemClient
}

// create makes a sandbox in the one runtime that all tests share: making the
// base template takes longer than any of them.
func create(t testing.TB, accept func(tunnel.Header, net.Conn)) *sandbox {
	t.Helper()
	if unable != nil {
		t.Skipf("this machine runs no local sandboxes: %v", unable)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	box, err := sharedRuntime.Create(ctx, gvisor.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if accept != nil {
		accepters.Store(box.ID(), accept)
	}
	t.Cleanup(func() { box.Kill(context.Background()) })
	return attach(t, box)
}

func attach(t testing.TB, box *gvisor.Sandbox) *sandbox {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		session, err := box.Tunnel(ctx)
		if err != nil {
			return nil, err
		}
		return session.Open(ctx, tunnel.Header{Kind: tunnel.KindEnvd})
	}}}
	t.Cleanup(client.CloseIdleConnections)
	return &sandbox{
		t: t, box: box, http: client,
		procs: processconnect.NewProcessClient(client, "http://envd"),
		files: filesystemconnect.NewFilesystemClient(client, "http://envd"),
	}
}

type result struct {
	stdout, stderr, pty string
	pid                 uint32
	end                 *process.ProcessEvent_EndEvent
	err                 error
}

func (r *result) add(e *process.ProcessEvent) {
	if e.GetStart() != nil {
		r.pid = e.GetStart().GetPid()
	}
	r.stdout += string(e.GetData().GetStdout())
	r.stderr += string(e.GetData().GetStderr())
	r.pty += string(e.GetData().GetPty())
	if e.GetEnd() != nil {
		r.end = e.GetEnd()
	}
}

func (s *sandbox) start(user string, req *process.StartRequest, header ...string) *connect.ServerStreamForClient[process.StartResponse] {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	timer := time.AfterFunc(2*time.Minute, cancel)
	s.t.Cleanup(func() { timer.Stop(); cancel() })
	r := connect.NewRequest(req)
	if user != "" {
		r.Header().Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":")))
	}
	for i := 0; i < len(header); i += 2 {
		r.Header().Set(header[i], header[i+1])
	}
	stream, err := s.procs.Start(ctx, r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { stream.Close() })
	return stream
}

func shell(script string) *process.StartRequest {
	return &process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-c", script}}, Stdin: new(bool)}
}

// sh runs a script as a user ("" is the default one) and returns how it went.
func (s *sandbox) sh(user, script string, header ...string) result {
	s.t.Helper()
	stream := s.start(user, shell(script), header...)
	defer stream.Close()
	var r result
	for stream.Receive() {
		r.add(stream.Msg().GetEvent())
	}
	r.err = stream.Err()
	return r
}

func (s *sandbox) want(user, script, output string) {
	s.t.Helper()
	if r := s.sh(user, script); r.err != nil || strings.TrimSpace(r.stdout) != output {
		s.t.Errorf("%s: got %+v, want %q", script, r, output)
	}
}
