package store

import (
	"context"
	"fmt"
	"strconv"

	squad "agentsquad"
)

var tasks = newTable("task", "tasks", func(t *squad.Task) []field {
	return []field{
		{name: "id", at: &t.ID},
		{name: "number", at: &t.Number, fixed: true},
		{name: "squad_id", at: &t.SquadID, fixed: true},
		{name: "repository_id", at: ref{&t.RepositoryID}},
		{name: "title", at: &t.Title},
		{name: "description", at: &t.Description},
		{name: "status", at: wordOf(&t.Status)},
		{name: "flag", at: wordOf(&t.Flag)},
		{name: "cause", at: &t.Cause},
		{name: "priority", at: &t.Priority},
		{name: "labels", at: object{&t.Labels}},
		{name: "assignee_id", at: ref{&t.AssigneeID}},
		{name: "depends_on", at: object{&t.DependsOn}},
		{name: "base_branch", at: &t.BaseBranch},
		{name: "provider", at: &t.Provider},
		{name: "template", at: &t.Template},
		{name: "git_branch", at: &t.GitBranch},
		{name: "pull_request_url", at: &t.PullRequestURL},
		{name: "budget", at: object{&t.Budget}},
		{name: "execution_id", at: ref{&t.ExecutionID}},
		{name: "cost_usd", at: &t.CostUSD, fixed: true}, // AddUsage owns the sum
		{name: "position", at: &t.Position},
		{name: "created_by", at: &t.CreatedBy, fixed: true},
		{name: "version", at: &t.Version},
		{name: "created_at", at: moment{&t.CreatedAt}, fixed: true},
		{name: "updated_at", at: moment{&t.UpdatedAt}},
	}
})

// TaskFilter narrows a list of tasks.
type TaskFilter struct {
	IDs          []string
	SquadID      string
	RepositoryID string
	AssigneeID   string
	Unassigned   bool
	GitBranch    string
	Statuses     []squad.TaskStatus
	Flags        []squad.TaskFlag // FlagNone asks for tasks without flag
	Label        string
	// DependsOn asks for tasks that wait for this one.
	DependsOn string
	// Text asks for tasks whose title or description holds it, in any case.
	Text string

	Limit  int
	After  string
	Newest bool
}

func (f TaskFilter) where() *where {
	w := &where{}
	in(w, "id", f.IDs)
	w.eq("squad_id", f.SquadID)
	w.eq("repository_id", f.RepositoryID)
	w.eq("assignee_id", f.AssigneeID)
	if f.Unassigned {
		w.raw("assignee_id IS NULL")
	}
	w.eq("git_branch", f.GitBranch)
	in(w, "status", f.Statuses)
	in(w, "flag", f.Flags)
	if f.Label != "" {
		label, _ := plainJSON(clean(f.Label)) // a string always has a form
		// Not LIKE: SQLite's does not tell small letters from capitals.
		w.add(`replace(CAST(labels AS TEXT), CAST(? AS TEXT), '') <> CAST(labels AS TEXT)`, label)
	}
	if f.DependsOn != "" {
		w.add("id IN (SELECT task_id FROM task_dependencies WHERE depends_on_id = ?)", clean(f.DependsOn))
	}
	if f.Text != "" {
		w.add(`lower(title || ' ' || description) LIKE '%' || lower(?) || '%' ESCAPE '\'`, likeText(f.Text))
	}
	return w
}

// Task reads one task.
func (q *Query) Task(ctx context.Context, id string) (squad.Task, error) {
	return tasks.get(ctx, q, "id", id)
}

// TaskByNumber reads a task by the number people use; squadID may be empty.
func (q *Query) TaskByNumber(ctx context.Context, squadID string, number int64) (squad.Task, error) {
	w := &where{}
	w.add("number = ?", number)
	w.eq("squad_id", squadID)
	return tasks.one(ctx, q, w, strconv.FormatInt(number, 10))
}

