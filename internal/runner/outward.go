package runner

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/gateway"
	"agentsquad/internal/git"
	"agentsquad/internal/sandbox"
)

// internalURL is where local sandboxes find the gateway.
const internalURL = "http://squad.internal"

// Outward is the gateway as the runner sees it.
type Outward struct {
	Gateway *gateway.Gateway
	Git     *git.Runner
	// Default is the provider of squads that name none.
	Default string
	// PublicURL is our address as cloud sandboxes reach it.
	PublicURL string
	// Token makes the token with which a cloud sandbox reaches the gateway. It
	// opens one sandbox's task and nothing else.
	Token func(ctx context.Context, sb squad.Sandbox) (string, error)
	// Narrow is a credential that reads one repository, for cloud sandboxes that
	// cannot reach us; Wide is the repository's own, asked only where ShareWide is
	// set.
	Narrow    func(ctx context.Context, repo squad.Repository) (user, secret string, err error)
	Wide      func(ctx context.Context, repositoryID string) (user, secret string, err error)
	ShareWide bool
	Events    *event.Log
	Log       *slog.Logger

	mu     sync.Mutex
	tokens map[string]string // by sandbox: the secret is in memory only
	warned map[string]bool   // sandboxes that were given a credential of the forge
}

// Prepare implements [Gateway].
func (o *Outward) Prepare(ctx context.Context, provider string, repo squad.Repository, branch string) (Tree, error) {
	if orElse(provider, o.Default) != "local" {
		return Tree{}, nil
	}
	tree, err := o.Gateway.PrepareTree(ctx, repo.ID, branch)
	if squad.CodeOf(err) == squad.CodeUnavailable || err == nil && tree.Image == "" {
		return Tree{}, nil // an empty repository, or no images here: it is cloned
	}
	if err != nil {
		return Tree{}, err
	}
	return Tree{Commit: tree.Commit, Key: repo.ID + "@" + tree.Commit, Mounts: []sandbox.Mount{
		{Image: tree.Image, Path: tree.Path}, {Dir: tree.Objects, Path: tree.ObjectsPath, ReadOnly: true},
	}}, nil
}

// Look implements [Gateway].
func (o *Outward) Look() { o.Gateway.Look() }

// Remote implements [Gateway].
func (o *Outward) Remote(ctx context.Context, sb squad.Sandbox, repo squad.Repository) (string, git.Auth, error) {
	if sb.Provider != "local" && o.PublicURL == "" {
		return o.direct(ctx, sb, repo)
	}
	base, secret, err := o.reach(ctx, sb)
	if err != nil {
		return "", git.Auth{}, err
	}
	auth := git.Auth{}
	if secret != "" {
		auth = git.Auth{URL: base + "/", User: "squad", Secret: secret}
	}
	return base + "/git/" + repo.ID + ".git", auth, nil
}

// Via implements [Gateway].
func (o *Outward) Via(sb squad.Sandbox, repo squad.Repository) *git.Via {
	return &git.Via{Transport: o.Gateway.Transport(sb.ID), URL: internalURL + "/git/" + repo.ID + ".git"}
}

// reach is the gateway's address from inside a sandbox, with the token where one
// is needed.
func (o *Outward) reach(ctx context.Context, sb squad.Sandbox) (base, secret string, err error) {
	if sb.Provider == "local" {
		return internalURL, "", nil
	}
	if o.PublicURL == "" {
		return "", "", squad.Errorf(squad.CodeRule, "a cloud sandbox cannot reach this server: set SQUAD_PUBLIC_URL to an address that it can")
	}
	o.mu.Lock()
	secret = o.tokens[sb.ID]
	o.mu.Unlock()
	if secret == "" {
		if secret, err = o.Token(ctx, sb); err != nil {
			return "", "", err
		}
		o.mu.Lock()
		if o.tokens == nil {
			o.tokens = map[string]string{}
		}
		o.tokens[sb.ID] = secret
		o.mu.Unlock()
	}
	return strings.TrimRight(o.PublicURL, "/"), secret, nil
}

// Head implements [Gateway].
func (o *Outward) Head(ctx context.Context, repo squad.Repository, branch string) (string, error) {
	m, err := o.Gateway.Mirror(repo)
	if err != nil {
		return "", err
	}
	if err := m.Fetch(ctx, nil); err != nil {
		return "", git.Explain(err, "fetch "+repo.Name)
	}
	sha, err := o.Git.Resolve(ctx, m.Dir(), "refs/heads/"+branch)
	if git.KindOf(err) == git.KindNotFound {
		return "", nil
	}
	return sha, err
}

// Stored implements [Gateway].
func (o *Outward) Stored(ctx context.Context, repo squad.Repository, ref string) (string, error) {
	m, err := o.Gateway.Mirror(repo)
	if err != nil || !m.Exists() {
		return "", err
	}
	sha, err := o.Git.Resolve(ctx, m.Dir(), ref)
	if git.KindOf(err) == git.KindNotFound {
		return "", nil
	}
	return sha, err
}

// Dir implements [Gateway].
func (o *Outward) Dir(_ context.Context, repo squad.Repository) (string, error) {
	m, err := o.Gateway.Mirror(repo)
	if err != nil {
		return "", err
	}
	return m.Dir(), nil
}

// AgentEnv implements [Gateway]. Programs want some key before they start; the one
// given opens nothing: the gateway knows the caller by its tunnel or its token and
// puts the real key in its place.
func (o *Outward) AgentEnv(ctx context.Context, sb squad.Sandbox, _ squad.Member) (map[string]string, error) {
	if sb.Provider != "local" && o.PublicURL == "" {
		return nil, nil // it has no way to the gateway; models of the built-in agent need none
	}
	base, secret, err := o.reach(ctx, sb)
	if err != nil {
		return nil, err
	}
	key := orElse(secret, "provided-by-the-gateway")
	env := map[string]string{
		"ANTHROPIC_BASE_URL": base + "/llm/anthropic", "ANTHROPIC_API_KEY": key,
		"OPENAI_BASE_URL": base + "/llm/openai/v1", "OPENAI_API_KEY": key,
		"GOOGLE_GEMINI_BASE_URL": base + "/llm/gemini", "GEMINI_API_KEY": key,
		"SQUAD_GATEWAY": base,
	}
	if secret != "" {
		env["SQUAD_GATEWAY_TOKEN"] = secret
	}
	return env, nil
}
