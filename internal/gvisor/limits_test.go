package gvisor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/internal/gvisor"
)

func TestLimits_ForkBombHurtsItselfOnly(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	bad := create(t, r, gvisor.Spec{Limits: gvisor.Limits{MaxProcs: 100, MemoryMB: 512}})
	good := create(t, r, gvisor.Spec{})
	out, _, err := shAs(t.Context(), bad, "user", `n=0; while [ $n -lt 300 ]; do sleep 300 >/dev/null 2>&1 & n=$((n+1)); done; echo made`)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(out, "made") {
		t.Errorf("300 processes were made: %s", out)
	}
	if got := mustRun(t, good, "echo fine"); got != "fine" {
		t.Errorf("a neighbour answered %q", got)
	}
	if got := mustRun(t, bad, "pkill sleep; echo fine"); got != "fine" {
		t.Errorf("root in the sandbox itself got %q", got)
	}
}

func TestLimits_ProcessLimitHoldsForRoot(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{Limits: gvisor.Limits{MaxProcs: 60, MemoryMB: 512}})
	out, _, err := sh(t.Context(), s, `ulimit -Hu 100000 2>&1; n=0; while [ $n -lt 200 ]; do sleep 300 >/dev/null 2>&1 & n=$((n+1)); done; echo made`)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(out, "made") {
		t.Errorf("root made 200 processes: %s", out)
	}
}

func TestLimits_MemoryHogHurtsItselfOnly(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{Limits: gvisor.Limits{MemoryMB: 256}})
	good := create(t, r, gvisor.Spec{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	// tail keeps all it reads, because no line ends.
	_, code, err := sh(ctx, s, "head -c 700000000 /dev/zero | tail")
	if err == nil && code == 0 {
		t.Error("700 MB fitted into 256 MB")
	}
	if got := mustRun(t, good, "echo fine"); got != "fine" {
		t.Errorf("a neighbour answered %q", got)
	}
}

// The kernel counts how often it held back a sandbox that wanted more than its share.
func TestLimits_ProcessorHogIsHeldBack(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	r := newRuntime(t, func(c *gvisor.Config) { c.Dir = dir })
	s := create(t, r, gvisor.Spec{ID: "hog", Limits: gvisor.Limits{CPU: 0.5}})
	if len(s.Info().Warnings) > 0 {
		t.Skipf("SKIPPED: no cgroups here: %v (run as root or with Delegate=yes)", s.Info().Warnings)
	}
	mustRun(t, s, "for i in 1 2; do timeout 0.5 sh -c 'while :; do :; done' & done; wait")
	pid, err := os.ReadFile(filepath.Join(dir, "sandboxes/hog/pid"))
	if err != nil {
		t.Fatal(err)
	}
	groups, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/cgroup")
	var stats []byte
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		data, _ := os.ReadFile(filepath.Join("/sys/fs/cgroup", parts[1], parts[2], "cpu.stat"))
		stats = append(stats, data...)
	}
	if text := string(stats); !strings.Contains(text, "nr_throttled") || strings.Contains(text, "nr_throttled 0\n") {
		t.Errorf("it was not held back: %q", text)
	}
}

func TestLimits_MachineLooksAsLargeAsItsLimits(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{Limits: gvisor.Limits{CPU: 1, MemoryMB: 300, DiskMB: 64}})
	got := mustRun(t, s, "nproc; awk '/MemTotal/{print int($2/1024)}' /proc/meminfo; df -m / | awk 'NR==2{print $2}'; ulimit -n")
	if got != "1\n300\n64\n65536" {
		t.Errorf("inside: %q", got)
	}
}

func TestLimits_DiskFillerHurtsItselfOnly(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	r := newRuntime(t, func(c *gvisor.Config) { c.Dir = dir })
	s := create(t, r, gvisor.Spec{Limits: gvisor.Limits{DiskMB: 32, MemoryMB: 512}})
	for _, path := range []string{"/tmp/f", "/home/user/f", "/usr/lib/f", "/var/f"} {
		out, code, err := sh(t.Context(), s, "head -c 80000000 /dev/zero > "+path)
		if err != nil || code == 0 || !strings.Contains(out, "No space left") {
			t.Errorf("%s: exit %d %v %s", path, code, err, out)
		}
	}
	stats, err := s.Stats(t.Context())
	if err != nil || stats.DiskBytes > 100<<20 {
		t.Errorf("stats %+v, %v", stats, err)
	}
	if got := mustRun(t, s, "rm -f /tmp/f /home/user/f /var/f; echo x > /tmp/g; cat /tmp/g"); got != "x" {
		t.Errorf("after making room: %q", got)
	}
	var onDisk int64
	_ = filepath.Walk(filepath.Join(dir, "sandboxes"), func(_ string, info os.FileInfo, err error) error {
		if err == nil && !strings.HasPrefix(info.Name(), "held-") { // links to images
			onDisk += info.Size()
		}
		return nil
	})
	if onDisk > 1<<20 {
		t.Errorf("%d bytes with names on disk", onDisk)
	}
}

func TestCreate_BadRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	r := newRuntime(t, func(c *gvisor.Config) { c.Dir = dir })
	for name, tc := range map[string]struct {
		spec gvisor.Spec
		code squad.Code
	}{
		"id with slash":    {gvisor.Spec{ID: "../x"}, squad.CodeInvalid},
		"id with capital":  {gvisor.Spec{ID: "A"}, squad.CodeInvalid},
		"unknown template": {gvisor.Spec{Template: "nope"}, squad.CodeNotFound},
		"bad template":     {gvisor.Spec{Template: "../../etc"}, squad.CodeInvalid},
		"negative":         {gvisor.Spec{Limits: gvisor.Limits{CPU: -1}}, squad.CodeInvalid},
		"tiny":             {gvisor.Spec{Limits: gvisor.Limits{MemoryMB: 1}}, squad.CodeInvalid},
		"mount on proc":    {gvisor.Spec{Mounts: []gvisor.Mount{{Dir: "/usr", Path: "/proc/x"}}}, squad.CodeInvalid},
		"mount on root":    {gvisor.Spec{Mounts: []gvisor.Mount{{Dir: "/usr", Path: "/"}}}, squad.CodeInvalid},
		"mount dots":       {gvisor.Spec{Mounts: []gvisor.Mount{{Dir: "/usr", Path: "/a/../b"}}}, squad.CodeInvalid},
		"mount two":        {gvisor.Spec{Mounts: []gvisor.Mount{{Dir: "/usr", Image: "/x", Path: "/a"}}}, squad.CodeInvalid},
		"mount nothing":    {gvisor.Spec{Mounts: []gvisor.Mount{{Dir: "/nowhere/at/all", Path: "/a"}}}, squad.CodeInvalid},
		"mount not image":  {gvisor.Spec{Mounts: []gvisor.Mount{{Image: "/usr", Path: "/a"}}}, squad.CodeInvalid},
	} {
		if _, err := r.Create(t.Context(), tc.spec); squad.CodeOf(err) != tc.code {
			t.Errorf("%s: %v, want %s", name, err, tc.code)
		}
	}
	if n := len(r.List()); n != 0 {
		t.Errorf("%d sandboxes on the list", n)
	}
	nothingLeft(t, dir)
}
