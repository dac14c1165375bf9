package app

import (
	"cmp"
	"context"
	"net/http"

	"agentsquad"
	"agentsquad/internal/api"
	"agentsquad/internal/forge"
	"agentsquad/internal/git"
	"agentsquad/internal/sandbox"
)

// rooms are the domain rooms behind the API.
type rooms struct {
	owner       string // names this process in leases
	nodes       *nodes // nil where the database is this server's alone
	ports       api.Ports
	vault       *forge.Vault
	credentials *forge.Credentials
	forges      *forge.Service
	git         *git.Runner
	local       localHost
	sandboxes   *sandbox.Service
	gateway     gatewayRoom
	away        http.Handler // the gateway of installations that rent sandboxes here; may be nil
	work        work
}

// gatewayRoom is what the runtime needs of the gateway.
type gatewayRoom interface {
	For(sandboxID string) http.Handler
	Allow(sandboxID, host string, port int) (bool, string)
}

// buildRooms makes every room; nothing runs yet.
func (a *App) buildRooms(ctx context.Context) error {
	a.rooms.owner = squad.NewID()
	for _, build := range []func(context.Context) error{a.buildForges, a.buildWebhooks, a.buildGateway, a.buildLocal, a.buildSandboxes, a.buildRunner, a.buildMCP, a.tellNode} {
		if err := build(ctx); err != nil {
			return err
		}
	}
	return nil
}

// buildForges makes the vault, the git program and the door to all forges.
func (a *App) buildForges(ctx context.Context) error {
	r := &a.rooms
	var err error
	if r.vault, err = forge.OpenVault(a.folder.path("key")); err != nil {
		return err
	}
	if err := a.checkShared(ctx); err != nil {
		return err
	}
	env := map[string]string{}
	for provider, secret := range map[string]string{
		"github": a.cfg.GitHubToken, "anthropic": a.cfg.AnthropicAPIKey, "openai": a.cfg.OpenAIAPIKey, "gemini": a.cfg.GeminiAPIKey,
	} {
		if secret != "" {
			env[provider] = secret
		}
	}
	r.credentials = forge.NewCredentials(a.store, r.vault, env)
	if n, err := r.credentials.Reseal(ctx); n > 0 || err != nil {
		a.log.WarnContext(ctx, "credentials were sealed anew with the first key of the key file", "credentials", n, "error", err)
	}
	r.git = git.New(git.Config{AllowFile: true, Log: a.log})
	r.forges = forge.NewService(forge.Config{
		Store: a.store, Credentials: r.credentials, Git: r.git, Dir: a.cfg.ReposDir(), PublicURL: cmp.Or(a.cfg.PublicURL, a.url), Log: a.log,
	})
	r.ports.Sealer, r.ports.Forges = r.vault, r.forges
	return nil
}

// startRooms starts the endless work, once requests are answered.
func (a *App) startRooms(ctx context.Context) error {
	r := &a.rooms
	a.run("housekeeping", a.housekeep)
	if r.local.server != nil {
		a.run("local sandboxes", r.local.server.Run)
		if err := a.ready(ctx); err != nil {
			a.log.WarnContext(ctx, "local sandboxes are still being taken up", "error", err)
		}
	}
	if r.sandboxes != nil {
		a.run("sandbox service", r.sandboxes.Run)
	}
	a.run("gateway", r.work.gateway.Run)
	if r.work.runner != nil {
		a.run("flows", r.work.flows.Run)
		a.run("runner", r.work.runner.Work)
	}
	letGo(ctx, a.log)
	return a.startPprof(ctx)
}

// ready waits until what ran before this start can be used again.
func (a *App) ready(ctx context.Context) error {
	if s := a.rooms.local.server; s != nil {
		return s.AwaitReady(ctx)
	}
	return nil
}

// onLost is told of sandboxes that were found dead.
func (a *App) onLost(ctx context.Context, s squad.Sandbox) {
	a.log.WarnContext(ctx, "sandbox lost", "sandbox_id", s.ID, "task_id", s.TaskID)
	if r := a.rooms.work.runner; r != nil {
		r.SandboxLost(s)
	}
}
