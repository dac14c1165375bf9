package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// waitHere is the longest wait before another try that keeps the goroutine;
// longer ones park the flow.
const waitHere = time.Second

// handle is the [Context] of a run. ctx is the run's work, or its base after
// Detach.
type handle struct {
	*run
	ctx context.Context
}

func (h handle) ID() string        { return h.flow.ID }
func (h handle) Fence() int64      { return h.hold.Fence }
func (h handle) Detach() Context   { return handle{h.run, h.base} }
func (h handle) Input(v any) error { return json.Unmarshal(h.flow.Input, v) }

// enter finds the journal's entry for a key. The same key twice in one run would
// answer one step with another's result, so it is refused.
func (h handle) enter(kind, key string) (store.FlowStep, error) {
	if key == "" || len(key) > 500 {
		return store.FlowStep{}, fmt.Errorf("bad step key %q", key)
	}
	if h.used[key] {
		return store.FlowStep{}, fmt.Errorf("step key %q is used twice", key)
	}
	h.used[key] = true
	s, ok := h.steps[key]
	if !ok {
		return store.FlowStep{Key: key, Kind: kind}, nil
	}
	if s.Kind != kind {
		return s, fmt.Errorf("step %q was a %s when the flow began and is a %s now: the function changed under a running flow", key, s.Kind, kind)
	}
	return s, nil
}

// alive returns the error of a cancelled flow, and does not return for a lost one.
func (h handle) alive() error {
	if h.base.Err() != nil {
		h.leave()
	}
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	return nil
}

func (h handle) Do(key string, step func(ctx context.Context) (any, error), out any, r Retry) error {
	s, err := h.enter("do", key)
	if err != nil {
		return err
	}
	if s.Done {
		return answer(s, out)
	}
	r = r.withDefaults()
	for {
		if err := h.alive(); err != nil {
			return err
		}
		h.stillOurs()
		s.Attempt++
		result, err := h.try(key, step, r.Timeout)
		if err == nil {
			s.Done, s.Result, s.WakeAt = true, result, time.Time{}
			h.journal(s)
			return answer(s, out)
		}
		// An end of the flow, not of the step: nothing is written.
		if err := h.alive(); err != nil {
			return err
		}
		wait, again := r.again(s.Attempt, err)
		if s.Error, _ = json.Marshal(failureOf(err)); !again {
			s.Done = true
			h.journal(s)
			return answer(s, nil)
		}
		h.engine.log.Info("step is tried again", "flow_id", h.flow.ID, "step", key, "attempt", s.Attempt, "wait", wait, "error", err)
		if wait > waitHere {
			return h.park(s, wait, "")
		}
		h.journal(s)
		h.pause(wait)
	}
}

// answer is what Do returns for a finished step, the first time and on replay.
func answer(s store.FlowStep, out any) error {
	if len(s.Error) > 0 && len(s.Result) == 0 {
		var f failure
		if err := json.Unmarshal(s.Error, &f); err != nil {
			return fmt.Errorf("step %s: read journal: %w", s.Key, err)
		}
		return f.err(s.Key)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(s.Result, out); err != nil {
		return fmt.Errorf("step %s: decode result: %w", s.Key, err)
	}
	return nil
}

// try runs the step once. A panic in it is its error.
func (h handle) try(key string, step func(ctx context.Context) (any, error), timeout time.Duration) (result json.RawMessage, err error) {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	if timeout > 0 {
		late := squad.Errorf(squad.CodeTimeout, "the step took longer than %s", timeout)
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, late)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			h.engine.log.Error("step panicked", "flow_id", h.flow.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("step panicked: %v", p)
		}
	}()
	ctx, span := h.span(ctx, key)
	v, err := step(ctx)
	endSpan(span, err)
	if err != nil {
		var late *squad.Error
		if ctx.Err() != nil && h.ctx.Err() == nil && errors.As(context.Cause(ctx), &late) {
			late.Err = err
			return nil, late
		}
		return nil, err
	}
	if result, err = encode(v); err != nil {
		return nil, Permanent(err)
	}
	return result, nil
}

// stillOurs asks the database when the heartbeat is overdue, as after a freeze:
// a step should not begin that another node may have begun since.
func (h handle) stillOurs() {
	if time.Since(started)-time.Duration(h.engine.renewed.Load()) < h.engine.cfg.Lease*2/3 {
		return
	}
	h.insist("check lease", func(ctx context.Context) error {
		return h.engine.store.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.HeldFlow(ctx, h.hold)
			return err
		})
	})
	nudge(h.engine.beat)
}

// journal writes a step; it returns only when it is written.
func (h handle) journal(s store.FlowStep) {
	h.insist("write step "+s.Key, func(ctx context.Context) error { return h.engine.store.WriteFlowStep(ctx, h.hold, s) })
}
