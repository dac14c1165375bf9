package gvisor_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/tunnel"
)

func TestPause_KeepsProcessesAndFiles(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{})
	mustRun(t, s, "echo kept > /home/user/f; echo u > /usr/local/bin/squad-test; (i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.05; done) >/dev/null 2>&1 & echo $! > /tmp/pid")
	if err := s.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, s, "cat /home/user/f /usr/local/bin/squad-test; kill -0 $(cat /tmp/pid) && echo alive"); out != "kept\nu\nalive" {
		t.Errorf("after resume: %q", out)
	}
}

func TestPause_WithoutMemoryKeepsFilesOnly(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{})
	mustRun(t, s, "echo kept > /home/user/f; echo u > /usr/local/bin/squad-test; sleep 1000 >/dev/null 2>&1 &")
	if err := s.Pause(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, s, "cat /home/user/f /usr/local/bin/squad-test; pgrep -c sleep || true"); out != "kept\nu\n0" {
		t.Errorf("after resume: %q", out)
	}
}

func TestFork_EachHasItsOwnFiles(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{})
	mustRun(t, s, "echo shared > /home/user/f; sleep 1000 >/dev/null 2>&1 & echo $! > /tmp/pid")
	ids := []string{"fork-a", "fork-b", "fork-c"}
	forks, errs := s.ForkAll(t.Context(), ids)
	for i, f := range forks {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		mustRun(t, f, "echo "+ids[i]+" >> /home/user/f")
	}
	for i, f := range forks {
		if out := mustRun(t, f, "cat /home/user/f; kill -0 $(cat /tmp/pid) && echo alive"); out != fmt.Sprintf("shared\n%s\nalive", ids[i]) {
			t.Errorf("fork %d: %q", i, out)
		}
	}
	if out := mustRun(t, s, "cat /home/user/f"); out != "shared" {
		t.Errorf("the original saw a fork's write: %q", out)
	}
}

func TestPause_ACallThatIsGivenUpLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{})
	mustRun(t, s, "echo kept > /tmp/f")
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
	defer cancel()
	err := s.Pause(ctx, true)
	if s.Info().Status == squad.SandboxPaused {
		err = s.Resume(t.Context())
	}
	if err != nil && s.Info().Status != squad.SandboxRunning {
		t.Fatalf("%s: %v", s.Info().Status, err)
	}
	if out := mustRun(t, s, "cat /tmp/f"); out != "kept" {
		t.Errorf("afterwards: %q", out)
	}
}

func TestCreate_ACallThatIsGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	r := newRuntime(t, func(c *gvisor.Config) { c.Dir = dir })
	for _, after := range []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if s, err := r.Create(ctx, gvisor.Spec{}); err == nil {
			_ = s.Kill(t.Context())
		}
		cancel()
	}
	if n := len(r.List()); n > 0 {
		t.Errorf("%d sandboxes on the list", n)
	}
	nothingLeft(t, dir)
}

func TestNew_OneProcessPerFolder(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	newRuntime(t, func(c *gvisor.Config) { c.Dir = dir })
	if _, err := gvisor.New(gvisor.Config{Dir: dir, EnvdPath: envdProgram}); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("a second runtime: %v", err)
	}
	if _, err := gvisor.New(gvisor.Config{Dir: "relative"}); squad.CodeOf(err) != squad.CodeInvalid {
		t.Errorf("a relative folder: %v", err)
	}
}

func TestOverlay_InMemory(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, func(c *gvisor.Config) { c.Overlay = gvisor.OverlayMemory })
	s := create(t, r, gvisor.Spec{Limits: gvisor.Limits{DiskMB: 32, MemoryMB: 512}})
	if out, code, err := sh(t.Context(), s, "head -c 80000000 /dev/zero > /tmp/big"); err != nil || code == 0 {
		t.Errorf("the limit does not hold: %v %s", err, out)
	}
	mustRun(t, s, "rm /tmp/big; echo kept > /home/user/f; echo u > /usr/local/bin/x")
	if err := s.Pause(t.Context(), false); squad.CodeOf(err) != squad.CodeRule {
		t.Errorf("pause without memory: %v", err)
	}
	if err := s.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, s, "cat /home/user/f /usr/local/bin/x"); out != "kept\nu" {
		t.Errorf("after resume: %q", out)
	}
	if stats, err := s.Stats(t.Context()); err != nil || stats.DiskBytes != 0 {
		t.Errorf("on disk: %+v %v", stats, err)
	}
}

// A sandbox can be paused and resumed again and again, in either way.
func TestPause_ManyTimes(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{})
	for i, memory := range []bool{true, true, false, true, false} {
		mustRun(t, s, fmt.Sprintf("echo %d >> /home/user/log", i))
		if err := s.Pause(t.Context(), memory); err != nil {
			t.Fatal(err)
		}
		if err := s.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if out := mustRun(t, s, "tr -d '\\n' < /home/user/log"); out != "01234" {
		t.Errorf("log %q", out)
	}
}

// Streams that are open, and that come and go, do not keep a sandbox from being saved:
// gVisor cannot save one that still holds its end of the tunnel.
func TestPause_WhileStreamsComeAndGo(t *testing.T) {
	t.Parallel()
	s := create(t, newRuntime(t), gvisor.Spec{})
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for ctx.Err() == nil {
				session, err := s.Tunnel(ctx)
				if err != nil {
					time.Sleep(time.Millisecond) // paused
					continue
				}
				c, err := session.Open(ctx, tunnel.Header{Kind: tunnel.KindEnvd})
				if err != nil {
					continue
				}
				_, _ = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: envd\r\n\r\n")
				_, _ = io.CopyN(io.Discard, c, 1)
				_ = c.Close()
			}
		})
	}
	for i := range 8 {
		if err := s.Pause(t.Context(), true); err != nil {
			t.Fatalf("pause %d: %v", i, err)
		}
		if err := s.Resume(t.Context()); err != nil {
			t.Fatalf("resume %d: %v", i, err)
		}
	}
	stop()
	group.Wait()
	mustRun(t, s, "true")
}

// Names of sockets may have 107 bytes; data folders may be longer.
func TestCreate_InADeepFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), strings.Repeat("deep/", 30), "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t, func(c *gvisor.Config) { c.Dir = dir })
	s := create(t, r, gvisor.Spec{ID: "deep"})
	if err := s.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, s, "echo fine"); out != "fine" {
		t.Errorf("output %q", out)
	}
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, dir)
	for _, place := range []string{"/run", "/var/run", "/tmp"} {
		if _, err := os.Stat(filepath.Join(place, "runsc-deep.sock")); err == nil {
			t.Errorf("a socket is left in %s", place)
		}
	}
}
