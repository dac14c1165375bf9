// Package task is the life of a task and of an execution: which state may follow
// which, as tables of data, and the one door through which every change goes.
//
// Each function of [Life] works in the caller's transaction and writes the row
// and its event together; the bell rings after that commit. A change that the
// table does not know is CodeConflict and writes nothing. It starts no goroutine.
package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// Life is the door.
type Life struct{ store *store.Store }

// New makes the door to the tasks of a store.
func New(s *store.Store) *Life { return &Life{store: s} }

// Create writes a new task and its event. It may start in the backlog or among
// what is to do; its dependencies must be tasks of the same squad.
func (l *Life) Create(ctx context.Context, tx *store.Tx, t *squad.Task) error {
	if t.Status == "" {
		t.Status = squad.TaskBacklog
	}
	if t.Status != squad.TaskBacklog && t.Status != squad.TaskTodo {
		return squad.Invalid("status", "a new task starts in %s or %s, not in %s", squad.TaskBacklog, squad.TaskTodo, t.Status)
	}
	if t.Flag != squad.FlagNone && t.Flag != squad.FlagBlocked {
		return squad.Invalid("flag", "a new task cannot be %s", t.Flag)
	}
	if strings.TrimSpace(t.Title) == "" {
		return squad.Invalid("title", "a task needs a title")
	}
	if t.ID == "" {
		t.ID = squad.NewID()
	}
	if err := l.checkDependencies(ctx, tx, t); err != nil {
		return err
	}
	if err := l.checkPlace(ctx, tx, t); err != nil {
		return err
	}
	if err := tx.CreateTask(ctx, t); err != nil {
		return err
	}
	if t.GitBranch == "" {
		t.GitBranch = fmt.Sprintf("task-%d", t.Number)
		if err := tx.UpdateTask(ctx, t); err != nil {
			return err
		}
	}
	return tx.Append(ctx, Event(squad.EventTaskCreated, *t))
}

// Edit changes what is said about a task, not where it stands: change may set
// anything but status, flag and cause. If version is not 0 and not the task's,
// it returns CodeStale.
func (l *Life) Edit(ctx context.Context, tx *store.Tx, id string, version int64, change func(*squad.Task) error) (squad.Task, error) {
	t, err := tx.Task(ctx, id)
	if err != nil {
		return t, err
	}
	if version != 0 && version != t.Version {
		return t, squad.Errorf(squad.CodeStale, "task %d was changed meanwhile: version %d is stale, %d is current", t.Number, version, t.Version)
	}
	was := t
	if err := change(&t); err != nil {
		return was, err
	}
	t.Status, t.Flag, t.Cause, t.Version = was.Status, was.Flag, was.Cause, was.Version
	if strings.TrimSpace(t.Title) == "" {
		return was, squad.Invalid("title", "a task needs a title")
	}
	if !slices.Equal(t.DependsOn, was.DependsOn) {
		if err := l.checkDependencies(ctx, tx, &t); err != nil {
			return was, err
		}
	}
	if t.RepositoryID != was.RepositoryID || t.AssigneeID != was.AssigneeID {
		if err := l.checkPlace(ctx, tx, &t); err != nil {
			return was, err
		}
	}
	if err := l.write(ctx, tx, &t); err != nil {
		return was, err
	}
	if t.Title != was.Title {
		if err := l.tellDependents(ctx, tx, t); err != nil {
			return t, err
		}
	}
	if !slices.Equal(t.DependsOn, was.DependsOn) {
		return t, l.tell(ctx, tx, t)
	}
	return t, nil
}

