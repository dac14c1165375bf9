package api

import (
	"context"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentsquad"
)

// SessionCookie is the cookie of a signed-in browser.
const SessionCookie = "squad_session"

// usedEvery bounds how often the last use of a token is written down.
const usedEvery = 5 * time.Minute

// maxSecret bounds what is hashed for a caller that we do not know.
const maxSecret = 256

// authenticate finds out who asks. It refuses what is not public to nobody, and
// changes that a foreign page makes with a browser's cookie.
func (s *Server) authenticate(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := infoOf(r.Context())
		secret, byCookie := presented(r)
		if byCookie {
			if err := guard.Check(r); err != nil {
				writeProblem(w, r, squad.Errorf(squad.CodeForbidden, "this request came from another site"))
				return
			}
		}
		if secret != "" {
			actor, err := s.identify(r.Context(), secret)
			switch {
			case err == nil:
				actor.Remote = i.remote
				i.actor, i.known, i.secret = actor, true, secret
			case squad.CodeOf(err) != squad.CodeUnauthorized:
				writeProblem(w, r, err)
				return
			}
		}
		if !i.known && needsActor(r) {
			writeProblem(w, r, squad.Errorf(squad.CodeUnauthorized, "sign in, or send a valid token: Authorization: Bearer <token>"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// presented is the secret that the request carries. A token in the header goes
// before a cookie, and then the cookie does not count at all.
func presented(r *http.Request) (secret string, byCookie bool) {
	if scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(rest), false
	}
	if c, err := r.Cookie(SessionCookie); err == nil {
		return c.Value, true
	}
	return "", false
}

// needsActor says whether a path is closed to strangers.
func needsActor(r *http.Request) bool {
	path := r.URL.Path
	if !isAPI(path) {
		return false
	}
	rest, _ := strings.CutPrefix(path, Prefix)
	public := rest == "/session" && r.Method != http.MethodGet || strings.HasPrefix(rest, "/webhooks/") ||
		rest == "/openapi.json" || rest == "/docs"
	return !public
}

// identify finds the actor of a secret, or [squad.CodeUnauthorized].
func (s *Server) identify(ctx context.Context, secret string) (squad.Actor, error) {
	refused := squad.Errorf(squad.CodeUnauthorized, "the token is not valid")
	if len(secret) > maxSecret {
		return squad.Actor{}, refused
	}
	hash := HashSecret(secret)
	t, err := s.store.TokenByHash(ctx, hash)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return squad.Actor{}, refused
	}
	if err != nil {
		return squad.Actor{}, err
	}
	if subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hash)) != 1 || expired(t, s.now()) {
		return squad.Actor{}, refused
	}
	actor := squad.Actor{Kind: t.Kind, UserID: t.UserID, TokenID: t.ID, Ceiling: ceiling(t.Scopes)}
	switch t.Kind {
	case squad.TokenUser, squad.TokenSession:
		err = s.identifyUser(ctx, &actor)
	case squad.TokenAgent:
		err = s.identifyMember(ctx, t, &actor)
	default: // keys of other protocols open nothing here
		return squad.Actor{}, refused
	}
	if squad.CodeOf(err) == squad.CodeNotFound {
		return squad.Actor{}, refused
	}
	if err == nil && s.now().Sub(t.LastUsedAt) > usedEvery {
		s.touch(ctx, t.ID)
	}
	return actor, err
}

func expired(t squad.APIToken, now time.Time) bool {
	return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)
}

func (s *Server) identifyUser(ctx context.Context, a *squad.Actor) error {
	u, err := s.store.User(ctx, a.UserID)
	if err != nil {
		return err
	}
	a.Admin = u.Admin
	if u.Admin {
		return nil
	}
	places, err := s.store.SquadUsers(ctx, squadUsersOf(u.ID))
	if err != nil {
		return err
	}
	a.Roles = make(map[string]squad.UserRole, len(places))
	for _, p := range places {
		a.Roles[p.SquadID] = p.Role
	}
	return nil
}

func (s *Server) identifyMember(ctx context.Context, t squad.APIToken, a *squad.Actor) error {
	m, err := s.store.Member(ctx, t.MemberID)
	if err != nil {
		return err
	}
	if !m.IsActive {
		return squad.NotFound("member", m.ID)
	}
	a.UserID = ""
	a.MemberID, a.SquadID, a.MemberRole = m.ID, m.SquadID, m.Role
	a.TaskID, a.SandboxID = t.TaskID, t.SandboxID
	return nil
}

// ceiling is the most that the scopes allow: read a viewer, write a member.
func ceiling(scopes []string) squad.UserRole {
	switch {
	case len(scopes) == 0, slices.Contains(scopes, "admin"):
		return squad.RoleAdmin
	case slices.Contains(scopes, "write"):
		return squad.RoleMember
	case slices.Contains(scopes, "read"):
		return squad.RoleViewer
	default:
		return ""
	}
}

// KeyOwner is the user behind an E2B key, for the E2B-compatible server.
func (s *Server) KeyOwner(ctx context.Context, key string) (owner string, ok bool) {
	if len(key) > maxSecret || !strings.HasPrefix(key, "e2b_") {
		return "", false
	}
	t, err := s.store.TokenByHash(ctx, HashSecret(key))
	if err != nil || t.Kind != squad.TokenE2B || expired(t, s.now()) {
		return "", false
	}
	if s.now().Sub(t.LastUsedAt) > usedEvery {
		s.touch(ctx, t.ID)
	}
	return t.UserID, true
}
