package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/agent"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// Run puts a task into the queue. It implements the runner's port of package api,
// as do the other verbs here.
func (r *Runner) Run(ctx context.Context, actor squad.Actor, taskID string, opts squad.RunOptions) (squad.Execution, error) {
	return r.begin(ctx, actor, taskID, opts)
}

// Retry starts again from the last checkpoint of a task that failed or was cancelled.
func (r *Runner) Retry(ctx context.Context, actor squad.Actor, taskID string, opts squad.RunOptions) (squad.Execution, error) {
	return r.begin(ctx, actor, taskID, opts)
}

func (r *Runner) begin(ctx context.Context, actor squad.Actor, taskID string, opts squad.RunOptions) (e squad.Execution, err error) {
	err = r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if e, err = r.startAttempt(ctx, tx, taskID, opts.MemberID); err != nil {
			return err
		}
		if opts.Message == "" {
			return nil
		}
		return r.send(ctx, tx, squad.Message{
			SquadID: e.SquadID, TaskID: taskID, ExecutionID: e.ID, From: actor.String(), To: "member:" + e.MemberID, Kind: "note", Body: opts.Message,
		})
	})
	r.ring()
	return e, err
}

// startAttempt checks what an execution needs before it is queued, so that the
// caller hears it at once.
func (r *Runner) startAttempt(ctx context.Context, tx *store.Tx, taskID, memberID string) (squad.Execution, error) {
	t, err := tx.Task(ctx, taskID)
	if err != nil {
		return squad.Execution{}, err
	}
	if t.RepositoryID == "" {
		return squad.Execution{}, squad.Errorf(squad.CodeRule, "task #%d names no repository to work on: set one first", t.Number)
	}
	if memberID == "" {
		memberID = t.AssigneeID
	}
	if memberID == "" {
		if memberID, err = r.idleMember(ctx, tx, t.SquadID); err != nil {
			return squad.Execution{}, err
		}
	}
	return r.cfg.Life.StartExecution(ctx, tx, taskID, memberID)
}

// idleMember picks who does a task that nobody was chosen for: an active member who
// is not the project manager, idle ones first.
func (r *Runner) idleMember(ctx context.Context, tx *store.Tx, squadID string) (string, error) {
	yes := true
	members, err := tx.Members(ctx, store.MemberFilter{SquadID: squadID, Active: &yes})
	if err != nil {
		return "", err
	}
	choice := ""
	for _, m := range members {
		if m.Role == squad.RoleProjectManager {
			continue
		}
		if m.CurrentTaskID == "" {
			return m.ID, nil
		}
		if choice == "" {
			choice = m.ID
		}
	}
	if choice == "" {
		return "", squad.Errorf(squad.CodeRule, "the squad has no active member who could do it: add one first")
	}
	return choice, nil
}

// Cancel ends all executions of a task. Its work stays, on the branch or in a
// checkpoint.
func (r *Runner) Cancel(ctx context.Context, actor squad.Actor, taskID, cause string) (t squad.Task, err error) {
	cause = orElse(cause, "cancelled by "+actor.String())
	err = r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		live, err := tx.Executions(ctx, store.ExecutionFilter{TaskID: taskID, Live: true})
		if err != nil {
			return err
		}
		for _, e := range live {
			if _, err := r.cancel(ctx, tx, e, cause); err != nil {
				return err
			}
		}
		if t, err = tx.Task(ctx, taskID); err != nil {
			return err
		}
		t, err = r.cfg.Life.Move(ctx, tx, taskID, t.Status, squad.FlagCancelled, cause)
		return err
	})
	r.ring()
	return t, err
}

