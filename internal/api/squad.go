package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

func (s *Server) squadRoutes(api huma.API) {
	huma.Register(api, get("list-squads", "/squads", "Squads", "List squads"), s.listSquads)
	huma.Register(api, post("create-squad", "/squads", "Squads", "Create a squad", http.StatusCreated), s.createSquad)
	huma.Register(api, get("get-squad", "/squads/{id}", "Squads", "Read a squad"), s.getSquad)
	huma.Register(api, patch("change-squad", "/squads/{id}", "Squads", "Edit a squad"), s.changeSquad)
	huma.Register(api, remove("delete-squad", "/squads/{id}", "Squads", "Delete a squad with its members, repositories and tasks"), s.deleteSquad)

	huma.Register(api, get("list-squad-users", "/squads/{id}/users", "Squads", "List the people of a squad"), s.listSquadUsers)
	huma.Register(api, put("put-squad-user", "/squads/{id}/users/{user_id}", "Squads", "Give a person a role in a squad"), s.putSquadUser)
	huma.Register(api, remove("delete-squad-user", "/squads/{id}/users/{user_id}", "Squads", "Take a person out of a squad"), s.deleteSquadUser)
}

func (s *Server) listSquads(ctx context.Context, in *struct {
	Paging
	Status squad.SquadStatus `query:"status" enum:"active,paused,archived"`
},
) (*List[squad.Squad], error) {
	a := actorOf(ctx)
	after, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	if a.IsAgent() {
		own, err := s.store.Squad(ctx, a.SquadID)
		if err != nil {
			return nil, err
		}
		return whole([]squad.Squad{own}), nil
	}
	f := store.SquadFilter{Limit: in.Limit + 1, After: after, Newest: in.Newest, Statuses: given(in.Status)}
	if !a.Admin {
		f.HasUser = a.UserID
	}
	rows, err := s.store.Squads(ctx, f)
	if err != nil {
		return nil, err
	}
	return &List[squad.Squad]{paged(rows, in.Limit, func(q squad.Squad) string { return q.ID })}, nil
}

func (s *Server) createSquad(ctx context.Context, in *struct {
	Once
	Body squad.NewSquad
},
) (*One[squad.Squad], error) {
	a := actorOf(ctx)
	if err := mayAdminister(a); err != nil {
		return nil, err
	}
	row, err := once(ctx, s, in.Key, in.Body, "squad.create", func(tx *store.Tx) (squad.Squad, string, error) {
		row := squad.Squad{
			OrgID: in.Body.OrgID, UserID: a.UserID, Name: in.Body.Name, Description: in.Body.Description,
			Status: squad.SquadActive, Config: in.Body.Config,
		}
		if err := tx.CreateSquad(ctx, &row); err != nil {
			return row, "", err
		}
		if a.UserID != "" {
			if err := tx.CreateSquadUser(ctx, &squad.SquadUser{SquadID: row.ID, UserID: a.UserID, Role: squad.RoleAdmin}); err != nil {
				return row, "", err
			}
		}
		return row, row.ID, tx.Append(ctx, squadChanged(row))
	})
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

func squadChanged(row squad.Squad) squad.Event {
	return squad.Event{Type: squad.EventSquadChanged, SquadID: row.ID, Payload: event.Payload(row)}
}

func (s *Server) getSquad(ctx context.Context, in *ByID) (*One[squad.Squad], error) {
	if !seesSquad(actorOf(ctx), in.ID) {
		return nil, squad.NotFound("squad", in.ID)
	}
	row, err := s.store.Squad(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

func (s *Server) changeSquad(ctx context.Context, in *struct {
	ByID
	Matching
	Body squad.SquadChange
},
) (*One[squad.Squad], error) {
	if err := mayInSquad(actorOf(ctx), in.ID, squad.RoleAdmin, "squad", in.ID); err != nil {
		return nil, err
	}
	var row squad.Squad
	err := s.change(ctx, "squad.change", func(tx *store.Tx) (string, error) {
		var err error
		if row, err = tx.Squad(ctx, in.ID); err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, etag(row)); err != nil {
			return "", err
		}
		set(&row.Name, in.Body.Name)
		set(&row.Description, in.Body.Description)
		set(&row.Status, in.Body.Status)
		set(&row.Config, in.Body.Config)
		if err := tx.UpdateSquad(ctx, &row); err != nil {
			return "", err
		}
		return row.ID, tx.Append(ctx, squadChanged(row))
	})
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

func (s *Server) deleteSquad(ctx context.Context, in *struct {
	ByID
	Matching
},
) (*Nothing, error) {
	if err := mayInSquad(actorOf(ctx), in.ID, squad.RoleAdmin, "squad", in.ID); err != nil {
		return nil, err
	}
	return nil, s.change(ctx, "squad.delete", func(tx *store.Tx) (string, error) {
		row, err := tx.Squad(ctx, in.ID)
		if err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, etag(row)); err != nil {
			return "", err
		}
		if live, err := tx.CountExecutions(ctx, store.ExecutionFilter{SquadID: in.ID, Live: true}); err != nil {
			return "", err
		} else if live > 0 {
			return "", squad.Errorf(squad.CodeConflict, "%d executions of this squad still run; cancel them first", live)
		}
		row.Status = squad.SquadArchived
		if err := tx.Append(ctx, squadChanged(row)); err != nil {
			return "", err
		}
		return in.ID, tx.DeleteSquad(ctx, in.ID)
	})
}

func (s *Server) listSquadUsers(ctx context.Context, in *struct {
	ByID
	Paging
},
) (*List[squad.SquadUser], error) {
	if err := mayInSquad(actorOf(ctx), in.ID, squad.RoleViewer, "squad", in.ID); err != nil {
		return nil, err
	}
	rows, err := s.store.SquadUsers(ctx, store.SquadUserFilter{SquadID: in.ID})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		u, err := s.store.User(ctx, rows[i].UserID)
		if err != nil {
			return nil, err
		}
		rows[i].Name = u.Name
	}
	return whole(rows), nil
}

func (s *Server) putSquadUser(ctx context.Context, in *struct {
	ByID
	UserID string `path:"user_id" maxLength:"100"`
	Body   struct {
		Role squad.UserRole `json:"role" enum:"admin,member,viewer"`
	}
},
) (*One[squad.SquadUser], error) {
	if err := mayInSquad(actorOf(ctx), in.ID, squad.RoleAdmin, "squad", in.ID); err != nil {
		return nil, err
	}
	row := squad.SquadUser{SquadID: in.ID, UserID: in.UserID, Role: in.Body.Role}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.User(ctx, in.UserID); err != nil {
			return err
		}
		_, err := tx.SquadUser(ctx, in.ID, in.UserID)
		switch {
		case err == nil:
			err = tx.UpdateSquadUser(ctx, &row)
		case squad.CodeOf(err) == squad.CodeNotFound:
			err = tx.CreateSquadUser(ctx, &row)
		}
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, "squad.user", in.ID, row)
	})
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

func (s *Server) deleteSquadUser(ctx context.Context, in *struct {
	ByID
	UserID string `path:"user_id" maxLength:"100"`
},
) (*Nothing, error) {
	if err := mayInSquad(actorOf(ctx), in.ID, squad.RoleAdmin, "squad", in.ID); err != nil {
		return nil, err
	}
	return nil, s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.DeleteSquadUser(ctx, in.ID, in.UserID); err != nil {
			return err
		}
		return s.audit(ctx, tx, "squad.user_remove", in.ID, map[string]string{"user_id": in.UserID})
	})
}
