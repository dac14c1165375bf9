package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// Credentials opens sealed secrets for the server's own rooms. Looking one up
// goes from the narrow to the wide: the repository's own, the squad's, the
// installation's, and last the environment's.
type Credentials struct {
	store *store.Store
	vault *Vault
	env   map[string]string // provider → secret, from the server's configuration

	mu   sync.Mutex
	apps map[string]*appToken // by credential and API
}

type appToken struct {
	sealed    string // the sealed form it was made of: a rotation makes a new one
	transport *ghinstallation.Transport
}

// AppSecret is the secret of a [squad.CredentialGitHubApp], as JSON.
type AppSecret struct {
	AppID          int64  `json:"app_id"`
	InstallationID int64  `json:"installation_id"`
	PrivateKey     string `json:"private_key"` // PEM
}

// NewCredentials returns a door to the sealed secrets. env gives secrets of the
// environment by provider (github, gitea:HOST, anthropic, openai, gemini); it may be nil.
func NewCredentials(s *store.Store, v *Vault, env map[string]string) *Credentials {
	return &Credentials{store: s, vault: v, env: env, apps: map[string]*appToken{}}
}

// GitAuth returns user and password for a repository's remote. Both are empty
// where nothing is configured: the remote is then read without credentials.
func (c *Credentials) GitAuth(ctx context.Context, repositoryID string) (user, secret string, err error) {
	repo, err := c.store.Repository(ctx, repositoryID)
	if err != nil {
		return "", "", err
	}
	if repo.Forge == squad.ForgeLocal {
		return "", "", nil
	}
	token, err := c.Token(ctx, repo)
	if err != nil || token == "" {
		return "", "", err
	}
	return "x-access-token", token, nil
}

// Token returns the token for a repository's forge, "" where there is none.
func (c *Credentials) Token(ctx context.Context, repo squad.Repository) (string, error) {
	cred, ok, err := c.ofForge(ctx, repo)
	if err != nil {
		return "", err
	}
	if !ok {
		return c.ofEnv(repo), nil
	}
	if cred.Kind == squad.CredentialGitHubApp {
		return c.installationToken(ctx, cred, gitHubAPI(repo), nil)
	}
	secret, err := c.open(ctx, cred.ID)
	return string(secret), err
}

// ofForge finds what opens a repository's forge.
func (c *Credentials) ofForge(ctx context.Context, repo squad.Repository) (squad.Credential, bool, error) {
	return c.find(ctx, repo.CredentialID, repo.SquadID, func(cred squad.Credential) bool {
		return is(cred, squad.CredentialToken, squad.CredentialGitHubApp) && serves(cred, repo)
	})
}

// ofEnv is the environment's token for a repository, "" where there is none.
func (c *Credentials) ofEnv(repo squad.Repository) string {
	for provider, secret := range c.env {
		if goesTo(provider, repo) {
			return secret
		}
	}
	return ""
}

// ModelKey returns the key for a model provider, "" where there is none.
func (c *Credentials) ModelKey(ctx context.Context, squadID, provider string) (string, error) {
	cred, ok, err := c.find(ctx, "", squadID, func(cred squad.Credential) bool {
		return is(cred, squad.CredentialModelKey) && (cred.Provider == "" || cred.Provider == provider)
	})
	if err != nil {
		return "", err
	}
	if !ok {
		return c.env[provider], nil
	}
	secret, err := c.open(ctx, cred.ID)
	return string(secret), err
}

// SignKey returns the SSH key that signs a squad's commits, nil where there is none.
func (c *Credentials) SignKey(ctx context.Context, squadID string) ([]byte, error) {
	cred, ok, err := c.find(ctx, "", squadID, func(cred squad.Credential) bool { return is(cred, squad.CredentialSSHSign) && cred.Provider == "" })
	if err != nil || !ok {
		return nil, err
	}
	return c.open(ctx, cred.ID)
}

// WebhookSecret returns the shared secret for a repository's webhooks.
func (c *Credentials) WebhookSecret(ctx context.Context, repo squad.Repository) (string, error) {
	cred, ok, err := c.find(ctx, "", repo.SquadID, func(cred squad.Credential) bool {
		kind, _, _ := strings.Cut(cred.Provider, ":")
		return is(cred, squad.CredentialWebhook) && (kind == "" || kind == string(repo.Forge))
	})
	if err != nil || !ok {
		return c.env["webhook"], err
	}
	secret, err := c.open(ctx, cred.ID)
	return string(secret), err
}

// find returns the named credential, else the first of the squad, else the
// first of the installation, that fits.
func (c *Credentials) find(ctx context.Context, id, squadID string, fits func(squad.Credential) bool) (squad.Credential, bool, error) {
	if id != "" {
		cred, err := c.store.Credential(ctx, id)
		if err == nil && !fits(cred) {
			err = squad.Errorf(squad.CodeInvalid, "the credential %q, a %s for %q, cannot be used here: see docs/forges.md", cred.Name, cred.Kind, cred.Provider)
		}
		return cred, err == nil, err
	}
	all, err := c.store.Credentials(ctx, store.CredentialFilter{})
	if err != nil {
		return squad.Credential{}, false, err
	}
	var wide *squad.Credential
	for i, cred := range all {
		if !fits(cred) {
			continue
		}
		if cred.SquadID == squadID && squadID != "" {
			return cred, true, nil
		}
		if cred.SquadID == "" && wide == nil {
			wide = &all[i]
		}
	}
	if wide == nil {
		return squad.Credential{}, false, nil
	}
	return *wide, true, nil
}

