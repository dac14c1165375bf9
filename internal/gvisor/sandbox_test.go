package gvisor_test

import (
	"testing"

	"agentsquad/internal/gvisor"
)

func TestCreate_RunsACommand(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{})
	if out := mustRun(t, s, "echo hello; id -u"); out != "hello\n0" {
		t.Errorf("output %q", out)
	}
	if err := s.Kill(t.Context()); err != nil {
		t.Error(err)
	}
}
