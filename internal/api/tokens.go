package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) tokenRoutes(api huma.API) {
	const tag = "Tokens"
	huma.Register(api, get("list-tokens", "/tokens", tag, "List tokens, without their secrets"), s.listTokens)
	op := post("create-token", "/tokens", tag, "Make a token; its secret is shown once", http.StatusCreated)
	op.Description = "Takes no Idempotency-Key: an answer with a secret is not kept."
	huma.Register(api, op, s.createToken)
	huma.Register(api, remove("delete-token", "/tokens/{id}", tag, "Revoke a token"), s.deleteToken)
}

func (s *Server) listTokens(ctx context.Context, in *struct {
	Paging
	UserID string          `query:"user_id" maxLength:"100" doc:"Another user's, or all; administrators only"`
	Kind   squad.TokenKind `query:"kind" enum:",user,agent,e2b,session"`
},
) (*List[squad.APIToken], error) {
	a := actorOf(ctx)
	after, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	if !isFull(a) {
		return nil, squad.Errorf(squad.CodeForbidden, "this token may not see tokens")
	}
	f := store.APITokenFilter{UserID: a.UserID, Limit: in.Limit + 1, After: after, Newest: in.Newest, Kinds: given(in.Kind)}
	if in.UserID != "" && in.UserID != a.UserID {
		if err := mayAdminister(a); err != nil {
			return nil, err
		}
		f.UserID = in.UserID
		if in.UserID == "all" {
			f.UserID = ""
		}
	}
	rows, err := s.store.APITokens(ctx, f)
	if err != nil {
		return nil, err
	}
	page := paged(rows, in.Limit, func(t squad.APIToken) string { return t.ID })
	return &List[squad.APIToken]{keep(page, func(t squad.APIToken) bool { return t.Kind != squad.TokenSignIn })}, nil
}

func (s *Server) createToken(ctx context.Context, in *struct{ Body squad.NewToken }) (*One[squad.CreatedToken], error) {
	a, b := actorOf(ctx), in.Body
	if !isFull(a) {
		return nil, squad.Errorf(squad.CodeForbidden, "a narrowed token may not make tokens")
	}
	row := squad.APIToken{UserID: a.UserID, Kind: b.Kind, Name: b.Name, Scopes: b.Scopes, MemberID: b.MemberID, TaskID: b.TaskID, SandboxID: b.SandboxID}
	if row.Kind == "" {
		row.Kind = squad.TokenUser
	}
	for _, scope := range b.Scopes {
		if !slices.Contains([]string{"read", "write", "admin"}, scope) {
			return nil, squad.Invalid("scopes", "%q is not one of read, write, admin", scope)
		}
	}
	if b.UserID != "" && b.UserID != a.UserID {
		if err := mayAdminister(a); err != nil {
			return nil, err
		}
		row.UserID = b.UserID
	}
	if b.ExpiresIn > 0 {
		row.ExpiresAt = s.now().UTC().Add(time.Duration(b.ExpiresIn) * time.Second).Truncate(time.Microsecond)
	}
	if err := s.checkAgentToken(ctx, row); err != nil {
		return nil, err
	}
	var created squad.CreatedToken
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		var err error
		if created, err = Mint(ctx, tx, row); err != nil {
			return err
		}
		return s.audit(ctx, tx, "token.create", created.ID, map[string]any{"kind": created.Kind, "name": created.Name, "scopes": created.Scopes})
	})
	if err != nil {
		return nil, err
	}
	return &One[squad.CreatedToken]{etag(created.APIToken), created}, nil
}

// checkAgentToken wants a member, a task and a sandbox that belong together, of
// a squad that the caller administers.
func (s *Server) checkAgentToken(ctx context.Context, t squad.APIToken) error {
	if t.Kind != squad.TokenAgent {
		if t.MemberID != "" || t.TaskID != "" || t.SandboxID != "" {
			return squad.Invalid("kind", "only agent tokens are bound to a member, a task or a sandbox")
		}
		return nil
	}
	if t.MemberID == "" || t.TaskID == "" && t.SandboxID == "" {
		return squad.Invalid("member_id", "an agent token names its member, and its task or sandbox")
	}
	m, err := s.member(ctx, s.store.Query, t.MemberID)
	if err != nil {
		return err
	}
	if err := mayInSquad(actorOf(ctx), m.SquadID, squad.RoleAdmin, "member", m.ID); err != nil {
		return err
	}
	if t.TaskID != "" {
		task, err := s.store.Task(ctx, t.TaskID)
		if squad.CodeOf(err) == squad.CodeNotFound || err == nil && task.SquadID != m.SquadID {
			return squad.Invalid("task_id", "names no task of the member's squad")
		}
		if err != nil {
			return err
		}
	}
	if t.SandboxID != "" {
		box, err := s.store.Sandbox(ctx, t.SandboxID)
		if squad.CodeOf(err) == squad.CodeNotFound || err == nil && box.SquadID != m.SquadID {
			return squad.Invalid("sandbox_id", "names no sandbox of the member's squad")
		}
		return err
	}
	return nil
}

func (s *Server) deleteToken(ctx context.Context, in *ByID) (*Nothing, error) {
	a := actorOf(ctx)
	if !isFull(a) {
		return nil, squad.Errorf(squad.CodeForbidden, "a narrowed token may not revoke tokens")
	}
	return nil, s.change(ctx, "token.delete", func(tx *store.Tx) (string, error) {
		t, err := tx.APIToken(ctx, in.ID)
		if err != nil {
			return "", err
		}
		if t.UserID != a.UserID && mayAdminister(a) != nil {
			return "", squad.NotFound("token", in.ID)
		}
		return t.ID, tx.DeleteAPIToken(ctx, t.ID)
	})
}

// touch notes the use of a token. It is bookkeeping: a failure stops nobody.
func (s *Server) touch(ctx context.Context, id string) {
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.TouchAPIToken(ctx, id, tx.Now) })
	if err != nil {
		s.log.WarnContext(ctx, "use of a token not noted", "token_id", id, "error", err)
	}
}
