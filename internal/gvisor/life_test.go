package gvisor_test

import (
	"fmt"
	"testing"

	"agentsquad/internal/gvisor"
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
