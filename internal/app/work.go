package app

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"agentsquad"
	"agentsquad/internal/agent"
	"agentsquad/internal/api"
	"agentsquad/internal/flow"
	"agentsquad/internal/gateway"
	"agentsquad/internal/git"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/runner"
	"agentsquad/internal/store"
)

// work is what makes pull requests of tasks.
type work struct {
	gateway *gateway.Gateway
	flows   *flow.Engine
	runner  *runner.Runner
}

// buildGateway makes the only way out of sandboxes.
func (a *App) buildGateway(context.Context) error {
	r := &a.rooms
	r.work.gateway = gateway.New(gateway.Config{
		Store: a.store, Events: a.events, Credentials: r.credentials, ReposDir: a.cfg.ReposDir(), Log: a.log,
		Mirrors: git.NewMirrors(git.MirrorsConfig{Dir: a.folder.path("mirrors"), Runner: r.git, Auth: r.credentials.GitAuth, Log: a.log}),
		Trees:   gateway.TreeConfig{Dir: a.folder.path("trees"), WriteImage: writeTree},
		Egress:  a.cfg.Egress, TemplateEgress: a.cfg.TemplateEgress, Models: a.modelConfig(),
		Tools: gateway.ToolsConfig{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.api.ServeHTTP(w, r) }), Token: a.memberToken},
	})
	r.gateway = r.work.gateway
	r.ports.Gateway, r.ports.Radar = r.work.gateway.Public(), r.work.gateway
	return nil
}

// upstreams are the model APIs that the settings name in place of the providers'.
func (a *App) upstreams() map[string]string {
	return map[string]string{"anthropic": a.cfg.AnthropicBaseURL, "openai": a.cfg.OpenAIBaseURL, "gemini": a.cfg.GeminiBaseURL}
}

// writeTree makes the image of a checkout; inside, it belongs to the user.
func writeTree(ctx context.Context, dir, out string) error {
	const user = 1000
	return gvisor.WriteImage(ctx, dir, out, gvisor.ImageOptions{Owned: true, UID: user, GID: user})
}

// pollForges is how often open pull requests on remote forges are read. Answers that
// did not change cost no rate on GitHub.
const pollForges = time.Minute

// buildRunner makes the queue and the recipe of executions.
func (a *App) buildRunner(context.Context) error {
	r := &a.rooms
	if r.sandboxes == nil {
		return nil // the doctor says why there are none; everything else works
	}
	r.work.flows = flow.New(flow.Config{
		Store: a.store, Owner: a.cfg.Node + "/" + r.owner, Tracer: a.tracer, Log: a.log,
		// How many agents work is judged by the runner; these are the ones that work, and
		// those of others that have a review or a merge to act on meanwhile.
		Concurrency: map[string]int{runner.Queue: a.cfg.MaxRunning + 64},
	})
	r.work.runner = runner.New(runner.Config{
		Store: a.store, Events: a.events, Life: a.life, Flows: r.work.flows, Sandboxes: r.sandboxes, Forges: r.forges, Git: r.git, Log: a.log,
		SignKey: r.credentials.SignKey,
		Gateway: &runner.Outward{
			Gateway: r.work.gateway, Git: r.git, Default: a.cfg.SandboxProvider(), PublicURL: cmp.Or(a.cfg.GatewayURL, a.cfg.PublicURL), Token: a.sandboxToken,
			Narrow: r.credentials.Narrow, Wide: r.credentials.GitAuth, ShareWide: a.cfg.ShareForgeToken, Events: a.events, Log: a.log,
		},
		Drivers: map[squad.AgentKind]agent.Driver{squad.AgentCommand: agent.Shell{}, squad.AgentACP: agent.ACP{}, squad.AgentLLM: a.builtIn()},
		Owner:   a.cfg.Node + "/" + r.owner, Limits: runner.Limits{Running: a.cfg.MaxRunning, Warm: min(max(1, a.cfg.PoolMin), a.cfg.PoolMax)},
	})
	// Webhooks may not reach us: open pull requests are read now and then, by one node.
	r.work.flows.Every("poll forges", pollForges, r.forges.Poll)
	r.ports.Runner, r.ports.Checkouts = r.work.runner, r.work.runner.Checkouts()
	r.ports.Sandboxes = runner.Furnished{Service: r.sandboxes, Runner: r.work.runner}
	return nil
}

