package runner

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// Bounds of what counts as alive.
const (
	silentAfter = 3 * time.Minute
	loopLength  = 6 // the same call this often in a row is a loop
	tellEvery   = time.Second
)

// watch observes a turn and keeps the execution's liveness: what it is doing, and
// since when. It knows only what it saw.
type watch struct {
	r  *Runner
	id string

	mu       sync.Mutex
	now      squad.Liveness
	told     squad.Liveness
	lastSeen time.Time
	lastCall string
	repeats  int
	running  map[string]squad.ToolCall
}

func newWatch(r *Runner, executionID string) *watch {
	now := time.Now().UTC()
	state := squad.Liveness{State: "working", Since: now}
	return &watch{r: r, id: executionID, now: state, told: state, lastSeen: now, running: map[string]squad.ToolCall{}}
}

// seen is told of each event of the turn. It must be quick: it runs under the
// stream's lock.
func (w *watch) seen(e squad.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastSeen = time.Now().UTC()
	switch e.Type {
	case squad.EventToolCall:
		var call squad.ToolCall
		if json.Unmarshal(e.Payload, &call) == nil {
			w.call(call)
		}
	case squad.EventQuestion:
		w.set("person", "asked a question")
	case squad.EventLog, squad.EventUsage:
		// Says nothing about what comes next: a loop that waits for its provider
		// says so in its log.
		if len(w.running) == 0 && w.now.State == "silent" {
			w.set("working", "")
		}
	default:
		if len(w.running) == 0 && w.now.State != "looping" {
			w.set("working", "")
		}
	}
}

func (w *watch) call(c squad.ToolCall) {
	if c.Status == "completed" || c.Status == "failed" {
		delete(w.running, c.ID)
		if len(w.running) == 0 && w.now.State == "command" {
			w.set("working", "")
		}
		return
	}
	if _, known := w.running[c.ID]; !known {
		same := c.Kind + "\x00" + c.Command + "\x00" + c.Title + "\x00" + string(c.Input)
		if same == w.lastCall {
			w.repeats++
		} else {
			w.lastCall, w.repeats = same, 1
		}
	}
	w.running[c.ID] = c
	what := orElse(c.Command, c.Title)
	switch {
	case w.repeats >= loopLength:
		w.set("looping", what)
	case c.Kind == "execute":
		w.set("command", what)
	default:
		w.set("working", what)
	}
}

// model is told what the turn waits for at a model's provider. A command that runs
// meanwhile says more.
func (w *watch) model(state, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastSeen = time.Now().UTC()
	if len(w.running) > 0 || w.now.State == "looping" || w.now.State == "person" {
		return
	}
	w.set(state, detail)
}

// ModelWait notes that an execution waits for a model, or for its provider's rate
// limit, or no longer does. It is for the gateway, which sees the calls of every
// kind of agent.
func (r *Runner) ModelWait(executionID, state, detail string) {
	if live := r.live(executionID); live != nil && live.watch != nil {
		live.watch.model(state, detail)
	}
}

func (w *watch) state() squad.Liveness {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// set changes the state; the same one keeps its beginning. The caller holds mu.
func (w *watch) set(state, detail string) {
	if len(detail) > 200 {
		detail = detail[:200]
	}
	if w.now.State == state && w.now.Detail == detail {
		return
	}
	w.now = squad.Liveness{State: state, Detail: detail, Since: time.Now().UTC()}
}

// run writes changes of the state to the row, at most one a second, until ctx ends.
func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if state, changed := w.changed(); changed {
			if err := w.r.noteLiveness(ctx, w.id, state); err != nil && ctx.Err() == nil {
				w.r.cfg.Log.WarnContext(ctx, "note liveness", "execution_id", w.id, "error", err)
			}
		}
	}
}

func (w *watch) changed() (squad.Liveness, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.lastSeen) > silentAfter && len(w.running) == 0 && w.now.State != "silent" {
		w.now = squad.Liveness{State: "silent", Detail: "no output", Since: w.lastSeen}
	}
	if w.now == w.told {
		return w.now, false
	}
	w.told = w.now
	return w.now, true
}

func (r *Runner) noteLiveness(ctx context.Context, id string, state squad.Liveness) error {
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, id)
		if err != nil || e.Status != squad.ExecutionRunning {
			return err
		}
		_, err = r.cfg.Life.MoveExecution(ctx, tx, id, squad.ExecutionRunning, func(e *squad.Execution) { e.Liveness = state })
		return err
	})
}
