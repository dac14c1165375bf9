package e2bserver

import (
	"context"
)

// expire ends or pauses a sandbox whose time has come, unless it was given more
// meanwhile.
func (s *Server) expire(ctx context.Context, id string) {
	b := s.find(id)
	if b == nil {
		return
	}
	ctx, cancel := detach(ctx)
	defer cancel()
	if err := b.lock(ctx); err != nil {
		return
	}
	rec := b.view()
	defer b.unlock()
	switch {
	case rec.Doomed:
	case rec.State != running:
		return
	case rec.EndAt.After(s.cfg.Now()):
		s.deadlines.set(id, rec.EndAt)
		return
	}
	if rec.Doomed || !rec.AutoPause {
		b.change(func(*record) { b.ending = true })
		b.stop(errKilled)
		if err := s.killLocked(ctx, b, "its time was over"); err != nil {
			s.log.ErrorContext(ctx, "sandbox not killed at its end", "sandbox_id", id, "error", err)
		}
		return
	}
	if err := s.pauseLocked(ctx, b, rec.AutoPauseMemory); err != nil {
		// Killing would lose its work: it lives on until a pause succeeds.
		s.log.ErrorContext(ctx, "sandbox not paused at its end", "sandbox_id", id, "error", err)
		s.deadlines.set(id, s.cfg.Now().Add(retryAfter))
	}
}

// lose forgets a sandbox that ended without being asked to.
func (s *Server) lose(b *box, run *live, why string) {
	b.mu.Lock()
	stale := b.run != run || b.ending
	if !stale {
		b.ending, b.run = true, nil
	}
	b.mu.Unlock()
	if stale {
		return
	}
	run.end(errKilled)
	run.drop()
	ctx, cancel := detach(context.Background())
	defer cancel()
	s.lost(ctx, b.id, why)
	s.remove(b)
	if err := b.machine.Kill(ctx); err != nil {
		s.log.ErrorContext(ctx, "lost sandbox not cleaned", "sandbox_id", b.id, "error", err)
	}
	if err := forget(s.boxDir(), b.id); err != nil {
		s.log.ErrorContext(ctx, "lost sandbox not forgotten", "sandbox_id", b.id, "error", err)
	}
}

// maxGone bounds how many lost sandboxes are remembered.
const maxGone = 1000

// lost reports a sandbox that is no more and remembers why.
func (s *Server) lost(ctx context.Context, id, why string) {
	s.log.WarnContext(ctx, "sandbox lost", "sandbox_id", id, "reason", why)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.gone) < maxGone {
		s.gone[id] = why
	}
}

// Lost returns the sandboxes that ended without being asked to since the server
// started, and why.
func (s *Server) Lost() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make(map[string]string, len(s.gone))
	for id, why := range s.gone {
		out[id] = why
	}
	return out
}

// recover matches the sandboxes that were written down with those that exist:
// what is in both goes on, what exists unwritten is removed, what is written and
// gone is reported.
func (s *Server) recover(ctx context.Context) error {
	machines, err := s.host.Recover(ctx)
	if err != nil {
		return err
	}
	records, err := load[record](s.boxDir(), func(name string, err error) {
		s.log.ErrorContext(ctx, "state of a sandbox is unreadable", "file", name, "error", err)
	})
	if err != nil {
		return err
	}
	for _, rec := range records {
		m, alive := machines[rec.ID]
		if !alive || rec.Build {
			if !rec.Build {
				s.lost(ctx, rec.ID, "not found after a restart of the server")
			}
			if err := forget(s.boxDir(), rec.ID); err != nil {
				return err
			}
			continue
		}
		delete(machines, rec.ID)
		s.adopt(rec, m)
	}
	for id, m := range machines {
		s.log.WarnContext(ctx, "unknown sandbox removed", "sandbox_id", id)
		if err := m.Kill(ctx); err != nil {
			s.log.ErrorContext(ctx, "unknown sandbox not removed", "sandbox_id", id, "error", err)
		}
	}
	return nil
}

// adopt takes up one sandbox of an earlier run.
func (s *Server) adopt(rec record, m Machine) {
	// A crash may have come between a change and its record: the machine is right.
	now := s.cfg.Now().UTC()
	switch isPaused := m.Paused(); {
	case isPaused && rec.State == running:
		rec.State, rec.PausedAt, rec.EndAt = paused, now, now
	case !isPaused && rec.State == paused:
		rec.State, rec.AwakeAt, rec.EndAt = running, now, now.Add(max(rec.Timeout, minResume))
	}
	b := newBox(rec, m)
	s.mu.Lock()
	s.boxes[rec.ID] = b
	s.mu.Unlock()
	if rec.State == running {
		s.wake(b)
	}
	if rec.State == running || rec.Doomed {
		s.deadlines.set(rec.ID, rec.EndAt)
	}
	s.note(b, "info", "server restarted; sandbox taken up again")
}
