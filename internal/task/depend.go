package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// maxDependencies bounds how many tasks one may wait for.
const maxDependencies = 100

// checkDependencies wants each to be another task of the same squad, and none
// to wait for this one in turn.
func (l *Life) checkDependencies(ctx context.Context, tx *store.Tx, t *squad.Task) error {
	if len(t.DependsOn) == 0 {
		return nil
	}
	if len(t.DependsOn) > maxDependencies {
		return squad.Invalid("depends_on", "a task may depend on at most %d others", maxDependencies)
	}
	// Two edits at once could close a circle that neither sees alone.
	if err := tx.Lock(ctx, "dependencies:"+t.SquadID); err != nil {
		return err
	}
	slices.Sort(t.DependsOn)
	t.DependsOn = slices.Compact(t.DependsOn)
	for _, id := range t.DependsOn {
		d, err := tx.Task(ctx, id)
		if squad.CodeOf(err) == squad.CodeNotFound || err == nil && d.SquadID != t.SquadID {
			return squad.Invalid("depends_on", "the task depends on %q, which is no task of its squad", id)
		}
		if err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	next := slices.Clone(t.DependsOn)
	for len(next) > 0 {
		id := next[0]
		next = next[1:]
		if id == t.ID {
			return squad.Invalid("depends_on", "the task would wait for itself, directly or through others")
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		d, err := tx.Task(ctx, id)
		if err != nil {
			return err
		}
		next = append(next, d.DependsOn...)
	}
	return nil
}

// checkPlace wants repository and assignee to be of the task's squad.
func (l *Life) checkPlace(ctx context.Context, tx *store.Tx, t *squad.Task) error {
	if t.RepositoryID != "" {
		r, err := tx.Repository(ctx, t.RepositoryID)
		if squad.CodeOf(err) == squad.CodeNotFound || err == nil && r.SquadID != t.SquadID {
			return squad.Invalid("repository_id", "the squad has no repository %q", t.RepositoryID)
		}
		if err != nil {
			return err
		}
	}
	if t.AssigneeID != "" {
		m, err := tx.Member(ctx, t.AssigneeID)
		if squad.CodeOf(err) == squad.CodeNotFound || err == nil && m.SquadID != t.SquadID {
			return squad.Invalid("assignee_id", "the squad has no member %q", t.AssigneeID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ready wants every dependency to be done, and names those that are not.
func (l *Life) ready(ctx context.Context, tx *store.Tx, t squad.Task) error {
	var open []string
	for _, id := range t.DependsOn {
		d, err := tx.Task(ctx, id)
		if err != nil {
			return err
		}
		if d.Status != squad.TaskDone || d.Flag != squad.FlagNone {
			open = append(open, fmt.Sprintf("#%d %s", d.Number, d.Title))
		}
	}
	if len(open) > 0 {
		return squad.Errorf(squad.CodeConflict, "task %d cannot start before these are done: %s", t.Number, strings.Join(open, ", "))
	}
	return nil
}

// Ready lists the tasks of a squad that could start now: to do, without flag,
// every dependency done; the most urgent first, then by place.
func (l *Life) Ready(ctx context.Context, q *store.Query, squadID string) ([]squad.Task, error) {
	todo, err := q.Tasks(ctx, store.TaskFilter{
		SquadID: squadID, Statuses: []squad.TaskStatus{squad.TaskTodo}, Flags: []squad.TaskFlag{squad.FlagNone},
	})
	if err != nil {
		return nil, err
	}
	done := map[string]bool{}
	var out []squad.Task
	for _, t := range todo {
		free := true
		for _, id := range t.DependsOn {
			ok, known := done[id]
			if !known {
				d, err := q.Task(ctx, id)
				if err != nil {
					return nil, err
				}
				ok = d.Status == squad.TaskDone && d.Flag == squad.FlagNone
				done[id] = ok
			}
			free = free && ok
		}
		if free {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b squad.Task) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		switch {
		case a.Position < b.Position:
			return -1
		case a.Position > b.Position:
			return 1
		}
		return 0
	})
	return out, nil
}
