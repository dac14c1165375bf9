package runner

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// turnSink stores an agent's events and how far its output was read in one
// transaction, so that a reader that comes back neither misses nor repeats.
type turnSink struct {
	store *store.Store
	key   string
}

func turnKey(executionID string, turn int) string {
	return fmt.Sprintf("turn:%s:%d", executionID, turn)
}

// WriteTurn implements [agent.Sink].
func (s turnSink) WriteTurn(ctx context.Context, events []squad.Event, position int64) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Append(ctx, events...); err != nil {
			return err
		}
		return tx.SetSetting(ctx, s.key, strconv.FormatInt(position, 10))
	})
}

// position is where the last reader of the turn left off.
func (s turnSink) position(ctx context.Context) (int64, error) {
	text, err := s.store.Setting(ctx, s.key)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read position of turn: %w", err)
	}
	return n, nil
}

// tellFetch shows how far the server's own fetch of a repository is, as progress of
// the clone: for a local sandbox that is the part of it that takes time.
func (r *Runner) tellFetch(ctx context.Context, s scene) context.Context {
	var mu sync.Mutex
	last := time.Now().Add(showAfter - showEvery)
	return git.WithProgress(ctx, func(p git.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); p.Percent > 0 && now.Sub(last) >= showEvery {
			last = now
			progress := squad.StepProgress{Step: squad.StepClone, Status: "running", Percent: p.Percent, Detail: p.Phase}
			if err := r.cfg.Events.Append(ctx, s.event(squad.EventStep, progress)); err != nil {
				r.cfg.Log.DebugContext(ctx, "progress was not told", "execution_id", s.execution.ID, "error", err)
			}
		}
	})
}

// gitRecorder writes git operations as rows and events. Short ones make one row
// and one event, at their end; long ones show their progress.
type gitRecorder struct {
	ctx         context.Context // of the step that runs git; rows are written until it ends
	runner      *Runner
	sandbox     squad.Sandbox
	executionID string

	mu      sync.Mutex
	written map[string]*squad.GitOperation
	last    time.Time
}

// showAfter is how long an operation runs before its progress is worth an event;
// showEvery how often then.
const (
	showAfter = 300 * time.Millisecond
	showEvery = 500 * time.Millisecond
)

func (g *gitRecorder) observe(p squad.GitProgress) {
	g.mu.Lock()
	defer g.mu.Unlock()
	over := p.Status != "running"
	now := time.Now()
	if !over && (time.Duration(p.DurationMS)*time.Millisecond < showAfter || now.Sub(g.last) < showEvery) {
		return
	}
	g.last = now
	row := p.GitOperation
	row.ExecutionID = g.executionID
	if known := g.written[p.ID]; known != nil {
		row.ID = known.ID
	} else {
		row.ID = ""
	}
	if err := g.runner.cfg.Sandboxes.RecordGit(g.ctx, g.sandbox, &row, p); err != nil {
		if g.ctx.Err() == nil {
			g.runner.cfg.Log.WarnContext(g.ctx, "record git operation", "sandbox_id", g.sandbox.ID, "kind", p.Kind, "error", err)
		}
		return
	}
	if g.written == nil {
		g.written = map[string]*squad.GitOperation{}
	}
	g.written[p.ID] = &row
}
