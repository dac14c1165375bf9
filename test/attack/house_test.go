// Package attack is an attacker inside a real sandbox of the built server: an agent
// that was fooled into pushing what it may not, reading what it should not see and
// asking the gateway for what is not its own. Each thing it tries is a test of its
// own, and all of them must be refused.
package attack

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/internal/git/gittest"
	built "agentsquad/test/house"
)

// house is a server with everything an attacker would like to have.
type house struct {
	*built.Server
	t *testing.T

	upstream *gittest.Server
	bare     string // upstream's repository on disk
	model    *provider

	crew, rivals      squad.Squad
	shop, tools, safe squad.Repository // the task's own, its squad's other, another squad's
	task              squad.Task
	sandbox           squad.Sandbox
	canaries          map[string]string // what must never be seen inside, by what it is
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%v\n%s", err, h.Log.String())
	}
}

// canary makes a secret of this run and remembers it.
func (h *house) canary(what, prefix string) string {
	b := make([]byte, 24)
	rand.Read(b)
	h.canaries[what] = prefix + hex.EncodeToString(b)
	return h.canaries[what]
}

// leaks fails the test where a text holds a secret.
func (h *house) leaks(t *testing.T, where, text string) {
	t.Helper()
	for what, secret := range h.canaries {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows the %s", where, what)
		}
	}
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, canaries: map[string]string{}}
	root := t.TempDir()
	h.bare = gittest.Bare(t, root, "shop.git", "main")
	h.upstream = gittest.Serve(t, root, h.canary("credential of the repository in the vault", "gta_"))
	h.model = newProvider(t)
	h.start()
	h.seed()
	h.work()
	return h
}

func (h *house) start() {
	h.t.Helper()
	h.Server = built.New(h.t, []string{"--pool-max", "0", "--template-egress", "base=template.invalid"}, []string{
		"ANTHROPIC_API_KEY=" + h.canary("key of Anthropic", "sk-ant-"), "ANTHROPIC_BASE_URL=" + h.model.url,
		"OPENAI_API_KEY=" + h.canary("key of OpenAI", "sk-"), "OPENAI_BASE_URL=" + h.model.url,
		"GEMINI_API_KEY=" + h.canary("key of Gemini", "AIza"), "GOOGLE_GEMINI_BASE_URL=" + h.model.url,
		"GITHUB_TOKEN=" + h.canary("token of GitHub", "ghx_"),
	})
	h.Start()
	for what, file := range map[string]string{"administrator's token": "admin.token", "key of the vault": "key"} {
		text, err := os.ReadFile(filepath.Join(h.Data, file))
		h.must(err)
		h.canaries[what] = strings.TrimSpace(string(text))
	}
}

// seed makes two squads: the attacker's, and one it knows nothing of.
func (h *house) seed() {
	h.t.Helper()
	ctx, source := h.t.Context(), h.t.TempDir()
	gittest.Git(h.t, source, "init", "-q", "-b", "main")
	gittest.Commit(h.t, source, "README.md", "hello\n", "docs: begin")
	var err error
	h.crew, err = h.CreateSquad(ctx, squad.NewSquad{Name: "Crew", Config: squad.SquadConfig{Egress: []string{"squads.invalid", "*.below.invalid"}}})
	h.must(err)
	h.rivals, err = h.CreateSquad(ctx, squad.NewSquad{Name: "Rivals"})
	h.must(err)
	cred, err := h.CreateCredential(ctx, squad.NewCredential{
		SquadID: h.crew.ID, Name: "forge", Kind: squad.CredentialToken, Provider: "gitea", Secret: h.upstream.Token,
	})
	h.must(err)
	h.shop, err = h.CreateRepository(ctx, squad.NewRepository{
		SquadID: h.crew.ID, Name: "acme/shop", Forge: squad.ForgeGitea, URL: h.upstream.URL + "/shop.git", DefaultBranch: "main", CredentialID: cred.ID, APIURL: forgeAPI(h.t),
		Policy: squad.RepositoryPolicy{MaxPushBytes: 20 << 20},
	})
	h.must(err)
	h.tools, err = h.CreateRepository(ctx, squad.NewRepository{SquadID: h.crew.ID, Name: "tools", ImportPath: source})
	h.must(err)
	h.safe, err = h.CreateRepository(ctx, squad.NewRepository{SquadID: h.rivals.ID, Name: "safe", ImportPath: source})
	h.must(err)
}

// forgeAPI answers the one question that is asked when a repository is added.
func forgeAPI(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"default_branch":"main","permissions":{"admin":true,"push":true,"pull":true}}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// work starts the attacker's task and waits until its agent runs.
func (h *house) work() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*time.Minute)
	defer cancel()
	member, err := h.CreateMember(ctx, squad.NewMember{SquadID: h.crew.ID, Name: "Mallory", Role: "developer", Config: squad.MemberConfig{
		Agent: squad.AgentCommand, Command: "echo at work; until [ -e /tmp/over ]; do sleep 1; done",
	}})
	h.must(err)
	after, err := h.LastSeq(ctx)
	h.must(err)
	h.task, err = h.CreateTask(ctx, squad.NewTask{SquadID: h.crew.ID, RepositoryID: h.shop.ID, AssigneeID: member.ID, Title: "Sell things", Run: true})
	h.must(err)
	for e, err := range h.Events(ctx, client.EventQuery{After: &after}) {
		h.must(err)
		if e.TaskID == h.task.ID && e.Type == squad.EventTaskUpdated && bytes.Contains(e.Payload, []byte(`"flag"`)) {
			h.t.Fatalf("the task failed: %s\n%s", e.Payload, h.Log.String())
		}
		if e.Type == squad.EventLog && bytes.Contains(e.Payload, []byte("at work")) {
			h.sandbox, err = h.Sandbox(ctx, e.SandboxID)
			h.must(err)
			return
		}
	}
	h.t.Fatalf("the agent did not begin\n%s", h.Log.String())
}

// inside runs a script in the attacker's sandbox. What it prints is checked for
// secrets, whatever the script was for.
func (h *house) inside(t *testing.T, user, script string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	res, err := h.Execute(ctx, h.sandbox.ID, squad.Command{Shell: script, User: user, Dir: "/home/user", TimeoutSec: 230, Env: map[string]string{
		"GIT_AUTHOR_NAME": "Mallory", "GIT_AUTHOR_EMAIL": "m@example.com", "GIT_COMMITTER_NAME": "Mallory", "GIT_COMMITTER_EMAIL": "m@example.com",
		"SHOP": h.shop.ID, "TOOLS": h.tools.ID, "SAFE": h.safe.ID, "BRANCH": h.branch(), "LC_ALL": "C.UTF-8",
	}})
	if err != nil {
		t.Fatalf("run inside: %v", err)
	}
	if res.Error != "" {
		t.Fatalf("run inside: %s\n%s%s", res.Error, res.Stdout, res.Stderr)
	}
	out := res.Stdout + res.Stderr
	h.leaks(t, "the output", out)
	return out, res.ExitCode
}

func (h *house) branch() string { return fmt.Sprintf("task-%d", h.task.Number) }

// provider is a model's API that would tell everything it was told.
type provider struct {
	url  string
	mu   sync.Mutex
	seen []http.Header
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, r.Header.Clone())
		p.mu.Unlock()
		p.answer(w, r)
	}))
	p.url = srv.URL
	t.Cleanup(srv.Close)
	return p
}
