package gvisor_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsquad/internal/gvisor"
)

// An ordinary user gets the same sandboxes: the suite's main stories are run
// again as one.
func TestRootless_TheSameStories(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: these tests run as an ordinary user already")
	}
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	program, daemon := filepath.Join(dir, "gv.test"), filepath.Join(dir, "envd")
	copyProgram(t, "/proc/self/exe", program)
	copyProgram(t, envdProgram, daemon)
	cmd := exec.CommandContext(t.Context(), program, "-test.timeout=80s",
		"-test.run=^(TestCreate_RunsACommand|TestPause_(KeepsProcessesAndFiles|WithoutMemoryKeepsFilesOnly)|TestFork_EachHasItsOwnFiles|TestRootlessMemoryHog|TestEscape_HostFilesAreNotThere|TestLimits_(ForkBomb|DiskFiller)HurtsItselfOnly|TestRecover_AfterKill9|TestCgroup_Version2)$")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir, envdEnv + "=" + daemon}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "user namespace") {
			t.Skipf("SKIPPED: ordinary users may not make user namespaces here (sysctl kernel.unprivileged_userns_clone=1): %s", out)
		}
		t.Fatalf("as an ordinary user: %v\n%s", err, out)
	}
}

// Without a cgroup the watchdog ends a hog.
func TestRootlessMemoryHog(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED: run as an ordinary user by TestRootless_TheSameStories")
	}
	changes := make(chan gvisor.Info, 1)
	r := newRuntime(t, func(c *gvisor.Config) { c.OnChange = func(i gvisor.Info) { changes <- i } })
	s := create(t, r, gvisor.Spec{Limits: gvisor.Limits{MemoryMB: 128}})
	if len(s.Info().Warnings) == 0 {
		t.Skip("SKIPPED: this user has cgroups")
	}
	mustRun(t, s, "for i in 1 2 3 4 5 6; do (head -c 100000000 /dev/zero | tail | sleep 100) >/dev/null 2>&1 & done")
	select {
	case i := <-changes:
		if !strings.Contains(i.Error, "memory") {
			t.Errorf("ended with %q", i.Error)
		}
	case <-time.After(30 * time.Second):
		t.Error("the hog was not stopped")
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Skipf("SKIPPED: no daemon was built: %v", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}
