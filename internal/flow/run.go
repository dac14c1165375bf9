package flow

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// run is one flow in the hands of this node, from taking up to letting go.
type run struct {
	engine *Engine
	flow   store.Flow
	hold   store.Hold
	steps  map[string]store.FlowStep // the journal
	used   map[string]bool           // keys this run has come to
	awaits map[string]int            // awaits of each signal so far

	base   context.Context // ends when the flow is lost or the node stops
	lose   context.CancelCauseFunc
	work   context.Context // ends also when the flow is cancelled
	cancel context.CancelCauseFunc

	left bool // parked or abandoned: the function was left without returning
}

// begin runs a claimed flow in a goroutine of its own.
func (e *Engine) begin(base context.Context, f store.Flow) {
	r := &run{
		engine: e, flow: f, hold: store.Hold{FlowID: f.ID, Owner: e.cfg.Owner, Fence: f.Fence},
		steps: map[string]store.FlowStep{}, used: map[string]bool{}, awaits: map[string]int{},
	}
	r.base, r.lose = context.WithCancelCause(base)
	r.work, r.cancel = context.WithCancelCause(r.base)
	if f.Cancel != "" {
		r.cancel(&Cancelled{f.Cancel})
	}
	e.mu.Lock()
	fn := e.recipes[store.Recipe{Name: f.Name, Version: f.Version}]
	e.running[f.ID] = r
	e.held[f.Queue]++
	e.mu.Unlock()
	e.runs.Go(func() {
		defer e.forget(r)
		r.play(fn)
	})
}

func (e *Engine) forget(r *run) {
	e.mu.Lock()
	if e.running[r.flow.ID] == r {
		delete(e.running, r.flow.ID)
	}
	if e.held[r.flow.Queue]--; e.held[r.flow.Queue] == 0 {
		delete(e.held, r.flow.Queue)
	}
	e.mu.Unlock()
	r.lose(nil)
	nudge(e.wake) // there is room for another
}

// play calls the workflow function and writes how it ended. It runs to its end
// even when the function's goroutine is ended by leave.
func (r *run) play(fn func(Context) error) {
	var err error
	returned := false
	defer func() {
		if p := recover(); p != nil {
			r.engine.log.Error("workflow function panicked", "flow_id", r.flow.ID, "name", r.flow.Name,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err, returned = fmt.Errorf("workflow function panicked: %v", p), true
		}
		if r.left {
			return
		}
		if !returned {
			err = errors.New("workflow function ended its goroutine")
		}
		r.settle(err)
	}()
	if r.flow.Attempt > 1 {
		if err = r.load(); err != nil {
			returned = true
			return
		}
	}
	err = fn(handle{r, r.work})
	returned = true
}

// load reads the journal. Where it cannot be read the flow is let go.
func (r *run) load() error {
	var steps []store.FlowStep
	r.insist("read journal", func(ctx context.Context) error {
		var err error
		steps, err = r.engine.store.FlowSteps(ctx, r.flow.ID)
		return err
	})
	for _, s := range steps {
		r.steps[s.Key] = s
	}
	return nil
}

// settle writes the flow's last state.
func (r *run) settle(err error) {
	if r.base.Err() != nil {
		return // no longer ours to end
	}
	end := End{ID: r.flow.ID, Name: r.flow.Name, Status: store.FlowSucceeded}
	var c *Cancelled
	switch {
	case err == nil:
	case errors.Is(err, ErrCancelled) && errors.As(context.Cause(r.work), &c):
		end.Status, end.Error = store.FlowCancelled, c.Cause
	default:
		end.Status, end.Error = store.FlowFailed, reasonOf(err)
		r.engine.log.Warn("flow failed", "flow_id", r.flow.ID, "name", r.flow.Name, "error", err)
	}
	r.left = true // a goroutine that ends inside insist is not to settle again
	r.insist("end flow", func(ctx context.Context) error {
		return r.engine.store.Tx(ctx, func(tx *store.Tx) error {
			if err := tx.EndFlow(ctx, r.hold, end.Status, end.Error); err != nil {
				return err
			}
			return r.engine.ended(ctx, tx, end)
		})
	})
}

// reasonOf is the error as people may see it: with the steps' names, without
// the causes that a *squad.Error hides.
func reasonOf(err error) string {
	const most = 4096
	s := err.Error()
	if len(s) > most {
		s = s[:most]
	}
	return s
}

// insist does something with the database until it succeeds, the flow is lost,
// or the node stops. In the last two cases the goroutine ends here.
func (r *run) insist(what string, f func(ctx context.Context) error) {
	pause := 10 * time.Millisecond
	for {
		if r.base.Err() != nil {
			r.leave()
		}
		err := f(r.base)
		if err == nil {
			return
		}
		if squad.CodeOf(err) == squad.CodeStale {
			r.engine.log.Warn("flow was lost", "flow_id", r.flow.ID, "doing", what)
			r.lose(ErrLost)
			r.leave()
		}
		if r.base.Err() == nil {
			r.engine.log.Warn("database refuses a flow's write, trying again", "flow_id", r.flow.ID, "doing", what, "error", err)
		}
		t := time.NewTimer(pause)
		select {
		case <-r.base.Done():
		case <-t.C:
		}
		t.Stop()
		pause = min(2*pause, 5*time.Second)
	}
}

// leave ends the goroutine of the workflow function without a return.
func (r *run) leave() {
	r.left = true
	runtime.Goexit()
}