// cancel ends one execution in the caller's transaction.
func (r *Runner) cancel(ctx context.Context, tx *store.Tx, e squad.Execution, cause string) (squad.Execution, error) {
	began := !e.StartedAt.IsZero()
	e, err := r.cfg.Life.MoveExecution(ctx, tx, e.ID, squad.ExecutionCancelled, func(e *squad.Execution) { e.Error = cause })
	if err != nil || !began {
		return e, err
	}
	if err := r.cfg.Flows.Cancel(ctx, tx, e.ID, cause); err != nil && squad.CodeOf(err) != squad.CodeNotFound {
		return e, err
	}
	return e, r.startCleanup(ctx, tx, e, false)
}

// CancelExecution ends one execution; the task is cancelled with its last one.
func (r *Runner) CancelExecution(ctx context.Context, actor squad.Actor, executionID, cause string) (e squad.Execution, err error) {
	cause = orElse(cause, "cancelled by "+actor.String())
	err = r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if e, err = tx.Execution(ctx, executionID); err != nil {
			return err
		}
		if e, err = r.cancel(ctx, tx, e, cause); err != nil {
			return err
		}
		others, err := tx.CountExecutions(ctx, store.ExecutionFilter{TaskID: e.TaskID, Live: true})
		if err != nil || others > 0 {
			return err
		}
		t, err := tx.Task(ctx, e.TaskID)
		if err != nil {
			return err
		}
		_, err = r.cfg.Life.Move(ctx, tx, e.TaskID, t.Status, squad.FlagCancelled, cause)
		return err
	})
	r.ring()
	return e, err
}

// CancelCommand ends what the agent runs now and nothing else, whichever node drives
// it: the agent goes on without it. An agent that is itself a command waits for a word.
func (r *Runner) CancelCommand(ctx context.Context, actor squad.Actor, executionID string) error {
	s, err := r.scene(ctx, executionID)
	if err != nil {
		return err
	}
	driver := r.cfg.Drivers[s.kind()]
	if e := s.execution; e.Status != squad.ExecutionRunning || e.Step != squad.StepAgent || driver == nil {
		return squad.Errorf(squad.CodeConflict, "the execution is %s and its agent runs nothing", e.Status)
	}
	if live := r.live(executionID); live != nil {
		s.execution.Liveness = live.watch.state() // newer than the row's
	}
	sb, err := r.cfg.Sandboxes.Open(ctx, squad.System(), s.execution.SandboxID)
	if err != nil {
		return explain(err)
	}
	by := r.nameOf(ctx, r.cfg.Store.Query, actor.String())
	found, err := driver.Cancel(ctx, agent.Turn{Number: s.execution.Turn, Execution: s.execution, Member: s.member, Box: box{sb}}, by)
	if err != nil {
		return fmt.Errorf("cancel command: %w", err)
	}
	if !found {
		return squad.Errorf(squad.CodeConflict, "the agent runs no command now")
	}
	return r.cfg.Events.Append(ctx, s.event(squad.EventLog, squad.LogChunk{Stream: "system", Text: "the command was cancelled by " + by + "\n"}))
}

// Reassign ends an execution and continues its work with another member.
func (r *Runner) Reassign(ctx context.Context, actor squad.Actor, executionID, memberID string) (e squad.Execution, err error) {
	err = r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		old, err := tx.Execution(ctx, executionID)
		if err != nil {
			return err
		}
		if !old.Status.Final() {
			if _, err := r.cancel(ctx, tx, old, "reassigned by "+actor.String()); err != nil {
				return err
			}
		}
		if _, err := r.cfg.Life.Edit(ctx, tx, old.TaskID, 0, func(t *squad.Task) error {
			t.AssigneeID = memberID
			return nil
		}); err != nil {
			return err
		}
		e, err = r.startAttempt(ctx, tx, old.TaskID, memberID)
		return err
	})
	r.ring()
	return e, err
}

