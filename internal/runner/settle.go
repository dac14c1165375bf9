package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/flow"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// settle ends an execution after its pull request was merged or closed.
func (r *Runner) settle(ctx context.Context, id string, w wake) error {
	defer r.ring()
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, id)
		if err != nil || e.Status.Final() {
			return err
		}
		to, status, flag := squad.ExecutionSucceeded, squad.TaskDone, squad.FlagNone
		if w.Kind != "merged" {
			to, status, flag = squad.ExecutionCancelled, squad.TaskInReview, squad.FlagCancelled
		}
		if e, err = r.cfg.Life.MoveExecution(ctx, tx, id, to, func(e *squad.Execution) { e.Step, e.Error = squad.StepCleanup, w.Reason }); err != nil {
			return err
		}
		if _, err := r.cfg.Life.Move(ctx, tx, e.TaskID, status, flag, w.Reason); err != nil {
			return err
		}
		return r.startCleanup(ctx, tx, e, w.Kind == "merged")
	})
}

// fail ends an execution that cannot go on: with another attempt, or with the
// task's cause shown and the project manager told.
func (r *Runner) fail(ctx context.Context, id string, cause error) error {
	defer r.ring()
	text := reason(cause)
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, id)
		if err != nil || e.Status.Final() {
			return err
		}
		e, err = r.cfg.Life.MoveExecution(ctx, tx, id, squad.ExecutionFailed, func(e *squad.Execution) {
			e.Error, e.ErrorCode = text, squad.CodeOf(cause)
		})
		if err != nil {
			return err
		}
		if err := r.startCleanup(ctx, tx, e, false); err != nil {
			return err
		}
		s, err := tx.Squad(ctx, e.SquadID)
		if err != nil {
			return err
		}
		attempts := s.Config.MaxAttempts
		if attempts <= 0 {
			attempts = r.cfg.Limits.Attempts
		}
		if again(cause) && e.Attempt < attempts {
			_, err := r.cfg.Life.StartExecution(ctx, tx, e.TaskID, e.MemberID)
			return err
		}
		flag := squad.FlagFailed
		if e.Attempt >= attempts {
			flag = squad.FlagBlocked
		}
		t, err := r.cfg.Life.Move(ctx, tx, e.TaskID, squad.TaskInProgress, flag, text)
		if err != nil {
			return err
		}
		return r.escalate(ctx, tx, e, t, text)
	})
}

// ended sees to it that no execution stays open when its flow could not end it: a
// panic, or a recipe that this version no longer has.
func (r *Runner) ended(ctx context.Context, tx *store.Tx, end flow.End) error {
	e, err := tx.Execution(ctx, end.ID)
	if err != nil || e.Status.Final() {
		return ignoreNotFound(err)
	}
	cause := orElse(end.Error, "the execution's flow ended as "+string(end.Status))
	if e, err = r.cfg.Life.MoveExecution(ctx, tx, e.ID, squad.ExecutionFailed, func(e *squad.Execution) {
		e.Error, e.ErrorCode = cause, squad.CodeInternal
	}); err != nil {
		return err
	}
	if _, err := r.cfg.Life.Move(ctx, tx, e.TaskID, squad.TaskInProgress, squad.FlagFailed, cause); err != nil && squad.CodeOf(err) != squad.CodeConflict {
		return err
	}
	return r.startCleanup(ctx, tx, e, false)
}

// again says whether another attempt from the last checkpoint may go better. What a
// person must mend first (a missing repository, a budget, a rule) is not tried again.
func again(cause error) bool {
	switch squad.CodeOf(cause) {
	case squad.CodeProvider, squad.CodeUnavailable, squad.CodeTimeout, squad.CodeInternal:
		return true
	}
	return false
}

