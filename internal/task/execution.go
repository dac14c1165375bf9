package task

import (
	"context"
	"slices"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// StartExecution makes a queued execution of the task for a member and moves the
// task to in_progress without flag. The member may be empty; then it is the
// task's assignee, if there is one. The task must not have an execution that is not
// finished. One that waits for other tasks says so, and begins when they are done.
func (l *Life) StartExecution(ctx context.Context, tx *store.Tx, taskID, memberID string) (squad.Execution, error) {
	var e squad.Execution
	t, err := tx.Task(ctx, taskID)
	if err != nil {
		return e, err
	}
	s, err := tx.Squad(ctx, t.SquadID)
	if err != nil {
		return e, err
	}
	if s.Status != squad.SquadActive {
		return e, squad.Errorf(squad.CodeConflict, "squad %s is %s and starts nothing new", s.Name, s.Status)
	}
	if memberID == "" {
		memberID = t.AssigneeID
	}
	if memberID != "" {
		m, err := tx.Member(ctx, memberID)
		if err != nil {
			return e, err
		}
		if m.SquadID != t.SquadID || !m.IsActive {
			return e, squad.Errorf(squad.CodeConflict, "member %s cannot take task %d: not active in its squad", m.Name, t.Number)
		}
	}
	past, err := tx.Executions(ctx, store.ExecutionFilter{TaskID: taskID, Newest: true, Limit: 1})
	if err != nil {
		return e, err
	}
	e = squad.Execution{
		TaskID: t.ID, SquadID: t.SquadID, MemberID: memberID, Attempt: 1,
		GitBranch: t.GitBranch, PullRequestURL: t.PullRequestURL,
	}
	if len(past) > 0 {
		e.Attempt = past[0].Attempt + 1
	}
	live, err := tx.CountExecutions(ctx, store.ExecutionFilter{TaskID: taskID, Live: true})
	if err != nil {
		return e, err
	}
	if live > 0 {
		return e, squad.Errorf(squad.CodeConflict, "task %d is being worked on already", t.Number)
	}
	return e, l.begin(ctx, tx, t, &e)
}

// StartParallel makes one queued execution for each member: several tries at one
// task at once. The task must not be worked on yet.
func (l *Life) StartParallel(ctx context.Context, tx *store.Tx, taskID string, members []string) ([]squad.Execution, error) {
	if len(members) < 2 {
		return nil, squad.Invalid("members", "trying several ways needs at least two members")
	}
	first, err := l.StartExecution(ctx, tx, taskID, members[0])
	if err != nil {
		return nil, err
	}
	out := []squad.Execution{first}
	for i, id := range members[1:] {
		m, err := tx.Member(ctx, id)
		if err != nil {
			return nil, err
		}
		if m.SquadID != first.SquadID || !m.IsActive {
			return nil, squad.Errorf(squad.CodeConflict, "member %s cannot take part: not active in the task's squad", m.Name)
		}
		e := squad.Execution{TaskID: taskID, SquadID: first.SquadID, MemberID: id, Attempt: first.Attempt, Lane: i + 1, GitBranch: first.GitBranch, Liveness: first.Liveness}
		if err := tx.CreateExecution(ctx, &e); err != nil {
			return nil, err
		}
		if err := tx.Append(ctx, ExecutionEvent(squad.EventExecutionCreated, e)); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func (l *Life) begin(ctx context.Context, tx *store.Tx, t squad.Task, e *squad.Execution) error {
	if err := Check(State{t.Status, t.Flag}, State{squad.TaskInProgress, squad.FlagNone}); err != nil {
		return err
	}
	text, err := l.waits(ctx, tx, t)
	if err != nil {
		return err
	}
	e.Liveness = held(tx, text)
	if err := tx.CreateExecution(ctx, e); err != nil {
		return err
	}
	t.Status, t.Flag, t.Cause = squad.TaskInProgress, squad.FlagNone, ""
	t.ExecutionID = e.ID
	if t.AssigneeID == "" {
		t.AssigneeID = e.MemberID
	}
	if err := l.write(ctx, tx, &t); err != nil {
		return err
	}
	if err := l.tellDependents(ctx, tx, t); err != nil { // it may have been cancelled or failed before
		return err
	}
	return tx.Append(ctx, ExecutionEvent(squad.EventExecutionCreated, *e))
}

// MoveExecution puts an execution into a state and applies change, which may be
// nil. The same state again is allowed unless it is final, so that change can
// note progress. Start and end times are set here.
func (l *Life) MoveExecution(ctx context.Context, tx *store.Tx, id string, to squad.ExecutionStatus, change func(*squad.Execution)) (squad.Execution, error) {
	e, err := tx.Execution(ctx, id)
	if err != nil {
		return e, err
	}
	if err := CheckExecution(e.Status, to); err != nil {
		return e, err
	}
	was := e
	if change != nil {
		change(&e)
	}
	e.ID, e.TaskID, e.SquadID, e.CreatedAt = was.ID, was.TaskID, was.SquadID, was.CreatedAt
	e.Status = to
	if to == squad.ExecutionRunning && e.StartedAt.IsZero() {
		e.StartedAt = tx.Now
	}
	if to.Final() {
		e.FinishedAt = tx.Now
		e.Liveness = squad.Liveness{}
	} else {
		e.FinishedAt = was.FinishedAt
	}
	if err := tx.UpdateExecution(ctx, &e); err != nil {
		return was, err
	}
	return e, tx.Append(ctx, ExecutionEvent(squad.EventExecutionUpdated, e))
}

// CheckExecution says whether an execution may go from one state to the other:
// nil, or CodeConflict.
func CheckExecution(from, to squad.ExecutionStatus) error {
	next, known := executionMoves[from]
	if _, ok := executionMoves[to]; !ok || !known {
		return squad.Invalid("status", "there is no execution state %q", to)
	}
	if from == to && !from.Final() || slices.Contains(next, to) {
		return nil
	}
	if from.Final() {
		return squad.Errorf(squad.CodeConflict, "the execution has ended (%s) and cannot be %s", from, to)
	}
	return squad.Errorf(squad.CodeConflict, "an execution cannot go from %s to %s", from, to)
}

// ExecutionEvent is the event of an execution as it stands.
func ExecutionEvent(kind squad.EventType, e squad.Execution) squad.Event {
	return squad.Event{
		Type: kind, SquadID: e.SquadID, TaskID: e.TaskID, ExecutionID: e.ID,
		MemberID: e.MemberID, SandboxID: e.SandboxID, Payload: event.Payload(e),
	}
}
