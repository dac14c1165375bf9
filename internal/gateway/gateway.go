package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"sync"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// Credentials opens the server's secrets.
type Credentials interface {
	// GitAuth returns user and password for a repository's remote, empty where
	// none is configured.
	GitAuth(ctx context.Context, repositoryID string) (user, secret string, err error)
	// ModelKey returns the key for a model provider, "" where there is none.
	ModelKey(ctx context.Context, squadID, provider string) (string, error)
}

// Config describes a [Gateway]. Store, Events, Mirrors and Credentials are needed.
type Config struct {
	Store       *store.Store
	Events      *event.Log
	Mirrors     *git.Mirrors
	Credentials Credentials

	// ReposDir holds the bare repositories of the local forge, <id>.git each.
	ReposDir string
	// MaxPushBytes bounds a push where the repository's policy does not; default
	// 100 MiB. MaxBlobBytes bounds one file; default 50 MiB.
	MaxPushBytes int64
	MaxBlobBytes int64
	// MaxTransfers bounds the clones, fetches and pushes at the same time; others
	// wait. Default 32.
	MaxTransfers int

	Trees  TreeConfig
	Models ModelConfig
	Tools  ToolsConfig
	// Egress lists the hosts that sandboxes may reach where their squad does not;
	// default [DefaultEgress].
	Egress []string
	// TemplateEgress adds hosts for sandboxes of a template.
	TemplateEgress map[string][]string
	// RetryPending is how long a push that upstream did not take waits for its next
	// try; default 30 s, doubled up to 10 minutes.
	RetryPending time.Duration

	Log *slog.Logger
	Now func() time.Time // default time.Now
}

// Gateway is the way out of all sandboxes of this server. It is safe for
// concurrent use.
type Gateway struct {
	cfg    Config
	node   string // names this process in leases
	runner *git.Runner
	radar  *git.Radar
	scan   *scanner
	models *models
	trees  *trees
	egress egressBooks
	tokens memberTokens

	look chan struct{} // the radar has something to look at

	followed sync.Map      // repository to when the radar last asked upstream
	slots    chan struct{} // holds one token per transfer

	mu      sync.Mutex
	pending map[string]*pendingPush // by mirror folder and branch
}

// New makes a gateway. It starts nothing.
func New(cfg Config) *Gateway {
	if cfg.MaxPushBytes == 0 {
		cfg.MaxPushBytes = 100 << 20
	}
	if cfg.MaxBlobBytes == 0 {
		cfg.MaxBlobBytes = 50 << 20
	}
	if cfg.MaxTransfers == 0 {
		cfg.MaxTransfers = 32
	}
	if cfg.RetryPending == 0 {
		cfg.RetryPending = 30 * time.Second
	}
	if cfg.Egress == nil {
		cfg.Egress = DefaultEgress
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	g := &Gateway{cfg: cfg, node: squad.NewID(), runner: cfg.Mirrors.Runner(), scan: &scanner{}, pending: map[string]*pendingPush{}, look: make(chan struct{}, 1)}
	g.slots = make(chan struct{}, cfg.MaxTransfers)
	g.radar = git.NewRadar(g.runner)
	g.models = newModels(cfg)
	g.trees = newTrees(cfg.Trees)
	return g
}

// For serves one sandbox, named by our identifier or its provider's. Who may reach
// the handler is that sandbox: the caller vouches for it.
func (g *Gateway) For(sandboxID string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, sandboxID) })
}

// Public serves cloud sandboxes, each with its own token as a bearer or as the
// password of basic authentication (what git sends), or as a model key.
func (g *Gateway) Public() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := g.sandboxToken(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Basic realm="squad"`)
			fail(w, r, err)
			return
		}
		g.serve(w, r, token.SandboxID)
	})
}

func (g *Gateway) sandboxToken(r *http.Request) (squad.APIToken, error) {
	refused := squad.Errorf(squad.CodeUnauthorized, "a token of the sandbox is needed")
	secret := presented(r)
	if secret == "" || len(secret) > 512 {
		return squad.APIToken{}, refused
	}
	sum := sha256.Sum256([]byte(secret))
	token, err := g.cfg.Store.TokenByHash(r.Context(), hex.EncodeToString(sum[:]))
	if squad.CodeOf(err) == squad.CodeNotFound {
		return token, refused
	}
	if err != nil {
		return token, err
	}
	expired := !token.ExpiresAt.IsZero() && token.ExpiresAt.Before(g.cfg.Now())
	if token.Kind != squad.TokenAgent || token.SandboxID == "" || expired {
		return token, refused
	}
	return token, nil
}

// presented finds the secret where git and the SDKs of the model providers put it.
func presented(r *http.Request) string {
	if _, pass, ok := r.BasicAuth(); ok {
		return pass
	}
	const bearer = "Bearer "
	if h := r.Header.Get("Authorization"); len(h) > len(bearer) && h[:len(bearer)] == bearer {
		return h[len(bearer):]
	}
	return cmp.Or(r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"))
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, sandboxID string) {
	c, err := g.caller(r.Context(), sandboxID)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	switch part, rest := cutPath(r.URL.Path); part {
	case "git":
		err = g.serveGit(w, r, c, rest)
	case "llm":
		err = g.serveModel(w, r, c, rest)
	case "mcp":
		err = g.serveTools(w, r, c)
	default:
		err = squad.NotFound("page", r.URL.Path)
	}
	if err != nil {
		g.refuse(w, r, err)
	}
}

// refuse answers with an error; those that are no one's fault but ours are logged.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if squad.CodeOf(err) == squad.CodeInternal && r.Context().Err() == nil {
		g.cfg.Log.ErrorContext(r.Context(), "gateway request failed", "path", r.URL.Path, "error", err)
	}
	fail(w, r, err)
}

// Run does the background work until ctx ends: pushes that wait for upstream, old
// tree images, the radar.
func (g *Gateway) Run(ctx context.Context) error {
	tick := time.NewTicker(max(50*time.Millisecond, min(g.cfg.RetryPending, 15*time.Second)))
	defer tick.Stop()
	defer g.cfg.Mirrors.EndFetches() // no git works in the data folder of a server that has ended
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() { g.maintain(ctx) })
	if err := g.findPending(ctx); err != nil {
		g.cfg.Log.WarnContext(ctx, "pushes that wait were not all found", "error", err)
	}
	for {
		g.retryPending(ctx)
		if err := g.ScanConflicts(ctx); err != nil && ctx.Err() == nil {
			g.cfg.Log.WarnContext(ctx, "scan for conflicts failed", "error", err)
		}
		g.trees.collect(ctx, g.cfg.Log)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-g.look:
		}
	}
}

// maintain packs the mirrors that need it, once an hour.
func (g *Gateway) maintain(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		repos, err := g.cfg.Store.Repositories(ctx, store.RepositoryFilter{})
		if err != nil {
			g.cfg.Log.WarnContext(ctx, "mirrors were not packed", "error", err)
		}
		for _, repo := range repos {
			m, err := g.Mirror(repo)
			if err != nil || !m.Exists() {
				continue
			}
			if _, err := m.Maintain(ctx); err != nil && ctx.Err() == nil {
				g.cfg.Log.WarnContext(ctx, "mirror was not packed", "repository_id", repo.ID, "error", err)
			}
		}
	}
}

// Look has the radar scan soon: something was pushed or merged.
func (g *Gateway) Look() {
	select {
	case g.look <- struct{}{}:
	default:
	}
}
