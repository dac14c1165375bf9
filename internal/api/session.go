package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) sessionRoutes(api huma.API) {
	const tag = "Session"
	op := post("sign-in", "/session", tag, "Sign in with a token or the code of a sign-in link", http.StatusOK)
	op.Security = []map[string][]string{}
	op.Errors = append(op.Errors, http.StatusTooManyRequests)
	huma.Register(api, op, s.signInToken)
	huma.Register(api, get("get-session", "/session", tag, "Who is signed in"), s.me)
	huma.Register(api, get("me", "/me", tag, "Who is signed in"), s.me)
	huma.Register(api, remove("sign-out", "/session", tag, "Sign out"), s.signOut)
}

// Me is who asks: the user, and what their token allows.
type Me struct {
	squad.User
	Actor squad.Actor               `json:"actor"`
	Roles map[string]squad.UserRole `json:"roles" doc:"Roles by squad; administrators have all"`
}

func (s *Server) me(ctx context.Context, _ *struct{}) (*struct{ Body Me }, error) {
	a := actorOf(ctx)
	me := Me{Actor: a, Roles: a.Roles}
	if me.Roles == nil {
		me.Roles = map[string]squad.UserRole{}
	}
	if !a.IsAgent() {
		u, err := s.store.User(ctx, a.UserID)
		if err != nil {
			return nil, err
		}
		me.User = u
	}
	return &struct{ Body Me }{me}, nil
}

type signedIn struct {
	SetCookie string `header:"Set-Cookie"`
	Body      squad.User
}

func (s *Server) signInToken(ctx context.Context, in *struct {
	Origin    string `header:"Origin" hidden:"true"`
	FetchSite string `header:"Sec-Fetch-Site" hidden:"true"`
	Body      struct {
		Token string `json:"token" minLength:"1" maxLength:"256" doc:"API token, or the code of a sign-in link"`
	}
},
) (*signedIn, error) {
	if in.FetchSite != "" && in.FetchSite != "same-origin" && in.FetchSite != "none" {
		return nil, squad.Errorf(squad.CodeForbidden, "this request came from another site")
	}
	u, session, err := s.openSession(ctx, in.Body.Token)
	if err != nil {
		return nil, err
	}
	return &signedIn{SetCookie: s.cookie(ctx, session.Secret, int(s.cfg.SessionLifetime.Seconds())).String(), Body: u}, nil
}

// signInLink is the link that `squad up` and `squad signin` print. A preview of
// the link by a program must not use it up.
func (s *Server) signInLink(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") || r.Method == http.MethodHead {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	_, session, err := s.openSession(r.Context(), r.URL.Query().Get("code"))
	if err != nil {
		p := problemOf(r.Context(), err)
		if p.Status != http.StatusUnauthorized {
			writeProblem(w, r, err)
			return
		}
		http.Redirect(w, r, "/?signin=expired", http.StatusSeeOther)
		return
	}
	http.SetCookie(w, s.cookie(r.Context(), session.Secret, int(s.cfg.SessionLifetime.Seconds())))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// openSession trades a token or an unused sign-in code for a session.
func (s *Server) openSession(ctx context.Context, secret string) (squad.User, squad.CreatedToken, error) {
	i := infoOf(ctx)
	if err := s.signIn.take(i.remote); err != nil {
		s.metrics.signIns.WithLabelValues("limited").Inc()
		return squad.User{}, squad.CreatedToken{}, err
	}
	var u squad.User
	var session squad.CreatedToken
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		t, err := s.spend(ctx, tx, secret)
		if err != nil {
			return err
		}
		if u, err = tx.User(ctx, t.UserID); err != nil {
			return err
		}
		session, err = Mint(ctx, tx, squad.APIToken{
			UserID: t.UserID, Kind: squad.TokenSession, Name: "browser", Scopes: t.Scopes, ExpiresAt: tx.Now.Add(s.cfg.SessionLifetime),
		})
		if err != nil {
			return err
		}
		i.actor = squad.Actor{Kind: squad.TokenSession, UserID: u.ID}
		return s.audit(ctx, tx, "session.open", session.ID, map[string]string{"with": string(t.Kind)})
	})
	if err != nil {
		s.metrics.signIns.WithLabelValues("refused").Inc()
		if squad.CodeOf(err) == squad.CodeNotFound {
			err = squad.Errorf(squad.CodeUnauthorized, "the token or link is not valid, or was used before; `squad signin` prints a new link")
		}
		return u, session, err
	}
	s.metrics.signIns.WithLabelValues("ok").Inc()
	return u, session, nil
}

