package flow

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// schedule is a job that one node at a time does every so often.
type schedule struct {
	name  string
	every time.Duration
	fn    func(ctx context.Context) error
}

// Every has fn called each interval, on one of the nodes, never twice at once; a
// turn that was missed because every node was down is made up for once. fn's
// context ends when this node stops or loses the right to run it. An error is
// logged, and the next turn comes as usual. Call it before [Engine.Run].
func (e *Engine) Every(name string, interval time.Duration, fn func(ctx context.Context) error) {
	if name == "" || interval <= 0 || fn == nil {
		panic(fmt.Sprintf("flow: bad schedule %q every %s", name, interval))
	}
	e.schedules = append(e.schedules, schedule{name, interval, fn})
}

// keep runs a schedule until ctx ends.
func (e *Engine) keep(ctx context.Context, s schedule) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		wait, err := e.store.NextSchedule(ctx, s.name)
		if err == nil && wait <= 0 {
			err = e.turn(ctx, s)
		}
		if err != nil && ctx.Err() == nil {
			e.log.ErrorContext(ctx, "scheduled job failed", "job", s.name, "error", err)
		}
		// Looking costs one small read. It is not left to the hour of the next
		// turn: clocks move, and another interval may have been set since.
		t.Reset(min(max(wait, s.every/20, 10*time.Millisecond), 10*time.Second))
	}
}

// turn runs the job if it is due and nobody else runs it.
func (e *Engine) turn(ctx context.Context, s schedule) error {
	var lease squad.Lease
	due := false
	err := e.store.Tx(ctx, func(tx *store.Tx) (err error) {
		var held bool
		lease, held, err = tx.AcquireLease(ctx, "schedule:"+s.name, e.cfg.Owner, e.cfg.Lease)
		if err != nil || !held {
			due = false
			return err
		}
		if due, err = tx.DueSchedule(ctx, s.name, s.every); err != nil || due {
			return err
		}
		return tx.ReleaseLease(ctx, lease)
	})
	if err != nil || !due {
		return err
	}
	job, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				e.log.Error("scheduled job panicked", "job", s.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				done <- fmt.Errorf("panic: %v", p)
			}
		}()
		done <- s.fn(job)
	}()
	renew := time.NewTicker(e.cfg.Lease / 3)
	defer renew.Stop()
	for {
		select {
		case err := <-done:
			return e.release(ctx, lease, err)
		case <-renew.C:
			err := e.store.Tx(ctx, func(tx *store.Tx) error { return tx.RenewLease(ctx, &lease, e.cfg.Lease) })
			if squad.CodeOf(err) == squad.CodeStale {
				cancel(ErrLost)
			}
		}
	}
}

func (e *Engine) release(ctx context.Context, lease squad.Lease, result error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := e.store.Tx(ctx, func(tx *store.Tx) error { return tx.ReleaseLease(ctx, lease) }); err != nil {
		e.log.WarnContext(ctx, "lease of a job was not given back", "lease", lease.Name, "error", err)
	}
	return result
}