// Nudge hands a message to the agent of a task: into its turn where it can take it,
// else as the next turn. A task that nobody works on is started with it.
func (r *Runner) Nudge(ctx context.Context, actor squad.Actor, taskID, text string) (m squad.Message, err error) {
	err = r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		live, err := tx.Executions(ctx, store.ExecutionFilter{TaskID: taskID, Live: true, Newest: true, Limit: 1})
		if err != nil {
			return err
		}
		var e squad.Execution
		if len(live) > 0 {
			e = live[0]
		} else if e, err = r.startAttempt(ctx, tx, taskID, ""); err != nil {
			return err
		}
		m = squad.Message{SquadID: e.SquadID, TaskID: taskID, ExecutionID: e.ID, From: actor.String(), To: "member:" + e.MemberID, Kind: "nudge", Body: text}
		m.ID = squad.NewID()
		return r.send(ctx, tx, m)
	})
	r.ring()
	return m, err
}

// Merge merges the task's pull request. The dispatcher ends the execution.
func (r *Runner) Merge(ctx context.Context, actor squad.Actor, taskID string, opts squad.MergeOptions) (squad.PullRequest, error) {
	pulls, err := r.cfg.Store.PullRequests(ctx, store.PullRequestFilter{TaskID: taskID, Newest: true, Limit: 1})
	if err != nil {
		return squad.PullRequest{}, err
	}
	if len(pulls) == 0 {
		return squad.PullRequest{}, squad.Errorf(squad.CodeConflict, "the task has no pull request yet")
	}
	return r.cfg.Forges.Merge(ctx, actor, pulls[0].ID, opts)
}

// Diff is what a task changed: with uncommitted work while its sandbox runs, else
// what is stored outside.
func (r *Runner) Diff(ctx context.Context, _ squad.Actor, taskID string) (squad.Diff, error) {
	t, err := r.cfg.Store.Task(ctx, taskID)
	if err != nil {
		return squad.Diff{}, err
	}
	if t.ExecutionID == "" {
		return squad.Diff{}, nil
	}
	s, err := r.scene(ctx, t.ExecutionID)
	if err != nil {
		return squad.Diff{}, err
	}
	e := s.execution
	if e.Status == squad.ExecutionRunning && e.SandboxID != "" && e.BaseSHA != "" {
		c, _, err := r.checkout(ctx, s, place{SandboxID: e.SandboxID, Dir: s.dir()})
		if err == nil {
			var d git.Diff
			if d, err = c.Diff(ctx, git.DiffOptions{From: e.BaseSHA}); err == nil {
				return toDiff(e.BaseSHA, "", d), nil
			}
		}
		r.cfg.Log.InfoContext(ctx, "diff in sandbox", "execution_id", e.ID, "error", err)
	}
	if e.HeadSHA == "" || e.BaseSHA == "" {
		return squad.Diff{Base: e.BaseSHA}, nil
	}
	dir, err := r.cfg.Gateway.Dir(ctx, s.repo)
	if err != nil {
		return squad.Diff{}, err
	}
	d, err := git.DiffTrees(ctx, r.cfg.Git, dir, git.DiffOptions{From: e.BaseSHA, To: e.HeadSHA})
	return toDiff(e.BaseSHA, e.HeadSHA, d), git.Explain(err, "diff")
}

// SendFrom writes a message of a turn's member: to another member by name, to
// people, or to everybody.
func (r *Runner) SendFrom(ctx context.Context, t agent.Turn, to, kind, text string) error {
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		address := "squad"
		if to != "" && !strings.EqualFold(to, "squad") {
			members, err := tx.Members(ctx, store.MemberFilter{SquadID: t.Execution.SquadID})
			if err != nil {
				return err
			}
			i := slices.IndexFunc(members, func(m squad.Member) bool { return strings.EqualFold(m.Name, to) })
			if i < 0 {
				return squad.NotFound("member", to)
			}
			address = "member:" + members[i].ID
		}
		return r.send(ctx, tx, squad.Message{
			SquadID: t.Execution.SquadID, TaskID: t.Task.ID, ExecutionID: t.Execution.ID, From: "member:" + t.Member.ID, To: address, Kind: kind, Body: text,
		})
	})
}