func is(cred squad.Credential, kinds ...squad.CredentialKind) bool {
	return slices.Contains(kinds, cred.Kind)
}

// serves says whether a credential is for a repository. A squad's own goes wherever
// its admins send it. One of the whole installation goes to its own place only: who
// may name the address of a repository must not be able to have it sent to him.
func serves(cred squad.Credential, repo squad.Repository) bool {
	kind, _, bound := strings.Cut(cred.Provider, ":")
	if cred.SquadID != "" && !bound {
		return kind == "" || kind == string(repo.Forge)
	}
	return goesTo(orElse(cred.Provider, string(repo.Forge)), repo)
}

// goesTo says whether all that a repository's secret is sent to is the place that a
// provider names: "github" is github.com, "gitea:git.example.com" is that server.
func goesTo(provider string, repo squad.Repository) bool {
	kind, host, bound := strings.Cut(provider, ":")
	if kind != string(repo.Forge) || !bound && repo.Forge != squad.ForgeGitHub {
		return false
	}
	if !bound {
		host = "github.com"
	}
	for _, address := range []string{repo.URL, repo.APIURL} {
		if u, err := url.Parse(address); err != nil || u.Host != "" && strings.TrimPrefix(strings.ToLower(u.Host), "api.") != host {
			return false
		}
	}
	return true
}

func (c *Credentials) open(ctx context.Context, id string) ([]byte, error) {
	sealed, err := c.store.SealedCredential(ctx, id)
	if err != nil {
		return nil, err
	}
	secret, err := c.vault.Open(id, sealed)
	if err != nil {
		return nil, fmt.Errorf("open credential: %w", err)
	}
	return secret, nil
}

// Reseal seals every credential with the newest key, so that older keys may be
// taken out of the key file. It returns how many it changed.
func (c *Credentials) Reseal(ctx context.Context) (int, error) {
	all, err := c.store.Credentials(ctx, store.CredentialFilter{})
	if err != nil {
		return 0, err
	}
	changed := 0
	for _, cred := range all {
		err := c.store.Tx(ctx, func(tx *store.Tx) error {
			sealed, err := tx.SealedCredential(ctx, cred.ID)
			if err != nil || c.vault.Current(sealed) {
				return err
			}
			secret, err := c.vault.Open(cred.ID, sealed)
			if err != nil {
				return err
			}
			fresh, err := c.vault.Seal(cred.ID, secret)
			if err != nil {
				return err
			}
			changed++
			return tx.SetSealedCredential(ctx, cred.ID, fresh)
		})
		if err != nil {
			return changed, fmt.Errorf("seal credential %s again: %w", cred.ID, err)
		}
	}
	return changed, nil
}

// installationToken mints (or takes from the cache) a GitHub App's short-lived
// token. The transport keeps it and renews it before it ends. api is the address of
// the API, "" for github.com's; only narrows the token, where given.
func (c *Credentials) installationToken(ctx context.Context, cred squad.Credential, api string, only *github.InstallationTokenOptions) (string, error) {
	sealed, err := c.store.SealedCredential(ctx, cred.ID)
	if err != nil {
		return "", err
	}
	key := cred.ID + " " + api
	if only != nil {
		key += " " + strings.Join(only.Repositories, " ")
	}
	c.mu.Lock()
	app := c.apps[key]
	c.mu.Unlock()
	if app == nil || app.sealed != string(sealed) {
		if app, err = c.openApp(cred.ID, sealed, api); err != nil {
			return "", err
		}
		app.transport.InstallationTokenOptions = only
		c.mu.Lock()
		c.apps[key] = app
		c.mu.Unlock()
	}
	token, err := app.transport.Token(ctx)
	if err == nil {
		return token, nil
	}
	code := squad.CodeProvider
	var answer *ghinstallation.HTTPError
	if errors.As(err, &answer) && answer.Response != nil {
		answer.Response.Body.Close()
		code = codeOfStatus(answer.Response.StatusCode, "")
	}
	return "", squad.Wrap(code, err, "GitHub did not give the app %q a token: check app id, installation and key", cred.Name)
}

func (c *Credentials) openApp(id string, sealed []byte, api string) (*appToken, error) {
	secret, err := c.vault.Open(id, sealed)
	if err != nil {
		return nil, err
	}
	var app AppSecret
	if err := json.Unmarshal(secret, &app); err != nil || app.AppID == 0 || app.InstallationID == 0 {
		return nil, squad.Errorf(squad.CodeInvalid, `a GitHub App credential is JSON with "app_id", "installation_id" and "private_key" (PEM)`)
	}
	transport, err := ghinstallation.New(http.DefaultTransport, app.AppID, app.InstallationID, []byte(app.PrivateKey))
	if err != nil {
		return nil, squad.Errorf(squad.CodeInvalid, "the private key of the GitHub App is not a PEM key")
	}
	transport.Client = &http.Client{Timeout: 60 * time.Second}
	if api != "" {
		transport.BaseURL = api
	}
	return &appToken{sealed: string(sealed), transport: transport}, nil
}