// spend finds a token that may open a session; a sign-in code is used up by it,
// in the same transaction, so that two requests cannot both succeed.
func (s *Server) spend(ctx context.Context, tx *store.Tx, secret string) (squad.APIToken, error) {
	missing := squad.NotFound("token", "")
	if secret == "" || len(secret) > maxSecret {
		return squad.APIToken{}, missing
	}
	t, err := tx.TokenByHash(ctx, HashSecret(secret))
	if err != nil {
		return t, err
	}
	if expired(t, s.now()) {
		return t, missing
	}
	switch t.Kind {
	case squad.TokenSignIn:
		return t, tx.DeleteAPIToken(ctx, t.ID)
	case squad.TokenUser:
		return t, nil
	default:
		return t, missing
	}
}

func (s *Server) signOut(ctx context.Context, _ *struct{}) (*struct {
	SetCookie string `header:"Set-Cookie"`
}, error,
) {
	a, known := ActorFrom(ctx)
	if known && a.Kind == squad.TokenSession {
		err := s.change(ctx, "session.close", func(tx *store.Tx) (string, error) {
			err := tx.DeleteAPIToken(ctx, a.TokenID)
			if squad.CodeOf(err) == squad.CodeNotFound {
				err = nil
			}
			return a.TokenID, err
		})
		if err != nil {
			return nil, err
		}
	}
	return &struct {
		SetCookie string `header:"Set-Cookie"`
	}{s.cookie(ctx, "", -1).String()}, nil
}

func (s *Server) cookie(ctx context.Context, secret string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: SessionCookie, Value: secret, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: infoOf(ctx).secure,
	}
}

// makeSignInLink makes a link for a user: one's own, or anyone's for
// administrators, who hand it to people that they invite.
func (s *Server) makeSignInLink(ctx context.Context, in *ByID) (*One[squad.SignInLink], error) {
	if !isFull(actorOf(ctx)) {
		return nil, squad.Errorf(squad.CodeForbidden, "a narrowed token may not make sign-in links")
	}
	var link squad.SignInLink
	err := s.change(ctx, "user.sign_in_link", func(tx *store.Tx) (string, error) {
		u, err := s.user(ctx, tx.Query, in.ID)
		if err != nil {
			return "", err
		}
		code, err := SignIn(ctx, tx, u.ID)
		if err != nil {
			return "", err
		}
		link, err = SignInURL(s.base(ctx), code)
		return u.ID, err
	})
	if err != nil {
		return nil, err
	}
	return answer(link), nil
}

// SignInURL is the link that uses a sign-in code.
func SignInURL(base string, code squad.CreatedToken) (squad.SignInLink, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return squad.SignInLink{}, errors.New("the base of sign-in links is no address")
	}
	u.Path = "/signin"
	u.RawQuery = url.Values{"code": {code.Secret}}.Encode()
	return squad.SignInLink{URL: u.String(), ExpiresAt: code.ExpiresAt}, nil
}

// base is the address under which the caller reaches us.
func (s *Server) base(ctx context.Context) string {
	i := infoOf(ctx)
	switch {
	case s.cfg.PublicURL != "":
		return s.cfg.PublicURL
	case i.secure:
		return "https://" + i.host
	default:
		return "http://" + i.host
	}
}
