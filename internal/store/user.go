package store

import (
	"context"
	"fmt"
	"time"

	squad "agentsquad"
)

var users = newTable("user", "users", func(u *squad.User) []field {
	return []field{
		{name: "id", at: &u.ID},
		{name: "name", at: &u.Name},
		{name: "email", at: ref{&u.Email}},
		{name: "admin", at: &u.Admin},
		{name: "created_at", at: moment{&u.CreatedAt}, fixed: true},
	}
})

// UserFilter narrows a list of users.
type UserFilter struct {
	Email string
	Admin *bool

	Limit  int
	After  string
	Newest bool
}

// User reads one user.
func (q *Query) User(ctx context.Context, id string) (squad.User, error) {
	return users.get(ctx, q, "id", id)
}

// Users lists users by the time of their making.
func (q *Query) Users(ctx context.Context, f UserFilter) ([]squad.User, error) {
	w := &where{}
	w.eq("email", f.Email)
	w.flag("admin", f.Admin)
	w.page("id", f.After, f.Limit, f.Newest)
	return users.list(ctx, q, w)
}

// CreateUser writes a new user.
func (tx *Tx) CreateUser(ctx context.Context, u *squad.User) error {
	tx.stamp(&u.ID, &u.CreatedAt)
	return users.create(ctx, tx, u)
}

// UpdateUser writes a changed user.
func (tx *Tx) UpdateUser(ctx context.Context, u *squad.User) error { return users.change(ctx, tx, u) }

// DeleteUser removes a user, with tokens and places in squads.
func (tx *Tx) DeleteUser(ctx context.Context, id string) error { return users.remove(ctx, tx, id) }

// stamp fills the key and the times of a new row where they are empty.
func (tx *Tx) stamp(id *string, times ...*time.Time) {
	if *id == "" {
		*id = squad.NewID()
	}
	for _, t := range times {
		if t.IsZero() {
			*t = tx.Now
		}
	}
}

var squadUsers = newTable("squad user", "squad_users", func(u *squad.SquadUser) []field {
	return []field{
		{name: "squad_id", at: &u.SquadID},
		{name: "user_id", at: &u.UserID},
		{name: "role", at: wordOf(&u.Role)},
	}
})

// SquadUserFilter narrows a list of places in squads. After is a user's id where
// SquadID is set, else a squad's.
type SquadUserFilter struct {
	SquadID string
	UserID  string

	Limit int
	After string
}

// SquadUser reads one person's place in one squad.
func (q *Query) SquadUser(ctx context.Context, squadID, userID string) (squad.SquadUser, error) {
	w := &where{}
	w.text("squad_id", squadID)
	w.text("user_id", userID)
	return squadUsers.one(ctx, q, w, userID)
}

// SquadUsers lists places in squads.
func (q *Query) SquadUsers(ctx context.Context, f SquadUserFilter) ([]squad.SquadUser, error) {
	w := &where{}
	w.eq("squad_id", f.SquadID)
	w.eq("user_id", f.UserID)
	key := "squad_id"
	if f.SquadID != "" {
		key = "user_id"
	}
	w.page(key, f.After, f.Limit, false)
	return squadUsers.list(ctx, q, w)
}

// CreateSquadUser gives a person a place in a squad.
func (tx *Tx) CreateSquadUser(ctx context.Context, u *squad.SquadUser) error {
	return squadUsers.create(ctx, tx, u)
}

// UpdateSquadUser changes the role of a person in a squad.
func (tx *Tx) UpdateSquadUser(ctx context.Context, u *squad.SquadUser) error {
	n, err := tx.exec(ctx, `UPDATE squad_users SET role = $1 WHERE squad_id = $2 AND user_id = $3`,
		string(u.Role), clean(u.SquadID), clean(u.UserID))
	return touched(n, err, "update", "squad user", u.UserID)
}

// DeleteSquadUser takes a person's place in a squad away.
func (tx *Tx) DeleteSquadUser(ctx context.Context, squadID, userID string) error {
	n, err := tx.exec(ctx, `DELETE FROM squad_users WHERE squad_id = $1 AND user_id = $2`, clean(squadID), clean(userID))
	return touched(n, err, "delete", "squad user", userID)
}

// touched is the outcome of a statement that had to touch one row.
func touched(n int64, err error, verb, kind, id string) error {
	if err == nil && n == 0 {
		err = squad.NotFound(kind, id)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, kind, translate(err, kind))
	}
	return nil
}
