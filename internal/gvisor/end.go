package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agentsquad"
)

// cleanupTimeout bounds the removal of a sandbox; it runs even when its caller
// has given up.
const cleanupTimeout = 30 * time.Second

// watch holds the sandbox's process and notices its end. Who it is stands on disk with
// the next change of the record; until then the pid file tells.
func (s *Sandbox) watch() (*process, error) {
	pid, err := readPID(s.box.pid())
	if err != nil {
		return nil, err
	}
	p, err := openProcess(pid, 0)
	if err != nil {
		return nil, err
	}
	started, _ := startTime(pid)
	s.mu.Lock()
	s.rec.PID, s.rec.Started = pid, started
	s.mu.Unlock()
	s.follow(p)
	return p, nil
}

// follow waits for the end of p on a goroutine of its own.
func (s *Sandbox) follow(p *process) {
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()
	go func() {
		if p.wait() != nil {
			return // let go by unwatch
		}
		close(p.gone)
		s.died(p)
	}()
}

// unwatch lets go of the process without ending it.
func (s *Sandbox) unwatch() {
	s.mu.Lock()
	p := s.proc
	s.proc = nil
	s.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// died cleans up after a sandbox that ended by itself. A verb that ends the
// process on purpose has let go of it before.
func (s *Sandbox) died(p *process) {
	s.turn <- struct{}{}
	defer s.end()
	s.mu.Lock()
	mine := s.proc == p
	s.mu.Unlock()
	if !mine {
		return
	}
	reason := "the sandbox ended by itself"
	if oomKilled(s.record().Cgroups) {
		reason = outOfMemory
	}
	s.rt.cfg.Log.Warn("sandbox died", "sandbox_id", s.id, "reason", reason)
	s.clean(context.Background(), reason)
	if s.rt.cfg.OnChange != nil {
		s.rt.cfg.OnChange(s.Info())
	}
}

// Kill ends the sandbox, running or paused, and removes all of it. A second call
// does nothing.
func (s *Sandbox) Kill(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	return s.finish(ctx, squad.SandboxTerminated, "")
}

// clean ends a sandbox that failed; what cannot be removed now is left to the
// next recovery and logged. The caller holds the turn.
func (s *Sandbox) clean(ctx context.Context, reason string) {
	if err := s.finish(ctx, squad.SandboxError, reason); err != nil {
		s.rt.cfg.Log.Error("clean up sandbox", "sandbox_id", s.id, "error", err)
	}
}

// finish ends the sandbox for good. The caller holds the turn.
func (s *Sandbox) finish(ctx context.Context, status squad.SandboxStatus, reason string) error {
	if s.Info().Status.Final() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	err := s.stop(ctx)
	s.mu.Lock()
	s.rec.Status, s.rec.Error, s.rec.EndedAt = status, reason, now()
	s.wake()
	s.mu.Unlock()
	if rerr := os.RemoveAll(string(s.box)); rerr != nil {
		err = errors.Join(err, fmt.Errorf("remove sandbox folder: %w", rerr))
	}
	s.rt.remove(s)
	close(s.done)
	if err != nil {
		return fmt.Errorf("clean up sandbox %s: %w", s.id, err)
	}
	return nil
}

// stop ends the sandbox's processes and removes what lives outside its folder.
// The record and the folder stay.
func (s *Sandbox) stop(ctx context.Context) error {
	s.closeDoor()
	s.unwatch()
	rec := s.record()
	return s.rt.sweep(ctx, rec)
}

// sweep ends what is left of the processes of rec and removes its cgroups and
// runsc's notes.
func (r *Runtime) sweep(ctx context.Context, rec record) error {
	var errs []error
	if rec.Boot == bootID() {
		sandbox, gofer := r.runsc.processes(rec.ID)
		if rec.PID != 0 {
			errs = append(errs, killAndWait(ctx, rec.PID, rec.Started))
		}
		for _, pid := range []int{sandbox, gofer} {
			if pid > 1 && pid != rec.PID && isRunsc(pid) {
				errs = append(errs, killAndWait(ctx, pid, 0))
			}
		}
		if rec.PID == 0 || len(rec.Cgroups) == 0 { // cut short, or no cgroup that would show the rest
			for _, p := range runscProcesses(r.runsc.root) {
				if p.id == rec.ID {
					errs = append(errs, killAndWait(ctx, p.pid, 0))
				}
			}
		}
	}
	errs = append(errs, removeCgroups(ctx, rec.Cgroups), r.runsc.forget(rec.ID))
	return errors.Join(errs...)
}
