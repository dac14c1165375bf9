package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) credentialRoutes(api huma.API) {
	const tag = "Credentials"
	huma.Register(api, get("list-credentials", "/credentials", tag, "List credentials, without their secrets"), s.listCredentials)
	huma.Register(api, post("create-credential", "/credentials", tag, "Store a secret, sealed", http.StatusCreated), s.createCredential)
	huma.Register(api, get("get-credential", "/credentials/{id}", tag, "Read a credential, without its secret"), s.getCredential)
	huma.Register(api, patch("change-credential", "/credentials/{id}", tag, "Rename a credential or replace its secret"), s.changeCredential)
	huma.Register(api, remove("delete-credential", "/credentials/{id}", tag, "Delete a credential"), s.deleteCredential)
}

// mayCredential: those of a squad belong to its administrators, those of the
// installation to the installation's.
func mayCredential(a squad.Actor, squadID, id string) error {
	if squadID == "" {
		if mayAdminister(a) != nil {
			return squad.NotFound("credential", id)
		}
		return nil
	}
	return mayInSquad(a, squadID, squad.RoleAdmin, "credential", id)
}

func (s *Server) listCredentials(ctx context.Context, in *struct {
	Paging
	SquadID string `query:"squad_id" maxLength:"100"`
},
) (*List[squad.Credential], error) {
	page, err := across(ctx, in.SquadID, in.Paging, func(c squad.Credential) string { return c.ID }, func(ctx context.Context, p span) ([]squad.Credential, error) {
		return s.store.Credentials(ctx, store.CredentialFilter{SquadID: p.SquadID, Limit: p.Limit, After: p.After, Newest: p.Newest})
	})
	if err != nil {
		return nil, err
	}
	a := actorOf(ctx)
	return &List[squad.Credential]{keep(page, func(c squad.Credential) bool { return mayCredential(a, c.SquadID, c.ID) == nil })}, nil
}

func (s *Server) createCredential(ctx context.Context, in *struct {
	Once
	Body squad.NewCredential
},
) (*One[squad.Credential], error) {
	b := in.Body
	if b.SquadID == "" {
		if err := mayAdminister(actorOf(ctx)); err != nil {
			return nil, err
		}
	} else if err := mayInSquad(actorOf(ctx), b.SquadID, squad.RoleAdmin, "squad", b.SquadID); err != nil {
		return nil, err
	}
	if s.ports.Sealer == nil {
		return nil, unavailable("the vault")
	}
	id := squad.NewID()
	sealed, err := s.ports.Sealer.Seal(id, []byte(b.Secret))
	if err != nil {
		return nil, err
	}
	row, err := once(ctx, s, in.Key, b, "credential.create", func(tx *store.Tx) (squad.Credential, string, error) {
		row := squad.Credential{ID: id, SquadID: b.SquadID, Name: b.Name, Kind: b.Kind, Provider: b.Provider, Hint: hint(b.Secret)}
		if err := tx.CreateCredential(ctx, &row); err != nil {
			return row, "", err
		}
		return row, row.ID, tx.SetSealedCredential(ctx, row.ID, sealed)
	})
	if err != nil {
		return nil, err
	}
	return answer(row), nil
}

// hint is enough to tell secrets apart and too little to help anyone.
func hint(secret string) string {
	if len(secret) < 16 {
		return "…"
	}
	return "…" + secret[len(secret)-4:]
}

// credential reads a credential that the actor may manage.
func (s *Server) credential(ctx context.Context, q *store.Query, id string) (squad.Credential, error) {
	c, err := q.Credential(ctx, id)
	if err == nil {
		err = mayCredential(actorOf(ctx), c.SquadID, id)
	}
	return c, err
}

func (s *Server) getCredential(ctx context.Context, in *ByID) (*One[squad.Credential], error) {
	c, err := s.credential(ctx, s.store.Query, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(c), nil
}

func (s *Server) changeCredential(ctx context.Context, in *struct {
	ByID
	Matching
	Body squad.CredentialChange
},
) (*One[squad.Credential], error) {
	if s.ports.Sealer == nil && in.Body.Secret != nil {
		return nil, unavailable("the vault")
	}
	var c squad.Credential
	err := s.change(ctx, "credential.change", func(tx *store.Tx) (string, error) {
		var err error
		if c, err = s.credential(ctx, tx.Query, in.ID); err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, etag(c)); err != nil {
			return "", err
		}
		set(&c.Name, in.Body.Name)
		if in.Body.Secret != nil {
			sealed, err := s.ports.Sealer.Seal(c.ID, []byte(*in.Body.Secret))
			if err != nil {
				return "", err
			}
			if err := tx.SetSealedCredential(ctx, c.ID, sealed); err != nil {
				return "", err
			}
			c.Hint, c.RotatedAt = hint(*in.Body.Secret), tx.Now
		}
		return c.ID, tx.UpdateCredential(ctx, &c)
	})
	if err != nil {
		return nil, err
	}
	return answer(c), nil
}

func (s *Server) deleteCredential(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, s.change(ctx, "credential.delete", func(tx *store.Tx) (string, error) {
		if _, err := s.credential(ctx, tx.Query, in.ID); err != nil {
			return "", err
		}
		return in.ID, tx.DeleteCredential(ctx, in.ID)
	})
}
