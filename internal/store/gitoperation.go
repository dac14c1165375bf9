package store

import (
	"context"

	squad "agentsquad"
)

var gitOperations = newTable("git operation", "git_operations", func(g *squad.GitOperation) []field {
	return []field{
		{name: "id", at: &g.ID},
		{name: "sandbox_id", at: ref{&g.SandboxID}},
		{name: "execution_id", at: ref{&g.ExecutionID}},
		{name: "kind", at: &g.Kind},
		{name: "status", at: &g.Status},
		{name: "attempts", at: &g.Attempts},
		{name: "duration_ms", at: &g.DurationMS},
		{name: "exit_code", at: &g.ExitCode},
		{name: "output_tail", at: &g.OutputTail},
		{name: "created_at", at: moment{&g.CreatedAt}, fixed: true},
	}
})

// GitOperationFilter narrows a list of git operations.
type GitOperationFilter struct {
	SquadID     string // of the sandbox it ran in
	SandboxID   string
	ExecutionID string
	Kind        string
	Status      string

	Limit  int
	After  string
	Newest bool
}

// GitOperation reads one git operation.
func (q *Query) GitOperation(ctx context.Context, id string) (squad.GitOperation, error) {
	return gitOperations.get(ctx, q, "id", id)
}

// GitOperations lists git operations.
func (q *Query) GitOperations(ctx context.Context, f GitOperationFilter) ([]squad.GitOperation, error) {
	w := &where{}
	if f.SquadID != "" {
		w.add("sandbox_id IN (SELECT id FROM sandboxes WHERE squad_id = ?)", clean(f.SquadID))
	}
	w.eq("sandbox_id", f.SandboxID)
	w.eq("execution_id", f.ExecutionID)
	w.eq("kind", f.Kind)
	w.eq("status", f.Status)
	w.page("id", f.After, f.Limit, f.Newest)
	return gitOperations.list(ctx, q, w)
}

// CreateGitOperation writes a new git operation, running unless it says otherwise.
func (tx *Tx) CreateGitOperation(ctx context.Context, g *squad.GitOperation) error {
	tx.stamp(&g.ID, &g.CreatedAt)
	if g.Status == "" {
		g.Status = "running"
	}
	return gitOperations.create(ctx, tx, g)
}

// UpdateGitOperation writes a changed git operation.
func (tx *Tx) UpdateGitOperation(ctx context.Context, g *squad.GitOperation) error {
	return gitOperations.change(ctx, tx, g)
}

// DeleteGitOperation removes a git operation.
func (tx *Tx) DeleteGitOperation(ctx context.Context, id string) error {
	return gitOperations.remove(ctx, tx, id)
}
