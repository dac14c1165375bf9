package runner

import (
	"context"
	"errors"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// secure stops the agent and stores its work outside, and says how long the sandbox
// is kept for debugging.
func (r *Runner) secure(ctx context.Context, in cleanupInput) (time.Duration, error) {
	e, err := r.cfg.Store.Execution(ctx, in.ExecutionID)
	if err != nil || e.SandboxID == "" {
		return 0, err
	}
	row, err := r.cfg.Store.Sandbox(ctx, e.SandboxID)
	if err != nil || row.Status.Final() || row.ExecutionID != e.ID {
		return 0, err // gone, or another attempt holds it now
	}
	s, err := r.scene(ctx, e.ID)
	if err != nil {
		return 0, err
	}
	keep := s.squad.Config.Cleanup.KeepSandbox
	if in.Merged {
		return keep, nil // everything is in the base branch
	}
	if _, err := r.cfg.Sandboxes.Resume(ctx, squad.System(), row.ID); err != nil {
		return keep, r.unlessLost(ctx, e, err)
	}
	if err := r.stopTurn(ctx, e); err != nil {
		return keep, r.unlessLost(ctx, e, err)
	}
	p := place{SandboxID: row.ID, Dir: s.dir(), Branch: git.TaskBranch(s.task.Number), Base: s.base(), BaseSHA: e.BaseSHA}
	c, row, err := r.checkout(ctx, s, p)
	if err != nil {
		return keep, r.unlessLost(ctx, e, err)
	}
	exists, err := c.Exists(ctx)
	if err != nil || !exists {
		return keep, r.unlessLost(ctx, e, err)
	}
	err = r.keepWork(ctx, s, p, c, row, max(e.Turn, 1))
	return keep, r.unlessLost(ctx, e, err)
}

// securingKey notes that the work of an ended execution is being stored.
func securingKey(executionID string) string { return "securing:" + executionID }

func (r *Runner) secured(ctx context.Context, executionID string) error {
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSetting(ctx, securingKey(executionID)) })
}

// maxSecuring bounds how long an attempt waits for the work of the one before.
const maxSecuring = 2 * time.Minute

// awaitWork waits until what earlier attempts at a task left is stored: the next one
// begins while they are still being cleaned up, and goes on from there.
func (r *Runner) awaitWork(ctx context.Context, s scene) error {
	past, err := r.cfg.Store.Executions(ctx, store.ExecutionFilter{TaskID: s.task.ID, Newest: true, Limit: 20})
	if err != nil {
		return err
	}
	limit := time.Now().Add(maxSecuring)
	for _, e := range past {
		for e.Status.Final() {
			_, err := r.cfg.Store.Setting(ctx, securingKey(e.ID))
			if squad.CodeOf(err) == squad.CodeNotFound || err == nil && time.Now().After(limit) {
				break
			}
			if err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// keepWork stores the working tree of an ended execution as a checkpoint.
func (r *Runner) keepWork(ctx context.Context, s scene, p place, c *git.Checkout, row squad.Sandbox, turn int) error {
	sha, err := c.Checkpoint(ctx, git.CheckpointOptions{
		Ref: checkpointRef(s.execution.ID, turn), Message: "chore: keep work of an ended execution", Author: s.author(),
		Via: r.cfg.Gateway.Via(row, s.repo), Base: p.BaseSHA,
	})
	if err != nil || sha == "" || sha == p.BaseSHA {
		return err
	}
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, s.execution.ID)
		if err != nil || e.HeadSHA == sha {
			return err
		}
		e.HeadSHA, e.Turn = sha, turn
		return tx.UpdateExecution(ctx, &e)
	})
}

// unlessLost forgives an error of a sandbox that turned out to be gone, or that the
// next attempt took over meanwhile: the gateway then refuses the checkpoint of the one
// before, whose work stands in the sandbox.
func (r *Runner) unlessLost(ctx context.Context, e squad.Execution, err error) error {
	if err == nil || errors.Is(err, errSandboxLost) {
		return nil
	}
	if row, readErr := r.cfg.Store.Sandbox(ctx, e.SandboxID); readErr == nil && (row.Status.Final() || row.ExecutionID != e.ID) {
		return nil
	}
	return err
}
