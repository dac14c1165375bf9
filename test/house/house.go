// Package house starts the built program for the tests that see it from outside: in a
// data folder of its own, with an environment of its own, killed and started again at
// will. What a test leaves behind ends with it, sandboxes too.
package house

import (
	"bytes"
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

// Server is one process of the program at a time, in one folder.
type Server struct {
	// Client is the administrator's, once the server was started.
	*client.Client
	// Bin is the program, Data the folder, Address where it listens.
	Bin, Data, Address string
	// Log is what it printed, over all starts.
	Log Log
	Cmd *exec.Cmd
	// Flags and Env are what the next start is given.
	Flags, Env []string

	t testing.TB
}

// New prepares a server that is started with further flags and settings (NAME=value).
// Nothing of the caller's environment but PATH reaches it.
func New(t testing.TB, flags, env []string) *Server {
	t.Helper()
	data, err := os.MkdirTemp("", "squad-") //nolint:usetesting // unix sockets need a short path
	Must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	defer l.Close()
	s := &Server{t: t, Bin: Program(t), Data: data, Address: l.Addr().String(), Flags: flags}
	s.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + data}, env...)
	t.Cleanup(s.end)
	return s
}

// program builds the binary once where SQUAD_BIN names none. It stays for the next.
var program = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(os.TempDir(), "squad-tested-"+strconv.Itoa(os.Getuid()), "squad")
	cmd := exec.Command("go", "build", "-o", bin, "agentsquad/cmd/squad")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return bin, cmd.Run()
})

// Program is the binary under test: SQUAD_BIN (make test and make bench set it), or
// one built here.
func Program(t testing.TB) string {
	t.Helper()
	if bin := os.Getenv("SQUAD_BIN"); bin != "" {
		return bin
	}
	bin, err := program()
	Must(t, err)
	return bin
}

// Prepare makes the command of the next start.
func (s *Server) Prepare() {
	s.Cmd = exec.Command(s.Bin, append([]string{"up", "--listen", s.Address, "--data", s.Data, "--log-format", "json"}, s.Flags...)...)
	s.Cmd.Stdout, s.Cmd.Stderr, s.Cmd.Env = &s.Log, &s.Log, s.Env
}

// Start starts the server and waits until it is ready.
func (s *Server) Start() {
	s.t.Helper()
	s.Prepare()
	Must(s.t, s.Cmd.Start())
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		cfg, err := client.FromData(s.Data)
		if err != nil {
			continue
		}
		if s.Client, err = client.New(cfg); err == nil && s.Ready(s.t.Context()) == nil {
			return
		}
	}
	s.t.Fatalf("the server did not become ready\n%s", s.Log.String())
}

// Kill ends the server as a crash would. Sandboxes go on.
func (s *Server) Kill() {
	_ = s.Cmd.Process.Kill()
	_ = s.Cmd.Wait()
}

// PowerCut ends the server and its sandboxes, as the loss of its machine would.
func (s *Server) PowerCut() {
	s.Kill()
	killWith(s.Data)
}

// Stop asks the server to end, and waits for it.
func (s *Server) Stop() {
	if s.Cmd == nil || s.Cmd.Process == nil || s.Cmd.ProcessState != nil {
		return
	}
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(30*time.Second, func() { _ = s.Cmd.Process.Kill() })
	_ = s.Cmd.Wait()
	if !late.Stop() {
		s.t.Errorf("the server did not stop within 30 s")
	}
}

func (s *Server) end() {
	s.Stop()
	if text := s.Log.String(); s.t.Failed() {
		s.t.Logf("the server said:\n%s", text[max(0, len(text)-8000):])
	}
	killWith(s.Data)
	_ = os.RemoveAll(s.Data)
}

// killWith ends the processes whose command line names a folder of ours.
func killWith(folder string) {
	for range 3 { // a sandbox has several, and some start others
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil || !bytes.Contains(text, []byte(folder)) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// Log is written by the process and read by the test.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Must fails the test at once where there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Sh runs a script in a folder and returns what it prints.
func Sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Repository makes one with a single commit, ready for an import.
func Repository(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	Sh(t, dir, "git init -q -b main && echo hello > README.md && git add . && git -c user.name=A -c user.email=a@b commit -qm 'docs: begin'")
	return dir
}
