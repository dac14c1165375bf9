package store

import (
	"context"
	"fmt"
	"time"

	squad "agentsquad"
)

var usages = newTable("usage", "usage", func(u *squad.Usage) []field {
	return []field{
		{name: "id", at: &u.ID},
		{name: "execution_id", at: ref{&u.ExecutionID}},
		{name: "task_id", at: ref{&u.TaskID}},
		{name: "member_id", at: ref{&u.MemberID}},
		{name: "squad_id", at: ref{&u.SquadID}},
		{name: "sandbox_id", at: ref{&u.SandboxID}},
		{name: "provider", at: &u.Provider},
		{name: "model", at: &u.Model},
		{name: "tokens_in", at: &u.TokensIn},
		{name: "tokens_out", at: &u.TokensOut},
		{name: "tokens_cached", at: &u.TokensCached},
		{name: "cost_usd", at: &u.CostUSD},
		{name: "at", at: moment{&u.At}},
	}
})

// UsageFilter narrows a list of usage.
type UsageFilter struct {
	ExecutionID string
	TaskID      string
	MemberID    string
	SquadID     string
	SandboxID   string
	Model       string
	Since       time.Time

	Limit  int
	After  string
	Newest bool
}

// SpendFilter says whose spending is asked for; zero fields are everyone's.
type SpendFilter struct {
	TaskID   string
	MemberID string
	SquadID  string
	Since    time.Time
}

// Usage reads one entry of usage.
func (q *Query) Usage(ctx context.Context, id string) (squad.Usage, error) {
	return usages.get(ctx, q, "id", id)
}

// Usages lists usage.
func (q *Query) Usages(ctx context.Context, f UsageFilter) ([]squad.Usage, error) {
	w := &where{}
	w.eq("execution_id", f.ExecutionID)
	w.eq("task_id", f.TaskID)
	w.eq("member_id", f.MemberID)
	w.eq("squad_id", f.SquadID)
	w.eq("sandbox_id", f.SandboxID)
	w.eq("model", f.Model)
	w.since("at", f.Since)
	w.page("id", f.After, f.Limit, f.Newest)
	return usages.list(ctx, q, w)
}

// SpentUSD sums what models cost.
func (q *Query) SpentUSD(ctx context.Context, f SpendFilter) (float64, error) {
	w := f.where()
	var sum float64
	err := q.db.QueryRowContext(ctx, `SELECT COALESCE(SUM(cost_usd), 0.0) FROM usage`+w.String(), w.args...).Scan(&sum)
	if err != nil {
		return 0, fmt.Errorf("sum spending: %w", err)
	}
	return sum, nil
}

// SpentTokens sums the model tokens, in and out.
func (q *Query) SpentTokens(ctx context.Context, f SpendFilter) (int64, error) {
	w := f.where()
	var sum int64
	const query = `SELECT CAST(COALESCE(SUM(tokens_in + tokens_out), 0) AS BIGINT) FROM usage`
	if err := q.db.QueryRowContext(ctx, query+w.String(), w.args...).Scan(&sum); err != nil {
		return 0, fmt.Errorf("sum tokens: %w", err)
	}
	return sum, nil
}

func (f SpendFilter) where() *where {
	w := &where{}
	w.eq("task_id", f.TaskID)
	w.eq("member_id", f.MemberID)
	w.eq("squad_id", f.SquadID)
	w.since("at", f.Since)
	return w
}

// AddUsage writes one model call and adds it to the sums of its execution and
// its task. A second entry with the same ID is CodeConflict, so that a call is
// counted once.
func (tx *Tx) AddUsage(ctx context.Context, u *squad.Usage) error {
	tx.stamp(&u.ID, &u.At)
	if err := usages.create(ctx, tx, u); err != nil {
		return err
	}
	if u.ExecutionID != "" {
		const add = `UPDATE task_executions SET tokens_in = tokens_in + $1, tokens_out = tokens_out + $2,
			tokens_cached = tokens_cached + $3, model_cost_usd = model_cost_usd + $4 WHERE id = $5`
		if _, err := tx.exec(ctx, add, u.TokensIn, u.TokensOut, u.TokensCached, u.CostUSD, u.ExecutionID); err != nil {
			return fmt.Errorf("add usage to execution: %w", translate(err, "usage"))
		}
	}
	return tx.addTaskCost(ctx, u.TaskID, u.CostUSD)
}

// CreateUsage is [Tx.AddUsage] under the name that all nouns share.
func (tx *Tx) CreateUsage(ctx context.Context, u *squad.Usage) error { return tx.AddUsage(ctx, u) }

// AddSandboxCost adds to the cost of a sandbox and, where it works for one, of
// its execution and its task.
func (tx *Tx) AddSandboxCost(ctx context.Context, sandboxID string, usd float64) error {
	s, err := tx.Sandbox(ctx, sandboxID)
	if err != nil {
		return err
	}
	if _, err := tx.exec(ctx, `UPDATE sandboxes SET cost_usd = cost_usd + $1 WHERE id = $2`, usd, s.ID); err != nil {
		return fmt.Errorf("add cost of sandbox: %w", translate(err, "sandbox"))
	}
	if s.ExecutionID != "" {
		const add = `UPDATE task_executions SET sandbox_cost_usd = sandbox_cost_usd + $1 WHERE id = $2`
		if _, err := tx.exec(ctx, add, usd, s.ExecutionID); err != nil {
			return fmt.Errorf("add cost of sandbox to execution: %w", translate(err, "execution"))
		}
	}
	return tx.addTaskCost(ctx, s.TaskID, usd)
}

// addTaskCost adds without a new version: who edits the task is not disturbed.
func (tx *Tx) addTaskCost(ctx context.Context, taskID string, usd float64) error {
	if taskID == "" {
		return nil
	}
	if _, err := tx.exec(ctx, `UPDATE tasks SET cost_usd = cost_usd + $1 WHERE id = $2`, usd, taskID); err != nil {
		return fmt.Errorf("add cost to task: %w", translate(err, "task"))
	}
	return nil
}
