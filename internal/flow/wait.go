package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentsquad/internal/store"
)

func (h handle) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-h.ctx.Done():
	case <-t.C:
	}
}

// park writes the step and lets the flow go until the wait is over or the signal
// comes; wait 0 has no end. It returns only when the flow was cancelled instead.
func (h handle) park(s store.FlowStep, wait time.Duration, awaits string) error {
	var cancelled error
	h.insist("park", func(ctx context.Context) error {
		return h.engine.store.Tx(ctx, func(tx *store.Tx) error {
			cancelled = nil
			f, err := tx.HeldFlow(ctx, h.hold)
			if err != nil {
				return err
			}
			if cancelled = h.refused(f); cancelled != nil {
				return nil
			}
			if s.WakeAt, err = deadline(ctx, tx, wait); err != nil {
				return err
			}
			return tx.ParkFlow(ctx, h.hold, s, s.WakeAt, awaits)
		})
	})
	if cancelled != nil {
		return cancelled
	}
	nudge(h.engine.wake) // dispatch sets its timer
	h.leave()
	return nil
}

// refused is the error of a flow whose row says that it was cancelled.
func (h handle) refused(f store.Flow) error {
	if f.Cancel == "" || h.ctx == h.base {
		return nil
	}
	c := &Cancelled{f.Cancel}
	h.cancel(c)
	return c
}

// deadline is the wait from now on by the clock that all nodes share.
func deadline(ctx context.Context, tx *store.Tx, wait time.Duration) (time.Time, error) {
	if wait <= 0 {
		return time.Time{}, nil
	}
	now, err := tx.Query.Now(ctx)
	return now.Add(wait), err
}

func (h handle) Sleep(key string, d time.Duration) error {
	s, err := h.enter("sleep", key)
	if err != nil || s.Done {
		return err
	}
	if err := h.alive(); err != nil {
		return err
	}
	if d <= 0 {
		s.Done = true
		h.journal(s)
		return nil
	}
	if s.WakeAt.IsZero() {
		return h.park(s, d, "")
	}
	var left time.Duration
	h.insist("read clock", func(ctx context.Context) error {
		now, err := h.engine.store.Now(ctx)
		left = s.WakeAt.Sub(now)
		return err
	})
	if left > 0 {
		return h.park(s, left, "")
	}
	s.Done = true
	h.journal(s)
	return nil
}

func (h handle) Await(signal string, timeout time.Duration, out any) (bool, error) {
	h.awaits[signal]++
	s, err := h.enter("await", fmt.Sprintf("await:%s#%d", signal, h.awaits[signal]))
	if err != nil {
		return false, err
	}
	if !s.Done {
		if err := h.alive(); err != nil {
			return false, err
		}
		if s, err = h.take(s, signal, timeout); err != nil {
			return false, err
		}
	}
	if len(s.Result) == 0 {
		return false, nil
	}
	if out == nil {
		return true, nil
	}
	if err := json.Unmarshal(s.Result, out); err != nil {
		return true, fmt.Errorf("signal %s: decode: %w", signal, err)
	}
	return true, nil
}

// take finds the signal or the end of the wait, or parks. Look and park are one
// transaction, so that no signal falls between them.
func (h handle) take(s store.FlowStep, signal string, timeout time.Duration) (store.FlowStep, error) {
	var cancelled error
	parked := false
	h.insist("await "+signal, func(ctx context.Context) error {
		return h.engine.store.Tx(ctx, func(tx *store.Tx) error {
			cancelled, parked = nil, false
			f, err := tx.HeldFlow(ctx, h.hold)
			if err != nil {
				return err
			}
			payload, found, err := tx.TakeSignal(ctx, h.hold, signal, s)
			if err != nil || found {
				s.Done, s.Result = found, payload
				return err
			}
			if cancelled = h.refused(f); cancelled != nil {
				return nil
			}
			now, err := tx.Query.Now(ctx)
			if err != nil {
				return err
			}
			if timeout < 0 || !s.WakeAt.IsZero() && !now.Before(s.WakeAt) {
				done := s
				done.Done = true
				return tx.PutHeldStep(ctx, h.hold, done)
			}
			if s.WakeAt.IsZero() && timeout > 0 {
				s.WakeAt = now.Add(timeout)
			}
			parked = true
			return tx.ParkFlow(ctx, h.hold, s, s.WakeAt, signal)
		})
	})
	if parked {
		nudge(h.engine.wake)
		h.leave()
	}
	return s, cancelled
}
