package gvisor_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/internal/gvisor"
)

// serverEnv makes the test program a server that is killed by the test.
const serverEnv = "GVISOR_TEST_SERVER"

// server makes a running, a paused and a dying sandbox in dir, says so and
// starts another one until it is killed.
func server(dir string) {
	r, err := gvisor.New(gvisor.Config{Dir: dir, EnvdPath: envdProgram})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	ctx := context.Background()
	for _, id := range []string{"runs", "paused", "dies"} {
		s, err := r.Create(ctx, gvisor.Spec{ID: id})
		if err == nil && id == "runs" {
			_, _, err = sh(ctx, s, "echo before > /tmp/f; sleep 1000 >/dev/null 2>&1 & echo $! > /tmp/pid")
		}
		if err == nil && id == "paused" {
			err = s.Pause(ctx, true)
		}
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	go func() { _, _ = r.Create(ctx, gvisor.Spec{ID: "half"}) }()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if _, err := os.Stat(filepath.Join(dir, "sandboxes/half/runsc.log")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ready")
	select {}
}

func TestRecover_AfterKill9(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), serverEnv+"="+dir, envdEnv+"="+envdProgram)
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
	_ = cmd.Process.Kill() // -9
	_ = cmd.Wait()
	killSandbox(t, dir, "dies")

	r, err := gvisor.New(gvisor.Config{Dir: dir, EnvdPath: envdProgram})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found, err := r.Recover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(found.Running) + "|" + ids(found.Paused); got != "runs|paused" {
		t.Errorf("running|paused: %s", got)
	}
	if got := ids(found.Lost); !strings.Contains(got, "dies") || !strings.Contains(got, "half") {
		t.Errorf("lost: %s", got)
	}
	runs, err := r.Get("runs")
	if err != nil {
		t.Fatal(err)
	}
	if got := mustRun(t, runs, "cat /tmp/f; kill -0 $(cat /tmp/pid) && echo alive"); got != "before\nalive" {
		t.Errorf("attached again: %q", got)
	}
	paused, err := r.Get("paused")
	if err != nil {
		t.Fatal(err)
	}
	if err := paused.Resume(t.Context()); err != nil {
		t.Error(err)
	}
	for _, s := range r.List() {
		if err := s.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	}
	_ = r.Close()
	nothingLeft(t, dir)
}

// killSandbox ends the gVisor process of a sandbox behind the runtime's back.
func killSandbox(t *testing.T, dir, id string) {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(dir, "sandboxes", id, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), "kill", "-9", strings.TrimSpace(string(pid))).Run(); err != nil {
		t.Fatal(err)
	}
}

func ids(infos []gvisor.Info) string {
	var all []string
	for _, i := range infos {
		all = append(all, i.ID)
	}
	return strings.Join(all, ",")
}

// nothingLeft checks that no process, mount, socket, cgroup or folder of the
// data folder is left.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		data, _ := os.ReadFile(name)
		if cmd := string(data); strings.HasPrefix(cmd, "runsc") && strings.Contains(cmd, dir) {
			t.Errorf("process left: %s %.200q", name, cmd)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	if strings.Contains(string(mounts), dir) {
		t.Errorf("mount left: %s", mounts)
	}
	for _, sub := range []string{"sandboxes", "runsc"} {
		entries, _ := os.ReadDir(filepath.Join(dir, sub))
		for _, e := range entries {
			t.Errorf("left in %s: %s", sub, e.Name())
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*/squad-*/*/cgroup.procs", "/sys/fs/cgroup/squad-*/*/cgroup.procs"} {
		groups, _ := filepath.Glob(pattern)
		for _, g := range groups {
			procs, _ := os.ReadFile(g)
			if len(procs) == 0 && strings.Contains(g, cgroupOf(dir)) {
				t.Errorf("cgroup left: %s", g)
			}
		}
	}
}

func TestDeath_IsReportedAndCleaned(t *testing.T) {
	t.Parallel()
	changes := make(chan gvisor.Info, 1)
	dir := shortDir(t)
	r := newRuntime(t, func(c *gvisor.Config) { c.Dir = dir; c.OnChange = func(i gvisor.Info) { changes <- i } })
	s := create(t, r, gvisor.Spec{ID: "victim"})
	killSandbox(t, dir, "victim")
	select {
	case i := <-changes:
		if i.Status != squad.SandboxError || i.ID != "victim" {
			t.Errorf("reported %+v", i)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the death was not noticed")
	}
	<-s.Done()
	if _, err := r.Get("victim"); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("get after death: %v", err)
	}
	nothingLeft(t, dir)
}
