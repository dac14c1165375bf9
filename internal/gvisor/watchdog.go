package gvisor

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentsquad"
)

// watchdogPeriod is how often memory is looked at where no cgroup bounds it.
const watchdogPeriod = time.Second

// guard ends sandboxes that hold more memory than they may, on machines that
// offer no memory cgroup. It is later and coarser than the kernel would be.
func (r *Runtime) guard(ctx context.Context) {
	tick := time.NewTicker(watchdogPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range r.List() {
			rec := s.record()
			if rec.Status != squad.SandboxRunning || heldBytes(rec.PID) <= (rec.MemoryMB+overheadMB)<<20 {
				continue
			}
			s.exhaust(ctx, rec.PID)
		}
	}
}

// exhaust ends a sandbox for want of memory, if it is still the same process.
func (s *Sandbox) exhaust(ctx context.Context, pid int) {
	if s.begin(ctx) != nil {
		return
	}
	defer s.end()
	if s.record().PID != pid {
		return
	}
	s.rt.cfg.Log.Warn("sandbox died", "sandbox_id", s.id, "reason", outOfMemory)
	s.clean(ctx, outOfMemory)
	if s.rt.cfg.OnChange != nil {
		s.rt.cfg.OnChange(s.Info())
	}
}

const outOfMemory = "the sandbox used more memory than it may"

// heldBytes is the memory of a sandbox: gVisor keeps that of all its processes in
// one file without a name.
func heldBytes(pid int) int64 {
	proc := "/proc/" + strconv.Itoa(pid)
	fds, err := filepath.Glob(proc + "/fd/*")
	if err == nil {
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err != nil || !strings.HasPrefix(target, "/memfd:runsc-memory") {
				continue
			}
			var st unix.Stat_t
			if unix.Stat(fd, &st) == nil {
				return st.Blocks * 512
			}
		}
	}
	var sum Stats
	addProcess(&sum, pid)
	return sum.MemoryBytes
}
