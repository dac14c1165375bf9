package gvisor_test

import (
	"os"
	"testing"
	"time"

	"agentsquad/internal/gvisor"
)

func TestScratch(t *testing.T) {
	r := newRuntime(t)
	t0 := time.Now()
	s := create(t, r, gvisor.Spec{Limits: gvisor.Limits{CPU: 1, MemoryMB: 512, DiskMB: 100, MaxProcs: 200}})
	t.Log("create", time.Since(t0))
	ctx := t.Context()
	out, code, err := sh(ctx, s, os.Getenv("SCRIPT"))
	t.Logf("%d %v\n%s", code, err, out)
	st, err := s.Stats(ctx)
	t.Logf("%+v %v", st, err)
}
