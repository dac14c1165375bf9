package store

import (
	"context"
	"time"

	squad "agentsquad"
)

var sandboxes = newTable("sandbox", "sandboxes", func(s *squad.Sandbox) []field {
	return []field{
		{name: "id", at: &s.ID},
		{name: "provider", at: &s.Provider, fixed: true},
		{name: "e2b_id", at: ref{&s.E2BID}},
		{name: "squad_id", at: ref{&s.SquadID}},
		{name: "agent_id", at: ref{&s.AgentID}},
		{name: "task_id", at: ref{&s.TaskID}},
		{name: "execution_id", at: ref{&s.ExecutionID}},
		{name: "repo_url", at: &s.RepoURL},
		{name: "template", at: &s.Template},
		{name: "status", at: wordOf(&s.Status)},
		{name: "error", at: &s.Error},
		{name: "pooled", at: &s.Pooled},
		{name: "node", at: &s.Node},
		{name: "cpu", at: &s.CPU},
		{name: "memory_mb", at: &s.MemoryMB},
		{name: "epoch", at: &s.Epoch},
		{name: "command_count", at: &s.CommandCount},
		{name: "create_ms", at: &s.CreateMS},
		{name: "cost_usd", at: &s.CostUSD},
		{name: "created_at", at: moment{&s.CreatedAt}, fixed: true},
		{name: "last_used_at", at: moment{&s.LastUsedAt}},
		{name: "expires_at", at: moment{&s.ExpiresAt}},
		{name: "terminated_at", at: moment{&s.TerminatedAt}},
		{name: "used_cpu_pct", at: &s.Use.CPUPct},
		{name: "used_memory_mb", at: &s.Use.MemoryMB},
		{name: "used_disk_mb", at: &s.Use.DiskMB},
		{name: "used_at", at: moment{&s.Use.At}},
	}
})

// SandboxFilter narrows a list of sandboxes.
type SandboxFilter struct {
	SquadID     string
	AgentID     string
	TaskID      string
	ExecutionID string
	Provider    string
	E2BID       string
	Template    string
	RepoURL     string
	Node        string
	Statuses    []squad.SandboxStatus
	Pooled      *bool
	// UsedBefore, ExpiresBefore and CreatedBefore ask for times under these.
	UsedBefore    time.Time
	ExpiresBefore time.Time
	CreatedBefore time.Time

	Limit  int
	After  string
	Newest bool
}

func (f SandboxFilter) where() *where {
	w := &where{}
	w.eq("squad_id", f.SquadID)
	w.eq("agent_id", f.AgentID)
	w.eq("task_id", f.TaskID)
	w.eq("execution_id", f.ExecutionID)
	w.eq("provider", f.Provider)
	w.eq("e2b_id", f.E2BID)
	w.eq("template", f.Template)
	w.eq("repo_url", f.RepoURL)
	w.eq("node", f.Node)
	in(w, "status", f.Statuses)
	w.flag("pooled", f.Pooled)
	w.before("last_used_at", f.UsedBefore)
	w.before("expires_at", f.ExpiresBefore)
	w.before("created_at", f.CreatedBefore)
	return w
}

// Sandbox reads one sandbox.
func (q *Query) Sandbox(ctx context.Context, id string) (squad.Sandbox, error) {
	return sandboxes.get(ctx, q, "id", id)
}

// SandboxByE2BID reads a sandbox by the identifier its provider gave it.
func (q *Query) SandboxByE2BID(ctx context.Context, e2bID string) (squad.Sandbox, error) {
	return sandboxes.get(ctx, q, "e2b_id", e2bID)
}

// RunningSandboxOfTask reads the newest sandbox of the task that can still be
// used: created, running or paused.
func (q *Query) RunningSandboxOfTask(ctx context.Context, taskID string) (squad.Sandbox, error) {
	w := SandboxFilter{Statuses: []squad.SandboxStatus{
		squad.SandboxCreated, squad.SandboxRunning, squad.SandboxPaused,
	}}.where()
	w.text("task_id", taskID)
	w.order = "id DESC"
	return sandboxes.one(ctx, q, w, taskID)
}

// Sandboxes lists sandboxes.
func (q *Query) Sandboxes(ctx context.Context, f SandboxFilter) ([]squad.Sandbox, error) {
	w := f.where()
	w.page("id", f.After, f.Limit, f.Newest)
	return sandboxes.list(ctx, q, w)
}

// CountSandboxes counts what [Query.Sandboxes] would list without limit.
func (q *Query) CountSandboxes(ctx context.Context, f SandboxFilter) (int, error) {
	return q.count(ctx, "sandboxes", f.where())
}

// CreateSandbox writes a new sandbox, "created" unless it says otherwise.
func (tx *Tx) CreateSandbox(ctx context.Context, s *squad.Sandbox) error {
	tx.stamp(&s.ID, &s.CreatedAt, &s.LastUsedAt)
	if s.Status == "" {
		s.Status = squad.SandboxCreated
	}
	if s.Status.Final() && s.TerminatedAt.IsZero() {
		s.TerminatedAt = tx.Now
	}
	return sandboxes.create(ctx, tx, s)
}

// UpdateSandbox writes a changed sandbox; one that ended gets the time of its
// end where none is set.
func (tx *Tx) UpdateSandbox(ctx context.Context, s *squad.Sandbox) error {
	if s.Status.Final() && s.TerminatedAt.IsZero() {
		s.TerminatedAt = tx.Now
	}
	return sandboxes.change(ctx, tx, s)
}

// DeleteSandbox removes the row of a sandbox.
func (tx *Tx) DeleteSandbox(ctx context.Context, id string) error {
	return sandboxes.remove(ctx, tx, id)
}
