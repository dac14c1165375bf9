package task

import (
	"cmp"
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
	seen := map[string]bool{}
	for next := slices.Clone(t.DependsOn); len(next) > 0; {
		if slices.Contains(next, t.ID) {
			return squad.Invalid("depends_on", "the task would wait for itself, directly or through others")
		}
		// A list takes no locks: who moves one of them may wait for ours.
		found, err := tx.Tasks(ctx, store.TaskFilter{IDs: next, SquadID: t.SquadID})
		if err != nil {
			return err
		}
		if len(seen) == 0 && len(found) < len(next) {
			return squad.Invalid("depends_on", "the task depends on %q, which is no task of its squad", stranger(next, found))
		}
		for _, id := range next {
			seen[id] = true
		}
		next = nil
		for _, d := range found {
			for _, id := range d.DependsOn {
				if !seen[id] && !slices.Contains(next, id) {
					next = append(next, id)
				}
			}
		}
	}
	return nil
}

// stranger is the first that was not found.
func stranger(wanted []string, found []squad.Task) string {
	for _, id := range wanted {
		if !slices.ContainsFunc(found, func(t squad.Task) bool { return t.ID == id }) {
			return id
		}
	}
	return ""
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

// Bounds of what is said of the tasks that one waits for.
const (
	maxNamed = 5
	maxTitle = 80
)

// waits says which tasks a task waits for before it may begin, and what is wrong with
// them; "" where all are done. The word is right until the transaction ends.
func (l *Life) waits(ctx context.Context, tx *store.Tx, t squad.Task) (string, error) {
	if len(t.DependsOn) == 0 {
		return "", nil
	}
	if err := tx.Lock(ctx, "dependencies:"+t.SquadID); err != nil {
		return "", err
	}
	all, err := tx.Tasks(ctx, store.TaskFilter{IDs: t.DependsOn})
	if err != nil {
		return "", err
	}
	open := slices.DeleteFunc(all, func(d squad.Task) bool { return d.Status == squad.TaskDone && d.Flag == squad.FlagNone })
	slices.SortFunc(open, func(a, b squad.Task) int { return cmp.Compare(a.Number, b.Number) })
	var names []string
	for _, d := range open[:min(len(open), maxNamed)] {
		names = append(names, named(d))
	}
	if more := len(open) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) == 0 {
		return "", nil
	}
	return "waits for " + strings.Join(names, ", "), nil
}

// named is a task in a list, with the flag that keeps it from being done.
func named(t squad.Task) string {
	title := []rune(t.Title)
	if len(title) > maxTitle {
		title = append(title[:maxTitle], '…')
	}
	if t.Flag == squad.FlagNone {
		return fmt.Sprintf("#%d %s", t.Number, string(title))
	}
	return fmt.Sprintf("#%d %s (%s)", t.Number, string(title), t.Flag)
}

// tell has the executions of a task that have not begun say what it waits for now.
func (l *Life) tell(ctx context.Context, tx *store.Tx, t squad.Task) error {
	queued, err := l.unbegun(ctx, tx, t.ID)
	if err != nil || len(queued) == 0 {
		return err
	}
	text, err := l.waits(ctx, tx, t)
	if err != nil {
		return err
	}
	for _, e := range queued {
		if e.Liveness.Detail == text {
			continue
		}
		if _, err := l.MoveExecution(ctx, tx, e.ID, squad.ExecutionQueued, func(e *squad.Execution) { e.Liveness = held(tx, text) }); err != nil {
			return err
		}
	}
	return nil
}

// tellDependents has those say it that wait for a task which changed.
func (l *Life) tellDependents(ctx context.Context, tx *store.Tx, t squad.Task) error {
	waiting, err := tx.Tasks(ctx, store.TaskFilter{DependsOn: t.ID})
	if err != nil || len(waiting) == 0 {
		return err
	}
	// Two that are done at once must not each find the other open.
	if err := tx.Lock(ctx, "dependencies:"+t.SquadID); err != nil {
		return err
	}
	for _, w := range waiting {
		if err := l.tell(ctx, tx, w); err != nil {
			return err
		}
	}
	return nil
}

// unbegun are the queued executions of a task that never had a place.
func (l *Life) unbegun(ctx context.Context, tx *store.Tx, taskID string) ([]squad.Execution, error) {
	list, err := tx.Executions(ctx, store.ExecutionFilter{TaskID: taskID, Statuses: []squad.ExecutionStatus{squad.ExecutionQueued}})
	return slices.DeleteFunc(list, func(e squad.Execution) bool { return !e.StartedAt.IsZero() }), err
}

// held is the liveness of an execution whose task waits for others, or for a place only.
func held(tx *store.Tx, text string) squad.Liveness {
	if text == "" {
		return squad.Liveness{}
	}
	return squad.Liveness{State: "dependency", Detail: text, Since: tx.Now}
}
