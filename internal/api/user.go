package api

import (
	"context"
	"net/http"
	"net/mail"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) userRoutes(api huma.API) {
	const tag = "Users"
	huma.Register(api, get("list-users", "/users", tag, "List users"), s.listUsers)
	huma.Register(api, post("create-user", "/users", tag, "Create a user", http.StatusCreated), s.createUser)
	huma.Register(api, get("get-user", "/users/{id}", tag, "Read a user"), s.getUser)
	huma.Register(api, patch("change-user", "/users/{id}", tag, "Edit a user"), s.changeUser)
	huma.Register(api, remove("delete-user", "/users/{id}", tag, "Delete a user with their tokens"), s.deleteUser)
	huma.Register(api, post("sign-in-link", "/users/{id}/sign-in-link", tag, "Make a one-time sign-in link", http.StatusCreated), s.makeSignInLink)
}

func squadUsersOf(userID string) store.SquadUserFilter { return store.SquadUserFilter{UserID: userID} }

func (s *Server) listUsers(ctx context.Context, in *Paging) (*List[squad.User], error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	after, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	rows, err := s.store.Users(ctx, store.UserFilter{Limit: in.Limit + 1, After: after, Newest: in.Newest})
	if err != nil {
		return nil, err
	}
	return &List[squad.User]{paged(rows, in.Limit, func(u squad.User) string { return u.ID })}, nil
}

func (s *Server) createUser(ctx context.Context, in *struct {
	Once
	Body squad.NewUser
},
) (*One[squad.User], error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	row, err := once(ctx, s, in.Key, in.Body, "user.create", func(tx *store.Tx) (squad.User, string, error) {
		row := squad.User{Name: in.Body.Name, Email: in.Body.Email, Admin: in.Body.Admin}
		if err := checkUser(row); err != nil {
			return row, "", err
		}
		return row, row.ID, tx.CreateUser(ctx, &row)
	})
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

func checkUser(u squad.User) error {
	if u.Email == "" {
		return nil
	}
	if a, err := mail.ParseAddress(u.Email); err != nil || a.Address != u.Email {
		return squad.Invalid("email", "is no mail address")
	}
	return nil
}

// user reads a user: oneself, or anyone for administrators.
func (s *Server) user(ctx context.Context, q *store.Query, id string) (squad.User, error) {
	a := actorOf(ctx)
	if id == "me" && !a.IsAgent() {
		id = a.UserID
	}
	if id != a.UserID && mayAdminister(a) != nil || a.IsAgent() {
		return squad.User{}, squad.NotFound("user", id)
	}
	return q.User(ctx, id)
}

func (s *Server) getUser(ctx context.Context, in *ByID) (*One[squad.User], error) {
	u, err := s.user(ctx, s.store.Query, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(u), nil
}

func (s *Server) changeUser(ctx context.Context, in *struct {
	ByID
	Matching
	Body squad.UserChange
},
) (*One[squad.User], error) {
	a := actorOf(ctx)
	if !isFull(a) {
		return nil, squad.Errorf(squad.CodeForbidden, "this token may not change users")
	}
	var u squad.User
	err := s.change(ctx, "user.change", func(tx *store.Tx) (string, error) {
		var err error
		if u, err = s.user(ctx, tx.Query, in.ID); err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, etag(u)); err != nil {
			return "", err
		}
		if in.Body.Admin != nil && *in.Body.Admin != u.Admin {
			if err := mayAdminister(a); err != nil {
				return "", err
			}
			if u.Admin {
				if err := anotherAdmin(ctx, tx, u.ID); err != nil {
					return "", err
				}
			}
		}
		set(&u.Name, in.Body.Name)
		set(&u.Email, in.Body.Email)
		set(&u.Admin, in.Body.Admin)
		if err := checkUser(u); err != nil {
			return "", err
		}
		return u.ID, tx.UpdateUser(ctx, &u)
	})
	if err != nil {
		return nil, err
	}
	return answer(u), nil
}

// anotherAdmin keeps the last administrator from locking everyone out.
func anotherAdmin(ctx context.Context, tx *store.Tx, but string) error {
	if err := tx.Lock(ctx, "users.admin"); err != nil {
		return err
	}
	yes := true
	admins, err := tx.Users(ctx, store.UserFilter{Admin: &yes})
	if err != nil {
		return err
	}
	for _, u := range admins {
		if u.ID != but {
			return nil
		}
	}
	return squad.Errorf(squad.CodeConflict, "this is the last administrator; make another one first")
}

func (s *Server) deleteUser(ctx context.Context, in *ByID) (*Nothing, error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	return nil, s.change(ctx, "user.delete", func(tx *store.Tx) (string, error) {
		u, err := s.user(ctx, tx.Query, in.ID)
		if err != nil {
			return "", err
		}
		if u.Admin {
			if err := anotherAdmin(ctx, tx, u.ID); err != nil {
				return "", err
			}
		}
		return u.ID, tx.DeleteUser(ctx, u.ID)
	})
}
