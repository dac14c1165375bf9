package gvisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad/internal/gvisor"
)

// tree writes files below a folder.
func tree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// No machine has both versions in full, so the layout of version 2 is laid out
// as plain files: what is written where is the same. `make test-vm` tries it on a real one.
func TestCgroup_Version2(t *testing.T) {
	t.Parallel()
	self := fmt.Sprintln(os.Getpid())
	const own = "fs/user.slice/squad.service"
	for name, c := range map[string]struct {
		files map[string]string
		base  string // "" means that there can be none
		moved string // what is moved to a leaf
	}{
		"root of the machine":  {base: "fs", files: map[string]string{own + "/cgroup.procs": self + "1\n"}},
		"delegated and alone":  {base: own, moved: self, files: map[string]string{"fs/cgroup.type": "domain\n", own + "/cgroup.procs": self}},
		"with a shell in it":   {files: map[string]string{"fs/cgroup.type": "domain\n", own + "/cgroup.procs": "1\n" + self}},
		"root of a container":  {base: "fs", moved: "1\n", files: map[string]string{"fs/cgroup.type": "domain\n", "fs/cgroup.procs": "1\n", "proc/cgroup": "0::/\n"}},
		"nobody may read whom": {files: map[string]string{"fs/cgroup.type": "domain\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tree(t, dir, map[string]string{
				"proc/cgroup":               "0::/user.slice/squad.service\n",
				"proc/mounts":               fmt.Sprintf("cgroup2 %s/fs cgroup2 rw 0 0\n", dir),
				"fs/cgroup.controllers":     "cpuset cpu io memory pids\n",
				own + "/cgroup.controllers": "cpuset cpu io memory pids\n",
			})
			tree(t, dir, c.files)
			base := filepath.Join(dir, c.base)
			box := filepath.Join(base, "squad-x/box")
			if c.base != "" {
				tree(t, box, map[string]string{"memory.swap.max": "max"})
			}
			dirs, missing, err := gvisor.CgroupsIn(filepath.Join(dir, "proc"), "squad-x", "box", gvisor.Limits{CPU: 1.5, MemoryMB: 100, MaxProcs: 10})
			if c.base == "" {
				if _, made := os.Stat(filepath.Join(dir, own, "cgroup.subtree_control")); len(missing) != 1 || err != nil || made == nil {
					t.Errorf("missing %v, %v; the cgroup of others was changed: %v", missing, err, made == nil)
				}
				return
			}
			if err != nil || len(missing) > 0 || len(dirs) != 1 || dirs[0] != box {
				t.Fatalf("folders %v, missing %v, %v", dirs, missing, err)
			}
			for file, want := range map[string]string{
				box + "/cpu.max": "150000 100000", box + "/memory.max": fmt.Sprint((100 + 160) << 20), box + "/memory.swap.max": "0", box + "/pids.max": "1064",
				base + "/cgroup.subtree_control": "+pids", base + "/squad-x-server/cgroup.procs": strings.TrimSpace(c.moved),
			} {
				if got, _ := os.ReadFile(file); string(got) != want {
					t.Errorf("%s: %q, want %q", file, got, want)
				}
			}
		})
	}
}

func TestCgroup_WhatIsNotDelegatedIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree(t, dir, map[string]string{
		"proc/cgroup":           "0::/\n",
		"proc/mounts":           fmt.Sprintf("cgroup2 %s/fs cgroup2 rw 0 0\n", dir),
		"fs/cgroup.controllers": "pids\n",
	})
	dirs, missing, err := gvisor.CgroupsIn(filepath.Join(dir, "proc"), "n", "box", gvisor.Limits{CPU: 1, MemoryMB: 100, MaxProcs: 10})
	if err != nil || len(dirs) != 1 {
		t.Errorf("folders %v, %v", dirs, err)
	}
	if got := strings.Join(missing, "\n"); !strings.Contains(got, "memory") || !strings.Contains(got, "cpu") || strings.Contains(got, "pids") {
		t.Errorf("missing %q", got)
	}
	_, missing, err = gvisor.CgroupsIn(filepath.Join(dir, "nowhere"), "n", "box", gvisor.Limits{})
	if err != nil || len(missing) == 0 {
		t.Errorf("without /proc: %v %v", missing, err)
	}
}

// On this machine the real thing: processes of the sandbox are in its cgroups.
func TestCgroup_SandboxIsInside(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	r := newRuntime(t, func(c *gvisor.Config) { c.Dir = dir })
	s := create(t, r, gvisor.Spec{ID: "inside"})
	if len(s.Info().Warnings) > 0 {
		t.Skipf("SKIPPED: no cgroups here: %v (run as root or with Delegate=yes)", s.Info().Warnings)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "sandboxes/inside/pid"))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/cgroup")
	if err != nil || !strings.Contains(string(groups), cgroupOf(dir)+"/inside") {
		t.Errorf("cgroups of the sandbox: %v\n%s", err, groups)
	}
	stats, err := s.Stats(t.Context())
	if err != nil || stats.MemoryBytes == 0 || stats.Processes == 0 || stats.CPU == 0 {
		t.Errorf("stats %+v, %v", stats, err)
	}
}

// Servers that were killed and whose data is gone leave cgroups without a process. Ours,
// those in use and those just made stay.
func TestPruneOthers_OldAndEmptyOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := func(age time.Duration, parts ...string) string {
		d := filepath.Join(append([]string{root}, parts...)...)
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(d, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	var stay, gone []string
	gone = append(gone, dir(time.Hour, "squad-dead", "box1"), dir(time.Hour, "squad-dead"))
	stay = append(stay, dir(time.Hour, "squad-live", "used", "process"), dir(0, "squad-live", "young"), dir(time.Hour, "squad-own", "box"), dir(time.Hour, "someone", "box"))
	gvisor.PruneOthers("squad", filepath.Join(root, "squad-own"))
	for _, d := range stay {
		if _, err := os.Stat(d); err != nil {
			t.Errorf("%s is gone", d)
		}
	}
	for _, d := range gone {
		if _, err := os.Stat(d); err == nil {
			t.Errorf("%s is still there", d)
		}
	}
}

// On the root of a machine, runtimes in containers meet that all call their folder by the
// same name: one must not take the sandboxes of another for its own that were left.
func TestCgroupName_IsOfOneFolderOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	names := map[string]bool{}
	for i := range 2 {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		names[gvisor.CgroupName(dir)] = true
		if again := gvisor.CgroupName(dir); !names[again] {
			t.Errorf("the same folder has another name: %s", again)
		}
		if err := os.Rename(dir, fmt.Sprint(dir, i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 2 {
		t.Errorf("two folders with one path share cgroups: %v", names)
	}
}
