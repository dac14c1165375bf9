package nodes

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsquad/client"
)

// server is one process of the built program.
type server struct {
	t       *testing.T
	name    string
	data    string
	address string
	cmd     *exec.Cmd
	log     logBuffer
	*client.Client
}

// logBuffer is written by the process and read by the test.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// program is the binary under test: SQUAD_BIN (make test sets it), or one built here.
func program(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("SQUAD_BIN"); bin != "" {
		return bin
	}
	bin := filepath.Join(t.TempDir(), "squad")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "agentsquad/cmd/squad")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// folder is a short-named one: unix sockets of sandboxes lie in it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "squad-nodes-") //nolint:usetesting // unix sockets need a short path
	must(t, err)
	t.Cleanup(func() {
		killWith(dir)
		_ = os.RemoveAll(dir)
	})
	return dir
}

func freeAddress(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// newServer prepares a server; env are its settings beyond the defaults.
func newServer(t *testing.T, name string, env ...string) *server {
	t.Helper()
	s := &server{t: t, name: name, data: folder(t), address: freeAddress(t)}
	s.cmd = exec.Command(program(t), "up", "--listen", s.address, "--data", s.data, "--log-level", "info", "--log-format", "json", "--pool-max", "0")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.data}, env...)
	return s
}

// start waits until the server answers.
func (s *server) start() {
	s.t.Helper()
	must(s.t, s.cmd.Start())
	s.t.Cleanup(s.end)
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		cfg, err := client.FromData(s.data)
		if err != nil {
			continue
		}
		if s.Client, err = client.New(cfg); err == nil && s.Ready(s.t.Context()) == nil {
			return
		}
	}
	s.t.Fatalf("%s did not become ready\n%s", s.name, s.log.String())
}

// refused starts a server that must not come up, and returns what it says.
func (s *server) refused() string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	must(s.t, s.cmd.Start())
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		if err == nil {
			s.t.Errorf("%s ended without an error", s.name)
		}
	case <-ctx.Done():
		_ = s.cmd.Process.Kill()
		s.t.Errorf("%s started, although it must not:\n%s", s.name, s.log.String())
	}
	return s.log.String()
}

// kill ends the server as a power cut of its machine would: with its sandboxes.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	killWith(s.data)
}

func (s *server) end() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		done := make(chan struct{})
		go func() { _ = s.cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = s.cmd.Process.Kill()
		}
	}
	if text := s.log.String(); s.t.Failed() {
		s.t.Logf("%s said:\n%s", s.name, text[max(0, len(text)-6000):])
	}
}

// killWith ends the processes whose command line names a folder of ours.
func killWith(dir string) {
	for range 3 { // a sandbox has several, and some start others
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range files {
			text, err := os.ReadFile(name)
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			if err == nil && bytes.Contains(text, []byte(dir)) && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}