// builtIn is the built-in agent. Its model calls take the way of its sandbox: through
// the gateway, which adds the key and keeps the books.
func (a *App) builtIn() agent.LLM {
	return agent.LLM{
		Models: func(t agent.Turn) http.RoundTripper {
			return a.rooms.work.gateway.Transport(t.Execution.SandboxID)
		},
		Send: func(ctx context.Context, t agent.Turn, to, kind, text string) error {
			return a.rooms.work.runner.SendFrom(ctx, t, to, kind, text)
		},
	}
}

// sandboxToken makes the token with which a cloud sandbox reaches the gateway.
func (a *App) sandboxToken(ctx context.Context, sb squad.Sandbox) (string, error) {
	made, err := a.mintFor(ctx, sb, a.cfg.SandboxLifetime)
	return made.Secret, err
}

// memberToken makes the token that the gateway adds to a sandbox's requests for the
// squad's tools. It never leaves this process, and is made anew each hour.
func (a *App) memberToken(ctx context.Context, of squad.Sandbox) (string, time.Time, error) {
	made, err := a.mintFor(ctx, of, time.Hour)
	return made.Secret, made.ExpiresAt, err
}

func (a *App) mintFor(ctx context.Context, sb squad.Sandbox, lifetime time.Duration) (squad.CreatedToken, error) {
	var made squad.CreatedToken
	err := a.store.Tx(ctx, func(tx *store.Tx) (err error) {
		made, err = api.Mint(ctx, tx, squad.APIToken{
			Kind: squad.TokenAgent, Name: "sandbox " + sb.ID, MemberID: sb.AgentID, TaskID: sb.TaskID, SandboxID: sb.ID,
			ExpiresAt: tx.Now.Add(lifetime),
		})
		return err
	})
	return made, err
}

// leaveSandboxes ends those that nobody works in, and says how many go on: they are
// meant to outlive a restart, and surprise whoever meant an end.
func (a *App) leaveSandboxes() {
	if a.rooms.local.runtime == nil || a.rooms.sandboxes == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.StopTimeout/4)
	defer cancel()
	if err := a.rooms.sandboxes.Drain(ctx); err != nil {
		a.log.WarnContext(ctx, "the warm pool was not emptied", "error", err)
	}
	running := 0
	for _, sb := range a.rooms.local.runtime.List() {
		if sb.Info().Status == squad.SandboxRunning {
			running++
		}
	}
	if running > 0 {
		a.log.InfoContext(ctx, "sandboxes go on without the server, and the next start takes them up; `squad sandbox kill --all` ends them", "count", running)
	}
}

// KillLeft ends the sandboxes that a stopped server left, and says how many.
func KillLeft(ctx context.Context, data string) (int, error) {
	f, err := openFolder(data)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.close() }()
	r, err := gvisor.New(gvisor.Config{Dir: f.dir, Envd: gvisor.EmbeddedEnvd(), Sudo: gvisor.EmbeddedEnvd()})
	if err != nil {
		return 0, err
	}
	_, err = r.Recover(ctx)
	errs := []error{err}
	left := r.List()
	for _, sb := range left {
		errs = append(errs, sb.Kill(ctx))
	}
	return len(left), errors.Join(append(errs, r.Close())...)
}

// KillSandboxes ends every sandbox on this machine that belongs to the data folder:
// for a folder that is about to be thrown away.
func (a *App) KillSandboxes(ctx context.Context) error {
	if a.rooms.local.runtime == nil {
		return nil
	}
	var errs []error
	for _, sb := range a.rooms.local.runtime.List() {
		errs = append(errs, sb.Kill(ctx))
	}
	return errors.Join(errs...)
}