// reason is the text of a failure, without the names of journal steps.
func reason(err error) string {
	var e *squad.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// escalate tells the squad's project manager, or everybody where there is none.
func (r *Runner) escalate(ctx context.Context, tx *store.Tx, e squad.Execution, t squad.Task, cause string) error {
	members, err := tx.Members(ctx, store.MemberFilter{SquadID: e.SquadID})
	if err != nil {
		return err
	}
	to := "squad"
	for _, m := range members {
		if m.Role == squad.RoleProjectManager && m.IsActive && m.ID != e.MemberID {
			to = "member:" + m.ID
			break
		}
	}
	past, err := tx.Executions(ctx, store.ExecutionFilter{TaskID: t.ID})
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Task #%d %q is stuck: %s\n\nTried so far:\n", t.Number, t.Title, cause)
	for _, p := range past {
		fmt.Fprintf(&b, "- attempt %d, %d turn(s), %s: %s\n", p.Attempt, p.Turn, p.Status, orElse(p.Error, cause))
	}
	if e.HeadSHA != "" {
		fmt.Fprintf(&b, "\nThe work so far is kept at commit %.10s; a retry continues from there.\n", e.HeadSHA)
	}
	from := "system"
	if e.MemberID != "" {
		from = "member:" + e.MemberID
	}
	return r.send(ctx, tx, squad.Message{SquadID: e.SquadID, TaskID: t.ID, ExecutionID: e.ID, From: from, To: to, Kind: "escalation", Body: b.String()})
}

// cleanupInput is what the clean-up after an execution begins with.
type cleanupInput struct {
	ExecutionID string `json:"execution_id"`
	Merged      bool   `json:"merged"`
}

// startCleanup begins the clean-up in the transaction that ends the execution, so
// that no end is without one. It is a flow of its own: the execution's may have
// been cancelled.
func (r *Runner) startCleanup(ctx context.Context, tx *store.Tx, e squad.Execution, merged bool) error {
	if !merged && e.SandboxID != "" {
		if err := tx.SetSetting(ctx, securingKey(e.ID), "1"); err != nil {
			return err
		}
	}
	return r.cfg.Flows.Start(ctx, tx, flow.Spec{
		ID: "cleanup-" + e.ID, Name: flowCleanup, Queue: flowCleanup, Input: cleanupInput{ExecutionID: e.ID, Merged: merged},
	})
}

// cleanup is the flow after an execution: the agent is stopped, its work made
// safe, the sandbox kept or destroyed by policy, the branch removed after a merge.
func (r *Runner) cleanup(c flow.Context) error {
	var in cleanupInput
	if err := c.Input(&in); err != nil {
		return err
	}
	// Patient: a provider that is down for an hour must not leave a sandbox behind.
	patient := flow.Retry{Attempts: 40, Backoff: 2 * time.Second, MaxBackoff: 5 * time.Minute, If: func(err error) bool {
		return worthATry(err) || squad.CodeOf(err) == squad.CodeQuota
	}}
	var keep time.Duration
	err := c.Do("secure", func(ctx context.Context) (any, error) {
		keep, err := r.secure(ctx, in)
		if err != nil || in.Merged {
			return keep, err
		}
		return keep, r.secured(ctx, in.ExecutionID)
	}, &keep, patient)
	if err != nil {
		return err
	}
	if keep > 0 {
		if err := c.Do("pause", func(ctx context.Context) (any, error) { return nil, r.pauseKept(ctx, in.ExecutionID) }, nil, patient); err != nil {
			return err
		}
		if err := c.Sleep("keep", keep); err != nil {
			return err
		}
	}
	if err := c.Do("destroy", func(ctx context.Context) (any, error) { return nil, r.destroy(ctx, in.ExecutionID) }, nil, patient); err != nil {
		return err
	}
	return c.Do("branch", func(ctx context.Context) (any, error) { return nil, r.removeBranch(ctx, in) }, nil, patient)
}

func (r *Runner) pauseKept(ctx context.Context, executionID string) error {
	e, err := r.cfg.Store.Execution(ctx, executionID)
	if err != nil {
		return err
	}
	return r.pause(ctx, place{SandboxID: e.SandboxID})
}

// destroy ends the sandbox of an execution, unless another attempt works in it, and
// frees the member.
func (r *Runner) destroy(ctx context.Context, executionID string) error {
	e, err := r.cfg.Store.Execution(ctx, executionID)
	if err != nil {
		return err
	}
	if e.SandboxID != "" {
		row, err := r.cfg.Store.Sandbox(ctx, e.SandboxID)
		if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
			return err
		}
		if err == nil && row.ExecutionID == e.ID && !row.Status.Final() {
			if err := r.cfg.Sandboxes.Destroy(ctx, squad.System(), row.ID); err != nil {
				return err
			}
		}
	}
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		for turn := 1; turn <= e.Turn; turn++ {
			if err := tx.DeleteSetting(ctx, turnKey(e.ID, turn)); err != nil {
				return err
			}
		}
		if err := tx.DeleteSetting(ctx, reviewedKey(e.ID)); err != nil || e.MemberID == "" {
			return err
		}
		m, err := tx.Member(ctx, e.MemberID)
		// Its sandbox went with the row's end. Where there is one, it is another attempt's.
		if err != nil || m.CurrentTaskID != e.TaskID || m.SandboxID != "" {
			return ignoreNotFound(err) // busy with something else by now
		}
		return r.assign(ctx, tx, m.ID, func(m *squad.Member) { m.SandboxID, m.CurrentTaskID, m.GitContext = "", "", squad.GitContext{} })
	})
}

func ignoreNotFound(err error) error {
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil
	}
	return err
}

func (r *Runner) removeBranch(ctx context.Context, in cleanupInput) error {
	if !in.Merged {
		return nil
	}
	s, err := r.scene(ctx, in.ExecutionID)
	if err != nil || s.squad.Config.Cleanup.KeepBranch {
		return err
	}
	err = r.cfg.Forges.DeleteBranch(ctx, s.repo, git.TaskBranch(s.task.Number))
	r.cfg.Gateway.Look()
	return err
}
