package gvisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsquad/internal/gvisor"
)

func TestCreate_InACrowdItSleepsWhileItWaits(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, func(c *gvisor.Config) { c.Crowd = 2 })
	first, second := create(t, r, gvisor.Spec{ID: "crowd-1"}), create(t, r, gvisor.Spec{ID: "crowd-2"})
	if sleeps(t, "crowd-1") || sleeps(t, "crowd-2") {
		t.Error("two sandboxes are not yet a crowd of two when they start")
	}
	third := create(t, r, gvisor.Spec{ID: "crowd-3"})
	if !sleeps(t, "crowd-3") {
		t.Error("a sandbox that starts in a crowd spins while it waits")
	}
	mustRun(t, third, "echo kept > /tmp/f")
	for _, s := range []*gvisor.Sandbox{third, second} {
		if err := s.Pause(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if err := third.Resume(t.Context()); err != nil { // beside the first, alone
		t.Fatal(err)
	}
	if out := mustRun(t, third, "cat /tmp/f"); out != "kept" || sleeps(t, "crowd-3") {
		t.Errorf("resumed when the crowd had gone: %q, sleeps: %v", out, sleeps(t, "crowd-3"))
	}
	mustRun(t, first, "true")
}

// sleeps says how the kernel of a sandbox was started.
func sleeps(t *testing.T, id string) bool {
	t.Helper()
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		data, _ := os.ReadFile(name)
		args := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
		if args[len(args)-1] == id && strings.Contains(string(data), "\x00boot\x00") {
			return strings.Contains(string(data), "systrap-disable-fast-path")
		}
	}
	t.Fatalf("sandbox %s has no kernel", id)
	return false
}
