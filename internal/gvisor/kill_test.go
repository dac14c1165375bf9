package gvisor_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/internal/gvisor"
)

// busyEnv makes the test program a server that makes, pauses, resumes, forks and
// kills sandboxes until it is killed itself.
const busyEnv = "GVISOR_TEST_BUSY"

func busy(dir string) {
	r, err := gvisor.New(gvisor.Config{Dir: dir, EnvdPath: envdProgram})
	if err == nil {
		_, err = r.Recover(context.Background())
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	for range 3 {
		go func() {
			for {
				busyLife(r)
			}
		}()
	}
	select {}
}

// busyLife is one sandbox from its making to its end.
func busyLife(r *gvisor.Runtime) {
	ctx := context.Background()
	s, err := r.Create(ctx, gvisor.Spec{Limits: gvisor.Limits{MemoryMB: 256}})
	if err != nil {
		return
	}
	switch rand.N(3) {
	case 0:
		if s.Pause(ctx, rand.N(2) == 0) == nil {
			_ = s.Resume(ctx)
		}
	case 1:
		if f, err := s.Fork(ctx, ""); err == nil {
			_ = f.Kill(ctx)
		}
	}
	_ = s.Kill(ctx)
}

// TestRecover_LeavesNothingWheneverTheServerWasKilled kills a busy server with
// signal 9 at points of chance. What is there right after the recovery belongs to a
// sandbox that runs or is paused; with their end, nothing is there.
func TestRecover_LeavesNothingWheneverTheServerWasKilled(t *testing.T) {
	t.Parallel()
	kills := 4 // -count for more
	if testing.Short() {
		kills = 2
	}
	dir := shortDir(t)
	for i := range kills {
		after := killBusy(t, dir)
		r, err := gvisor.New(gvisor.Config{Dir: dir, EnvdPath: envdProgram})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		found, err := r.Recover(t.Context())
		if err != nil {
			t.Errorf("kill %d after %v: recover: %v", i, after, err)
		}
		t.Logf("kill %d after %v: recovered in %v: %d running, %d paused, %d lost",
			i, after, time.Since(began), len(found.Running), len(found.Paused), len(found.Lost))
		strays(t, r, dir)
		endAll(t, r)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, dir)
		if t.Failed() {
			return
		}
	}
}

// killBusy starts a busy server and kills it a moment later.
func killBusy(t *testing.T, dir string) time.Duration {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), busyEnv+"="+dir, envdEnv+"="+envdProgram)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("server said %q", line)
	}
	after := rand.N(1200 * time.Millisecond)
	time.Sleep(after) // the point of chance
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return after
}

// strays looks for processes, notes, folders and cgroups of no sandbox.
func strays(t *testing.T, r *gvisor.Runtime, dir string) {
	t.Helper()
	var running, listed []string
	for _, s := range r.List() {
		listed = append(listed, s.ID())
		if s.Info().Status == squad.SandboxRunning {
			running = append(running, s.ID())
		}
	}
	of := func(what string, owners []string) bool {
		for _, id := range owners {
			if strings.Contains(what, id) {
				return true
			}
		}
		return false
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		data, _ := os.ReadFile(name)
		if cmd := string(data); strings.HasPrefix(cmd, "runsc") && strings.Contains(cmd, dir) && !of(cmd, running) {
			t.Errorf("process of no sandbox: %s %.300q", name, cmd)
		}
	}
	for pattern, owners := range map[string][]string{
		filepath.Join(dir, "sandboxes", "*"):                                     listed,
		filepath.Join(dir, "sandboxes", ".*"):                                    nil,
		filepath.Join(dir, "runsc", "*"):                                         running,
		filepath.Join("/sys/fs/cgroup", cgroupOf(dir), "*", "cgroup.procs"):      running,
		filepath.Join("/sys/fs/cgroup", "*", cgroupOf(dir), "*", "cgroup.procs"): running,
	} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			if !of(name, owners) {
				t.Errorf("of no sandbox: %s", name)
			}
		}
	}
}

// endAll uses and ends what was recovered.
func endAll(t *testing.T, r *gvisor.Runtime) {
	t.Helper()
	var wg sync.WaitGroup
	for _, s := range r.List() {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if s.Info().Status == squad.SandboxPaused {
				if err := s.Resume(ctx); err != nil {
					t.Errorf("resume %s: %v", s.ID(), err)
				}
			}
			if out, _, err := sh(ctx, s, "echo alive"); out != "alive" {
				t.Errorf("%s after recovery: %q %v", s.ID(), out, err)
			}
			if err := s.Kill(ctx); err != nil {
				t.Errorf("kill %s: %v", s.ID(), err)
			}
		})
	}
	wg.Wait()
}
