package store

import (
	"context"

	squad "agentsquad"
)

var members = newTable("member", "squad_members", func(m *squad.Member) []field {
	return []field{
		{name: "id", at: &m.ID},
		{name: "squad_id", at: &m.SquadID, fixed: true},
		{name: "name", at: &m.Name},
		{name: "role", at: &m.Role},
		{name: "specialization", at: &m.Specialization},
		{name: "llm_provider", at: &m.LLMProvider},
		{name: "llm_model", at: &m.LLMModel},
		{name: "system_prompt", at: &m.SystemPrompt},
		{name: "config", at: object{&m.Config}},
		{name: "is_active", at: &m.IsActive},
		{name: "sandbox_id", at: ref{&m.SandboxID}},
		{name: "current_task_id", at: ref{&m.CurrentTaskID}},
		{name: "git_context", at: object{&m.GitContext}},
		{name: "created_at", at: moment{&m.CreatedAt}, fixed: true},
		{name: "updated_at", at: moment{&m.UpdatedAt}},
	}
})

// MemberFilter narrows a list of members.
type MemberFilter struct {
	SquadID       string
	Role          string
	Name          string
	SandboxID     string
	CurrentTaskID string
	Active        *bool
	Idle          bool // has no task now

	Limit  int
	After  string
	Newest bool
}

// Member reads one member.
func (q *Query) Member(ctx context.Context, id string) (squad.Member, error) {
	return members.get(ctx, q, "id", id)
}

// Members lists members.
func (q *Query) Members(ctx context.Context, f MemberFilter) ([]squad.Member, error) {
	w := &where{}
	w.eq("squad_id", f.SquadID)
	w.eq("role", f.Role)
	w.eq("name", f.Name)
	w.eq("sandbox_id", f.SandboxID)
	w.eq("current_task_id", f.CurrentTaskID)
	w.flag("is_active", f.Active)
	if f.Idle {
		w.raw("current_task_id IS NULL")
	}
	w.page("id", f.After, f.Limit, f.Newest)
	return members.list(ctx, q, w)
}

// CreateMember writes a new member.
func (tx *Tx) CreateMember(ctx context.Context, m *squad.Member) error {
	tx.stamp(&m.ID, &m.CreatedAt, &m.UpdatedAt)
	return members.create(ctx, tx, m)
}

// UpdateMember writes a changed member; it stays in its squad.
func (tx *Tx) UpdateMember(ctx context.Context, m *squad.Member) error {
	m.UpdatedAt = tx.Now
	return members.change(ctx, tx, m)
}

// DeleteMember removes a member; its tasks stay, assigned to nobody.
func (tx *Tx) DeleteMember(ctx context.Context, id string) error {
	if err := tx.releaseTasks(ctx, "assignee_id", id); err != nil {
		return err
	}
	return members.remove(ctx, tx, id)
}

var messages = newTable("message", "messages", func(m *squad.Message) []field {
	return []field{
		{name: "id", at: &m.ID},
		{name: "squad_id", at: &m.SquadID, fixed: true},
		{name: "task_id", at: ref{&m.TaskID}},
		{name: "execution_id", at: ref{&m.ExecutionID}},
		{name: "sender", at: &m.From},
		{name: "recipient", at: &m.To},
		{name: "kind", at: &m.Kind},
		{name: "body", at: &m.Body},
		{name: "read_at", at: moment{&m.ReadAt}},
		{name: "created_at", at: moment{&m.CreatedAt}, fixed: true},
	}
})

// MessageFilter narrows a list of messages.
type MessageFilter struct {
	SquadID     string
	TaskID      string
	ExecutionID string
	From        string
	To          string
	Kind        string
	Unread      bool

	Limit  int
	After  string
	Newest bool
}

// Message reads one message.
func (q *Query) Message(ctx context.Context, id string) (squad.Message, error) {
	return messages.get(ctx, q, "id", id)
}

// Messages lists messages.
func (q *Query) Messages(ctx context.Context, f MessageFilter) ([]squad.Message, error) {
	w := &where{}
	w.eq("squad_id", f.SquadID)
	w.eq("task_id", f.TaskID)
	w.eq("execution_id", f.ExecutionID)
	w.eq("sender", f.From)
	w.eq("recipient", f.To)
	w.eq("kind", f.Kind)
	if f.Unread {
		w.raw("read_at IS NULL")
	}
	w.page("id", f.After, f.Limit, f.Newest)
	return messages.list(ctx, q, w)
}

// CreateMessage writes a new message, a note unless it says otherwise.
func (tx *Tx) CreateMessage(ctx context.Context, m *squad.Message) error {
	tx.stamp(&m.ID, &m.CreatedAt)
	if m.Kind == "" {
		m.Kind = "note"
	}
	return messages.create(ctx, tx, m)
}

// UpdateMessage writes a changed message, for example that it was read.
func (tx *Tx) UpdateMessage(ctx context.Context, m *squad.Message) error {
	return messages.change(ctx, tx, m)
}

// DeleteMessage removes a message.
func (tx *Tx) DeleteMessage(ctx context.Context, id string) error {
	return messages.remove(ctx, tx, id)
}
