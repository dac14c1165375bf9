package e2bserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
)

// changeTimeout bounds one change of a sandbox's state. Changes are not given up
// when the caller goes away: half of one helps nobody.
const changeTimeout = 2 * time.Minute

// retryAfter is the pause before another try to end or pause a sandbox.
const retryAfter = 10 * time.Second

// minResume is the least lifetime after a resume by traffic.
const minResume = 5 * time.Minute

func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
}

// reserve takes a place among the owner's running sandboxes; release gives it
// back once the sandbox counts by itself, or was not made.
func (s *Server) reserve(owner string, n int) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.pending[owner]
	for _, b := range s.boxes {
		b.mu.Lock()
		if b.owner == owner && b.rec.State == running {
			count++
		}
		b.mu.Unlock()
	}
	if count+n > s.cfg.MaxRunning {
		return nil, squad.Errorf(squad.CodeQuota,
			"You have reached the maximum number of concurrent sandboxes (%d). Kill or pause some first", s.cfg.MaxRunning)
	}
	s.pending[owner] += n
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pending[owner] -= n; s.pending[owner] <= 0 {
			delete(s.pending, owner)
		}
	}, nil
}

// start makes the sandbox that rec describes and answers when envd in it does.
func (s *Server) start(ctx context.Context, rec record) (*box, error) {
	ctx, cancel := detach(ctx)
	defer cancel()
	m, err := s.host.Create(ctx, MachineSpec{
		ID: rec.ID, Template: rec.Image, CPU: float64(rec.CPU), MemoryMB: rec.MemoryMB, DiskMB: rec.DiskMB, Mounts: rec.Mounts,
	})
	if err != nil {
		return nil, fmt.Errorf("create sandbox %s: %w", rec.ID, err)
	}
	return s.welcome(ctx, newBox(rec, m), "sandbox started from template "+rec.Template)
}

// welcome gives a machine that is up its identity and puts the sandbox on the
// list. On an error nothing is left of it.
func (s *Server) welcome(ctx context.Context, b *box, message string) (*box, error) {
	s.wake(b)
	if err := s.initEnvd(ctx, b); err != nil {
		b.stop(errKilled)
		return nil, errors.Join(fmt.Errorf("start envd of %s: %w", b.id, err), b.machine.Kill(ctx))
	}
	now := s.cfg.Now().UTC()
	rec := b.change(func(r *record) {
		r.State, r.StartedAt, r.AwakeAt, r.EndAt = running, now, now, now.Add(r.Timeout)
	})
	if err := save(s.boxDir(), b.id, rec); err != nil {
		b.stop(errKilled)
		return nil, errors.Join(err, b.machine.Kill(ctx))
	}
	s.mu.Lock()
	s.boxes[b.id] = b
	s.mu.Unlock()
	s.deadlines.set(b.id, rec.EndAt)
	s.note(b, "info", message)
	return b, nil
}

// wake begins a new run of a machine that is up: fresh connections, and a watch
// for its end.
func (s *Server) wake(b *box) {
	ctx, end := context.WithCancelCause(context.Background())
	run := &live{ctx: ctx, end: end, transport: newTransport(b, envdIdle), ports: newTransport(b, portIdle)}
	b.mu.Lock()
	b.run = run
	done := b.machine.Done()
	b.mu.Unlock()
	go func() {
		select {
		case <-ctx.Done():
		case <-done:
			s.lose(b, run, "its processes ended")
		}
	}()
}

// pauseLocked stores a running sandbox. The caller holds the lock.
func (s *Server) pauseLocked(ctx context.Context, b *box, keepMemory bool) error {
	rec := b.view()
	if rec.State == paused {
		return squad.Errorf(squad.CodeConflict, "Sandbox %q is already paused", b.id)
	}
	ctx, cancel := detach(ctx)
	defer cancel()
	b.stop(errPaused)
	if err := b.machine.Pause(ctx, keepMemory); err != nil {
		s.wake(b) // still there as far as anyone knows; if not, its end is seen
		return fmt.Errorf("pause sandbox %s: %w", b.id, err)
	}
	now := s.cfg.Now().UTC()
	rec = b.change(func(r *record) { r.State, r.PausedAt, r.EndAt = paused, now, now })
	s.deadlines.drop(b.id)
	s.note(b, "info", "sandbox paused")
	return save(s.boxDir(), b.id, rec)
}

// resumeLocked starts a paused sandbox again for the given time. The caller
// holds the lock.
func (s *Server) resumeLocked(ctx context.Context, b *box, timeout time.Duration, fresh bool) error {
	release, err := s.reserve(b.owner, 1)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := detach(ctx)
	defer cancel()
	if err := b.machine.Resume(ctx, fresh); err != nil {
		return fmt.Errorf("resume sandbox %s: %w", b.id, err)
	}
	s.wake(b)
	if err := s.initEnvd(ctx, b); err != nil {
		b.stop(errPaused)
		return errors.Join(fmt.Errorf("start envd of %s: %w", b.id, err), b.machine.Pause(ctx, !fresh))
	}
	now := s.cfg.Now().UTC()
	rec := b.change(func(r *record) {
		r.State, r.AwakeAt, r.Timeout, r.EndAt, r.PausedAt = running, now, timeout, now.Add(timeout), time.Time{}
	})
	s.deadlines.set(b.id, rec.EndAt)
	s.note(b, "info", "sandbox resumed")
	return save(s.boxDir(), b.id, rec)
}

// kill ends a sandbox. Of two callers the second is told that it is not found.
func (s *Server) kill(ctx context.Context, b *box, why string) error {
	b.mu.Lock()
	second := b.ending
	b.ending = true
	b.mu.Unlock()
	if second {
		return notFound(b.id)
	}
	b.stop(errKilled) // streams are cut now, whatever else is under way
	ctx, cancel := detach(ctx)
	defer cancel()
	select {
	case b.op <- struct{}{}:
	case <-ctx.Done():
		b.change(func(*record) { b.ending = false })
		return squad.Wrap(squad.CodeUnavailable, ctx.Err(), "Sandbox %q is busy changing its state", b.id)
	}
	defer b.unlock()
	b.stop(errKilled) // a change that was under way may have begun a run
	return s.killLocked(ctx, b, why)
}

// killLocked ends a sandbox whose streams are cut. What cannot be ended is tried
// again until it is.
func (s *Server) killLocked(ctx context.Context, b *box, why string) error {
	if err := b.machine.Kill(ctx); err != nil {
		rec := b.change(func(r *record) { b.ending, r.Doomed = false, true })
		s.deadlines.set(b.id, s.cfg.Now().Add(retryAfter))
		return errors.Join(fmt.Errorf("kill sandbox %s: %w", b.id, err), save(s.boxDir(), b.id, rec))
	}
	s.remove(b)
	s.log.InfoContext(ctx, "sandbox killed", "sandbox_id", b.id, "reason", why)
	return forget(s.boxDir(), b.id)
}

func (s *Server) remove(b *box) {
	s.deadlines.drop(b.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes[b.id] == b {
		delete(s.boxes, b.id)
	}
}