// Tasks lists tasks by the time of their making.
func (q *Query) Tasks(ctx context.Context, f TaskFilter) ([]squad.Task, error) {
	w := f.where()
	w.page("id", f.After, f.Limit, f.Newest)
	return tasks.list(ctx, q, w)
}

// CreateTask writes a new task, in the backlog unless it says otherwise, and
// gives it the next number and the last place of its column.
func (tx *Tx) CreateTask(ctx context.Context, t *squad.Task) error {
	tx.stamp(&t.ID, &t.CreatedAt, &t.UpdatedAt)
	t.Version = 1
	if t.Status == "" {
		t.Status = squad.TaskBacklog
	}
	const next = `UPDATE counters SET value = value + 1 WHERE name = 'tasks' RETURNING value`
	if err := tx.db.QueryRowContext(ctx, next).Scan(&t.Number); err != nil {
		return fmt.Errorf("number task: %w", err)
	}
	if t.Position == 0 {
		t.Position = float64(t.Number)
	}
	if err := tasks.create(ctx, tx, t); err != nil {
		return err
	}
	return tx.writeDependencies(ctx, t)
}

// UpdateTask writes a changed task if nobody changed it since t.Version, else it
// returns CodeStale. Number, squad, creator and cost stay.
func (tx *Tx) UpdateTask(ctx context.Context, t *squad.Task) error {
	had := t.Version
	t.Version, t.UpdatedAt = had+1, tx.Now
	fields := tasks.fields(t)
	var args []any
	for _, f := range fields[1:] {
		if !f.fixed {
			args = append(args, valueOf(f.at))
		}
	}
	query := fmt.Sprintf("%s AND version = $%d", tasks.update, len(args)+2)
	n, err := tx.exec(ctx, query, append(args, clean(t.ID), had)...)
	if err != nil {
		t.Version = had
		return fmt.Errorf("update task: %w", translate(err, "task"))
	}
	if n == 0 {
		t.Version = had
		return tx.whyNotUpdated(ctx, t)
	}
	return tx.writeDependencies(ctx, t)
}

func (tx *Tx) whyNotUpdated(ctx context.Context, t *squad.Task) error {
	found, err := tx.Task(ctx, t.ID)
	if err != nil {
		return err
	}
	return squad.Errorf(squad.CodeStale, "task %d was changed by somebody else meanwhile: version %d is stale, %d is current",
		found.Number, t.Version, found.Version)
}

// writeDependencies keeps the references behind t.DependsOn.
func (tx *Tx) writeDependencies(ctx context.Context, t *squad.Task) error {
	if t.Version > 1 {
		if _, err := tx.exec(ctx, `DELETE FROM task_dependencies WHERE task_id = $1`, t.ID); err != nil {
			return fmt.Errorf("update dependencies: %w", err)
		}
	}
	for _, d := range t.DependsOn {
		const add = `INSERT INTO task_dependencies (task_id, depends_on_id) VALUES ($1, $2)`
		if _, err := tx.exec(ctx, add, t.ID, clean(d)); err != nil {
			e := squad.Invalid("depends_on", "the task cannot depend on %q: it must be another task that exists, named once", d)
			if k, _ := faultOf(err); k == faultNone || k == faultRace {
				return fmt.Errorf("update dependencies: %w", err)
			}
			e.Err = err
			return e
		}
	}
	return nil
}

// DeleteTask removes a task with its executions; tasks that waited for it no
// longer do.
func (tx *Tx) DeleteTask(ctx context.Context, id string) error {
	waiting, err := tx.Tasks(ctx, TaskFilter{DependsOn: id})
	if err != nil {
		return err
	}
	for _, t := range waiting {
		var rest []string
		for _, d := range t.DependsOn {
			if d != id {
				rest = append(rest, d)
			}
		}
		t.DependsOn = rest
		if err := tx.UpdateTask(ctx, &t); err != nil {
			return err
		}
	}
	return tasks.remove(ctx, tx, id)
}
