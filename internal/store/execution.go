package store

import (
	"context"

	squad "agentsquad"
)

var executions = newTable("execution", "task_executions", func(e *squad.Execution) []field {
	return []field{
		{name: "id", at: &e.ID},
		{name: "task_id", at: &e.TaskID, fixed: true},
		{name: "squad_id", at: &e.SquadID, fixed: true},
		{name: "member_id", at: ref{&e.MemberID}},
		{name: "sandbox_id", at: ref{&e.SandboxID}},
		{name: "status", at: wordOf(&e.Status)},
		{name: "step", at: wordOf(&e.Step)},
		{name: "percent", at: &e.Percent},
		{name: "liveness", at: object{&e.Liveness}},
		{name: "attempt", at: &e.Attempt},
		{name: "lane", at: &e.Lane, fixed: true},
		{name: "turn", at: &e.Turn},
		{name: "git_branch", at: &e.GitBranch},
		{name: "base_sha", at: &e.BaseSHA},
		{name: "head_sha", at: &e.HeadSHA},
		{name: "pull_request_url", at: &e.PullRequestURL},
		{name: "commit_history", at: object{&e.CommitHistory}},
		{name: "error", at: &e.Error},
		{name: "error_code", at: wordOf(&e.ErrorCode)},
		// AddUsage and AddSandboxCost own the sums.
		{name: "tokens_in", at: &e.TokensIn, fixed: true},
		{name: "tokens_out", at: &e.TokensOut, fixed: true},
		{name: "tokens_cached", at: &e.TokensCached, fixed: true},
		{name: "model_cost_usd", at: &e.ModelCostUSD, fixed: true},
		{name: "sandbox_cost_usd", at: &e.SandboxCostUSD, fixed: true},
		{name: "created_at", at: moment{&e.CreatedAt}, fixed: true},
		{name: "started_at", at: moment{&e.StartedAt}},
		{name: "finished_at", at: moment{&e.FinishedAt}},
	}
})

// ExecutionFilter narrows a list of executions.
type ExecutionFilter struct {
	TaskID    string
	SquadID   string
	MemberID  string
	SandboxID string
	Statuses  []squad.ExecutionStatus
	Live      bool // not finished

	Limit  int
	After  string
	Newest bool
}

func (f ExecutionFilter) where() *where {
	w := &where{}
	w.eq("task_id", f.TaskID)
	w.eq("squad_id", f.SquadID)
	w.eq("member_id", f.MemberID)
	w.eq("sandbox_id", f.SandboxID)
	in(w, "status", f.Statuses)
	if f.Live {
		w.raw("finished_at IS NULL")
	}
	return w
}

// Execution reads one execution.
func (q *Query) Execution(ctx context.Context, id string) (squad.Execution, error) {
	return executions.get(ctx, q, "id", id)
}

// Executions lists executions.
func (q *Query) Executions(ctx context.Context, f ExecutionFilter) ([]squad.Execution, error) {
	w := f.where()
	w.page("id", f.After, f.Limit, f.Newest)
	return executions.list(ctx, q, w)
}

// Queue lists the executions that may begin when there is a place, the most urgent
// first, then the oldest. Those of tasks that wait for others are not among them; one
// that began before and wants another turn waits for nobody.
func (q *Query) Queue(ctx context.Context, limit, skip int) ([]squad.Execution, error) {
	w := &where{limit: limit, skip: skip}
	w.text("status", string(squad.ExecutionQueued))
	w.raw(`(started_at IS NOT NULL OR NOT EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks t ON t.id = d.depends_on_id
		WHERE d.task_id = task_executions.task_id AND (t.status <> 'done' OR t.flag <> '')))`)
	w.order = "(SELECT priority FROM tasks WHERE id = task_executions.task_id) DESC, created_at, id"
	return executions.list(ctx, q, w)
}

// CountExecutions counts what [Query.Executions] would list without limit.
func (q *Query) CountExecutions(ctx context.Context, f ExecutionFilter) (int, error) {
	return q.count(ctx, "task_executions", f.where())
}

// CreateExecution writes a new execution, queued unless it says otherwise. A
// task has at most one that is not finished: a second is CodeConflict.
func (tx *Tx) CreateExecution(ctx context.Context, e *squad.Execution) error {
	tx.stamp(&e.ID, &e.CreatedAt)
	if e.Status == "" {
		e.Status = squad.ExecutionQueued
	}
	if e.Attempt == 0 {
		e.Attempt = 1
	}
	if e.Status.Final() && e.FinishedAt.IsZero() {
		e.FinishedAt = tx.Now
	}
	return executions.create(ctx, tx, e)
}

// UpdateExecution writes a changed execution. Tokens and costs stay: they are
// added by [Tx.AddUsage] and [Tx.AddSandboxCost]. One that ended gets the time
// of its end where none is set.
func (tx *Tx) UpdateExecution(ctx context.Context, e *squad.Execution) error {
	if e.Status.Final() && e.FinishedAt.IsZero() {
		e.FinishedAt = tx.Now
	}
	return executions.change(ctx, tx, e)
}

// DeleteExecution removes an execution.
func (tx *Tx) DeleteExecution(ctx context.Context, id string) error {
	if err := tx.releaseTasks(ctx, "execution_id", id); err != nil {
		return err
	}
	return executions.remove(ctx, tx, id)
}
