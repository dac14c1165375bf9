package store

import (
	"context"

	squad "agentsquad"
)

var squads = newTable("squad", "squads", func(s *squad.Squad) []field {
	return []field{
		{name: "id", at: &s.ID},
		{name: "org_id", at: ref{&s.OrgID}},
		{name: "user_id", at: ref{&s.UserID}},
		{name: "name", at: &s.Name},
		{name: "description", at: &s.Description},
		{name: "status", at: wordOf(&s.Status)},
		{name: "config", at: object{&s.Config}},
		{name: "created_at", at: moment{&s.CreatedAt}, fixed: true},
		{name: "updated_at", at: moment{&s.UpdatedAt}},
	}
})

// SquadFilter narrows a list of squads.
type SquadFilter struct {
	OrgID    string
	UserID   string // who made it
	HasUser  string // who has a place in it
	Name     string
	Statuses []squad.SquadStatus

	Limit  int
	After  string
	Newest bool
}

// Squad reads one squad.
func (q *Query) Squad(ctx context.Context, id string) (squad.Squad, error) {
	return squads.get(ctx, q, "id", id)
}

// Squads lists squads.
func (q *Query) Squads(ctx context.Context, f SquadFilter) ([]squad.Squad, error) {
	w := &where{}
	w.eq("org_id", f.OrgID)
	w.eq("user_id", f.UserID)
	w.eq("name", f.Name)
	if f.HasUser != "" {
		w.add("id IN (SELECT squad_id FROM squad_users WHERE user_id = ?)", clean(f.HasUser))
	}
	in(w, "status", f.Statuses)
	w.page("id", f.After, f.Limit, f.Newest)
	return squads.list(ctx, q, w)
}

// CreateSquad writes a new squad, active unless it says otherwise.
func (tx *Tx) CreateSquad(ctx context.Context, s *squad.Squad) error {
	tx.stamp(&s.ID, &s.CreatedAt, &s.UpdatedAt)
	if s.Status == "" {
		s.Status = squad.SquadActive
	}
	return squads.create(ctx, tx, s)
}

// UpdateSquad writes a changed squad.
func (tx *Tx) UpdateSquad(ctx context.Context, s *squad.Squad) error {
	s.UpdatedAt = tx.Now
	return squads.change(ctx, tx, s)
}

// DeleteSquad removes a squad with its members, repositories and tasks. Its
// sandboxes and usage stay, owned by nobody.
func (tx *Tx) DeleteSquad(ctx context.Context, id string) error { return squads.remove(ctx, tx, id) }