// Move puts a task into a column with a flag. A flag needs a cause; without one
// the cause is cleared. Moving to where the task stands already changes nothing
// and is no event. What waits for the task hears of it; a task that is moved back
// before its execution began leaves the queue.
func (l *Life) Move(ctx context.Context, tx *store.Tx, taskID string, to squad.TaskStatus, flag squad.TaskFlag, cause string) (squad.Task, error) {
	t, err := tx.Task(ctx, taskID)
	if err != nil {
		return t, err
	}
	if err := Check(State{t.Status, t.Flag}, State{to, flag}); err != nil {
		return t, fmt.Errorf("move task %d: %w", t.Number, err)
	}
	if flag == squad.FlagNone {
		cause = ""
	} else if cause == "" {
		return t, squad.Invalid("cause", "a task that is %s needs a cause", flag)
	}
	if t.Status == to && t.Flag == flag && t.Cause == cause {
		return t, nil
	}
	was := t.Status
	t.Status, t.Flag, t.Cause = to, flag, cause
	if err := l.write(ctx, tx, &t); err != nil {
		return t, err
	}
	if was == squad.TaskInProgress && to != was && to != squad.TaskInReview || flag == squad.FlagCancelled {
		if err := l.takeBack(ctx, tx, t); err != nil {
			return t, err
		}
	}
	return t, l.tellDependents(ctx, tx, t)
}

// takeBack takes a task out of the queue that was put elsewhere before it began.
func (l *Life) takeBack(ctx context.Context, tx *store.Tx, t squad.Task) error {
	queued, err := l.unbegun(ctx, tx, t.ID)
	if err != nil {
		return err
	}
	why := t.Cause
	if why == "" {
		why = "the task was moved to " + string(t.Status)
	}
	for _, e := range queued {
		if _, err := l.MoveExecution(ctx, tx, e.ID, squad.ExecutionCancelled, func(e *squad.Execution) { e.Error = why }); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes a task and says so. One that is being worked on must be
// cancelled first.
func (l *Life) Delete(ctx context.Context, tx *store.Tx, id string) error {
	t, err := tx.Task(ctx, id)
	if err != nil {
		return err
	}
	live, err := tx.CountExecutions(ctx, store.ExecutionFilter{TaskID: id, Live: true})
	if err != nil {
		return err
	}
	if live > 0 {
		return squad.Errorf(squad.CodeConflict, "task %d is being worked on; cancel its execution first", t.Number)
	}
	waiting, err := tx.Tasks(ctx, store.TaskFilter{DependsOn: id})
	if err != nil {
		return err
	}
	if err := tx.DeleteTask(ctx, id); err != nil {
		return err
	}
	for _, w := range waiting { // their list of dependencies changed
		now, err := tx.Task(ctx, w.ID)
		if err != nil {
			return err
		}
		if err := tx.Append(ctx, Event(squad.EventTaskUpdated, now)); err != nil {
			return err
		}
		if err := l.tell(ctx, tx, now); err != nil {
			return err
		}
	}
	e := Event(squad.EventTaskDeleted, t)
	e.Payload = event.Payload(map[string]string{"id": id})
	return tx.Append(ctx, e)
}

func (l *Life) write(ctx context.Context, tx *store.Tx, t *squad.Task) error {
	if err := tx.UpdateTask(ctx, t); err != nil {
		return err
	}
	return tx.Append(ctx, Event(squad.EventTaskUpdated, *t))
}

// Check says whether a task may go from one state to the other: nil, or
// CodeConflict with the reason.
func Check(from, to State) error {
	if !slices.Contains(columns, to.Status) {
		return squad.Invalid("status", "there is no column %q", to.Status)
	}
	if !slices.Contains(flags, to.Flag) {
		return squad.Invalid("flag", "there is no flag %q", to.Flag)
	}
	if !slices.Contains(allowed[to.Status], to.Flag) {
		return squad.Errorf(squad.CodeConflict, "a task in %s cannot be %s", to.Status, to.Flag)
	}
	if !slices.Contains(flagMoves[from.Flag], to.Flag) && from != to {
		return squad.Errorf(squad.CodeConflict, "a %s task must be taken up again before it can be %s", from.Flag, to.Flag)
	}
	if from.Status != to.Status && !slices.Contains(moves[from.Status], to.Status) {
		return squad.Errorf(squad.CodeConflict, "a task cannot go from %s to %s", from.Status, to.Status)
	}
	return nil
}

// Event is the event of a task as it stands.
func Event(kind squad.EventType, t squad.Task) squad.Event {
	return squad.Event{
		Type: kind, SquadID: t.SquadID, TaskID: t.ID, ExecutionID: t.ExecutionID,
		MemberID: t.AssigneeID, RepositoryID: t.RepositoryID, Payload: event.Payload(t),
	}
}
