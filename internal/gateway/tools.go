package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	squad "agentsquad"
)

// ToolsConfig says how agents reach the squad's tools at http://squad.internal/mcp.
type ToolsConfig struct {
	// Handler serves /mcp for whoever the bearer token of the request says.
	Handler http.Handler
	// Token makes a token of the member for the work it does in a sandbox, and says
	// until when it is good. The token stays in this process: it is added to
	// requests on their way and never handed to the sandbox.
	Token func(ctx context.Context, of squad.Sandbox) (secret string, until time.Time, err error)
}

// memberTokens keeps the tokens that were made, by what they were made for.
type memberTokens struct {
	mu   sync.Mutex
	made map[string]memberToken
}

type memberToken struct {
	secret string
	until  time.Time
}

// toolHeaders are the request headers that reach the tools. What the sandbox sends
// as a credential or as a route is not one.
var toolHeaders = []string{"Accept", "Content-Type", "User-Agent", "Last-Event-Id", "Mcp-Session-Id", "Mcp-Protocol-Version"}

const maxToolBody = 8 << 20

// serveTools passes a request for /mcp on with the token of the member that works
// in the sandbox.
func (g *Gateway) serveTools(w http.ResponseWriter, r *http.Request, c *caller) error {
	if g.cfg.Tools.Handler == nil || g.cfg.Tools.Token == nil {
		return squad.Errorf(squad.CodeUnavailable, "this server has no tools for agents")
	}
	if strings.TrimRight(r.URL.Path, "/") != "/mcp" {
		return squad.NotFound("page", r.URL.Path)
	}
	if err := c.working(); err != nil {
		return err
	}
	if c.member.ID == "" {
		return squad.Errorf(squad.CodeForbidden, "this sandbox works for no member")
	}
	secret, err := g.memberToken(r.Context(), c)
	if err != nil {
		return err
	}
	in := r.Clone(r.Context())
	in.Host, in.RequestURI, in.RemoteAddr = internalHost, "/mcp", "127.0.0.1:0"
	in.URL.Scheme, in.URL.Host, in.URL.Path, in.URL.RawPath, in.URL.RawQuery, in.URL.User = "", "", "/mcp", "", "", nil
	in.Header = http.Header{}
	for _, name := range toolHeaders {
		if v := r.Header.Values(name); len(v) > 0 {
			in.Header[name] = v
		}
	}
	in.Header.Set("Authorization", "Bearer "+secret)
	in.Body = http.MaxBytesReader(w, r.Body, maxToolBody)
	g.cfg.Tools.Handler.ServeHTTP(w, in)
	return nil
}

const internalHost = "squad.internal"

// memberToken makes a token for the caller's work, or finds one that is good for a
// while yet.
func (g *Gateway) memberToken(ctx context.Context, c *caller) (string, error) {
	of := squad.Sandbox{ID: c.sandbox.ID, SquadID: c.squad.ID, AgentID: c.member.ID, TaskID: c.task.ID, ExecutionID: c.execution.ID}
	key := of.ID + " " + of.AgentID + " " + of.TaskID + " " + of.ExecutionID
	now := g.cfg.Now()
	g.tokens.mu.Lock()
	have, ok := g.tokens.made[key]
	g.tokens.mu.Unlock()
	if ok && now.Add(time.Minute).Before(have.until) {
		return have.secret, nil
	}
	secret, until, err := g.cfg.Tools.Token(ctx, of)
	if err != nil {
		return "", err
	}
	g.tokens.mu.Lock()
	defer g.tokens.mu.Unlock()
	if g.tokens.made == nil {
		g.tokens.made = map[string]memberToken{}
	}
	for old, t := range g.tokens.made {
		if !now.Before(t.until) {
			delete(g.tokens.made, old)
		}
	}
	g.tokens.made[key] = memberToken{secret: secret, until: until}
	return secret, nil
}
