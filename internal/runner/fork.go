package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// A task may be tried several ways at once. While it is, its executions store their
// work as checkpoints and push nothing: the branch belongs to the one that is kept.

func forkKey(taskID string) string { return "fork:" + taskID }

// Fork tries a task several ways: once for each member, or count times over the
// squad's members in turn.
func (r *Runner) Fork(ctx context.Context, _ squad.Actor, taskID string, opts squad.ForkOptions) (made []squad.Execution, err error) {
	err = r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(ctx, taskID)
		if err != nil {
			return err
		}
		if t.RepositoryID == "" {
			return squad.Errorf(squad.CodeRule, "task #%d names no repository to work on: set one first", t.Number)
		}
		members, err := r.contestants(ctx, tx, t, opts)
		if err != nil {
			return err
		}
		if made, err = r.cfg.Life.StartParallel(ctx, tx, taskID, members); err != nil {
			return err
		}
		ids := make([]string, 0, len(made))
		for _, e := range made {
			ids = append(ids, e.ID)
		}
		text, err := json.Marshal(ids)
		if err != nil {
			return fmt.Errorf("encode fork: %w", err)
		}
		return tx.SetSetting(ctx, forkKey(taskID), string(text))
	})
	r.ring()
	return made, err
}

// contestants are the members who try.
func (r *Runner) contestants(ctx context.Context, tx *store.Tx, t squad.Task, opts squad.ForkOptions) ([]string, error) {
	if len(opts.Members) > 0 {
		return opts.Members, nil
	}
	yes := true
	all, err := tx.Members(ctx, store.MemberFilter{SquadID: t.SquadID, Active: &yes})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m squad.Member) bool { return m.Role == squad.RoleProjectManager })
	if len(all) == 0 {
		return nil, squad.Errorf(squad.CodeRule, "the squad has no active member who could do it: add one first")
	}
	count := opts.Count
	if count == 0 {
		count = 3
	}
	out := make([]string, 0, count)
	for i := range count {
		out = append(out, all[i%len(all)].ID)
	}
	return out, nil
}

// forked are the executions that try a task together, none where it is not forked.
func (r *Runner) forked(ctx context.Context, q *store.Query, taskID string) ([]string, error) {
	text, err := q.Setting(ctx, forkKey(taskID))
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	if err := json.Unmarshal([]byte(text), &ids); err != nil {
		return nil, fmt.Errorf("read fork: %w", err)
	}
	return ids, nil
}

// holdBack stores the work of one of several tries and says whether it was one.
func (r *Runner) holdBack(ctx context.Context, s scene, p place, c *git.Checkout, row squad.Sandbox) (bool, error) {
	ids, err := r.forked(ctx, r.cfg.Store.Query, s.task.ID)
	if err != nil || !slices.Contains(ids, s.execution.ID) {
		return false, err
	}
	return true, r.checkpoint(ctx, s, p, c, row, max(s.execution.Turn, 1))
}

// Keep chooses one of several tries: the others are cancelled, this one pushes its
// work and opens the pull request.
func (r *Runner) Keep(ctx context.Context, actor squad.Actor, executionID string) (kept squad.Execution, err error) {
	err = r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if kept, err = tx.Execution(ctx, executionID); err != nil {
			return err
		}
		ids, err := r.forked(ctx, tx.Query, kept.TaskID)
		if err != nil {
			return err
		}
		if !slices.Contains(ids, executionID) {
			return squad.Errorf(squad.CodeConflict, "the execution is not one of several tries")
		}
		if kept.Status != squad.ExecutionWaiting {
			return squad.Errorf(squad.CodeConflict, "the execution is %s: it can be kept when its agent has finished", kept.Status)
		}
		for _, id := range ids {
			if id == executionID {
				continue
			}
			other, err := tx.Execution(ctx, id)
			if err != nil || other.Status.Final() {
				if err != nil {
					return err
				}
				continue
			}
			if _, err := r.cancel(ctx, tx, other, "another try was kept by "+actor.String()); err != nil {
				return err
			}
		}
		if err := tx.DeleteSetting(ctx, forkKey(kept.TaskID)); err != nil {
			return err
		}
		if _, err := r.cfg.Life.Edit(ctx, tx, kept.TaskID, 0, func(t *squad.Task) error {
			t.ExecutionID, t.AssigneeID = kept.ID, kept.MemberID
			return nil
		}); err != nil {
			return err
		}
		return r.cfg.Flows.Signal(ctx, tx, kept.ID, signalWake, wake{Kind: "kept"})
	})
	r.ring()
	return kept, err
}
