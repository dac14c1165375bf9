// Package cloud runs executions in real sandboxes that are a cloud's for the server:
// spoken to by the E2B protocol alone, without mounts and without a way back to the
// gateway. What they may read is a narrowed token's.
package cloud

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/agent"
	"agentsquad/internal/e2bserver"
	"agentsquad/internal/envd"
	"agentsquad/internal/event"
	"agentsquad/internal/flow"
	"agentsquad/internal/forge"
	"agentsquad/internal/gateway"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/gvisor/gvisortest"
	"agentsquad/internal/runner"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
	"agentsquad/internal/task"
	"agentsquad/internal/tunnel"
)

func TestMain(m *testing.M) {
	gvisor.Dispatch()
	if filepath.Base(os.Args[0]) == "envd" {
		os.Exit(envd.Main(os.Args[1:]))
	}
	gvisortest.Static()
	os.Exit(m.Run())
}

const (
	apiKey    = "e2b_0123456789abcdef0123456789abcdef01234567"
	narrow    = "ghs_narrowedtokenthatreadsonerepository0123"
	forgeHost = "forge.example"
)

// house is a server whose sandboxes are elsewhere.
type house struct {
	t        *testing.T
	share    bool // a wide token may be handed out
	data     string
	log      *slog.Logger
	store    *store.Store
	events   *event.Log
	life     *task.Life
	vault    *forge.Vault
	runner   *runner.Runner
	upstream *gittest.Server
	asked    struct {
		sync.Mutex
		bodies []string
	}
	api   string // GitHub's
	squad squad.Squad
	repo  squad.Repository
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func newHouse(t *testing.T, shareToken bool) *house {
	t.Helper()
	h := &house{t: t, share: shareToken, data: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	h.store, err = store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(h.data, "squad.db")})
	h.must(err)
	h.events, h.life = event.NewLog(h.store, h.log), task.New(h.store)
	root := t.TempDir()
	gittest.Bare(t, root, "acme/shop.git", "main")
	h.upstream = gittest.Serve(t, root, narrow)
	h.api = h.gitHub()
	runtime, server := h.cloud()
	web := httptest.NewServer(server)
	client, err := e2b.New(e2b.Config{APIKey: apiKey, APIURL: web.URL, SandboxURL: web.URL, Domain: "localhost"})
	h.must(err)
	boxes, err := sandbox.New(ctx, sandbox.Config{Store: h.store, Default: "e2b", Log: h.log, Providers: map[string]sandbox.Provider{"e2b": {Client: client}}})
	h.must(err)
	h.vault, err = forge.OpenVault(filepath.Join(h.data, "key"))
	h.must(err)
	flows := flow.New(flow.Config{Store: h.store, Log: h.log})
	gate := h.build(boxes, flows)
	done := make(chan struct{}, 5)
	for _, work := range []func(context.Context) error{server.Run, boxes.Run, flows.Run, gate.Run, h.runner.Work} {
		go func() { _ = work(ctx); done <- struct{}{} }()
	}
	t.Cleanup(func() {
		cancel()
		for range cap(done) {
			<-done
		}
		for _, sb := range runtime.List() {
			_ = sb.Kill(context.Background())
		}
		web.Close()
		runtime.Close()
		h.events.Close()
		h.store.Close()
	})
	return h
}

// build makes the rooms of a server without a public address.
func (h *house) build(boxes *sandbox.Service, flows *flow.Engine) *gateway.Gateway {
	hostGit := git.New(git.Config{AllowFile: true, Log: h.log})
	credentials := forge.NewCredentials(h.store, h.vault, nil)
	forges := forge.NewService(forge.Config{Store: h.store, Credentials: credentials, Git: hostGit, Dir: filepath.Join(h.data, "repos"), Log: h.log})
	// The server reaches the forge under its real address, the sandbox under a name.
	mirrors := git.NewMirrors(git.MirrorsConfig{Dir: filepath.Join(h.data, "mirrors"), Log: h.log, Auth: credentials.GitAuth, Runner: git.New(git.Config{
		AllowFile: true, Log: h.log, Exec: redirected{to: h.upstream.URL},
	})})
	gate := gateway.New(gateway.Config{Store: h.store, Events: h.events, Credentials: credentials, ReposDir: filepath.Join(h.data, "repos"), Mirrors: mirrors, Log: h.log})
	h.runner = runner.New(runner.Config{
		Store: h.store, Events: h.events, Life: h.life, Flows: flows, Sandboxes: boxes, Forges: forges, Git: hostGit, Log: h.log,
		Gateway: &runner.Outward{Gateway: gate, Git: hostGit, Default: "e2b", Narrow: credentials.Narrow, Wide: credentials.GitAuth, ShareWide: h.share, Events: h.events, Log: h.log},
		Drivers: map[squad.AgentKind]agent.Driver{squad.AgentCommand: agent.Shell{}},
	})
	return gate
}

// redirected is git on this machine, for which the forge's name leads to the test's.
type redirected struct{ to string }

func (x redirected) Run(ctx context.Context, c git.Command) (int, error) {
	c.Argv = append([]string{c.Argv[0], "-c", "url." + x.to + "/.insteadOf=http://" + forgeHost + "/"}, c.Argv[1:]...)
	for i, e := range c.Env { // the credential is for the name
		c.Env[i] = strings.Replace(e, "http.http://"+forgeHost+"/", "http."+x.to+"/", 1)
	}
	return git.Host{}.Run(ctx, c)
}

// cloud is a runtime that knows nothing of the squad, with a network on which the
// forge has a public address.
func (h *house) cloud() (*gvisor.Runtime, *e2bserver.Server) {
	h.t.Helper()
	var server *e2bserver.Server
	dir := h.t.TempDir()
	runtime, err := gvisor.New(gvisor.Config{Dir: dir, Log: h.log, Accept: func(id string, hd tunnel.Header, c net.Conn) { server.Accept(id, hd, c) }})
	h.must(err)
	server, err = e2bserver.New(e2bserver.Config{
		Runtime: runtime, Dir: filepath.Join(dir, "e2b"), Domain: "localhost", Log: h.log,
		Keys: func(_ context.Context, key string) (string, bool) { return "somebody", key == apiKey },
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(h.upstream.URL, "http://"))
		},
	})
	h.must(err)
	return runtime, server
}

// gitHub gives an app its tokens: a narrowed one only to who asks for it.
func (h *house) gitHub() string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body)
		h.asked.Lock()
		h.asked.bodies = append(h.asked.bodies, string(body))
		h.asked.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/access_tokens") {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token":%q,"expires_at":%q}`, narrow, time.Now().Add(time.Hour).Format(time.RFC3339))
	}))
	h.t.Cleanup(srv.Close)
	return srv.URL
}

// populate makes a squad whose repository has this credential.
func (h *house) populate(kind squad.CredentialKind, secret string) {
	h.t.Helper()
	ctx := h.t.Context()
	h.squad = squad.Squad{Name: "Crew", Status: squad.SquadActive}
	h.must(h.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.CreateSquad(ctx, &h.squad); err != nil {
			return err
		}
		cred := squad.Credential{SquadID: h.squad.ID, Name: "forge", Kind: kind, Provider: "github"}
		if err := tx.CreateCredential(ctx, &cred); err != nil {
			return err
		}
		sealed, err := h.vault.Seal(cred.ID, []byte(secret))
		if err != nil {
			return err
		}
		if err := tx.SetSealedCredential(ctx, cred.ID, sealed); err != nil {
			return err
		}
		h.repo = squad.Repository{
			SquadID: h.squad.ID, Name: "acme/shop", Forge: squad.ForgeGitHub, URL: "http://" + forgeHost + "/acme/shop.git", APIURL: h.api + "/api/v3",
			DefaultBranch: "main", CredentialID: cred.ID,
		}
		return tx.CreateRepository(ctx, &h.repo)
	}))
}

// run has a member do a task and waits for a word in its events.
func (h *house) run(command string, until func(squad.Event) bool) (squad.Task, squad.Event) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*time.Minute)
	defer cancel()
	m := squad.Member{SquadID: h.squad.ID, Name: "Ada", Role: "developer", IsActive: true, Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: command}}
	h.must(h.store.Tx(ctx, func(tx *store.Tx) error { return tx.CreateMember(ctx, &m) }))
	k := squad.Task{SquadID: h.squad.ID, RepositoryID: h.repo.ID, Title: "Say hi", Status: squad.TaskTodo, AssigneeID: m.ID}
	h.must(h.store.Tx(ctx, func(tx *store.Tx) error { return h.life.Create(ctx, tx, &k) }))
	_, err := h.runner.Run(ctx, squad.System(), k.ID, squad.RunOptions{})
	h.must(err)
	var story []string
	for e, err := range h.events.Subscribe(ctx, store.EventFilter{TaskID: k.ID}) {
		if err != nil {
			break
		}
		if until(e) {
			return k, e
		}
		story = append(story, fmt.Sprintf("%s %.300s", e.Type, e.Payload))
	}
	h.t.Fatalf("it did not happen:\n%s", strings.Join(story, "\n"))
	return k, squad.Event{}
}

func appSecret(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	b, err := json.Marshal(forge.AppSecret{AppID: 1, InstallationID: 2, PrivateKey: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The agent of a cloud sandbox finds the code and no token, and its work is pushed.
func TestCloud_AppGivesANarrowedTokenThatTheAgentNeverSees(t *testing.T) {
	t.Parallel()
	h := newHouse(t, false)
	h.populate(squad.CredentialGitHubApp, appSecret(t))
	warned := false
	k, e := h.run(`cat README.md; { env; cat .git/config /proc/*/environ /proc/*/cmdline; grep -rIl "`+narrow[:12]+`""`+narrow[12:]+`" /home /tmp /etc /run; git config --list; } 2>/dev/null > /tmp/all
grep -c "ghs_narrowed"token /tmp/all; grep -ac "ghs_narrowed"token /tmp/all | grep -qx 0 && echo nothing found; echo hi > hi.txt`, func(e squad.Event) bool {
		if e.Type == squad.EventLog && strings.Contains(string(e.Payload), "reads this one repository") {
			warned = true
		}
		return e.Type == squad.EventGitOperation && strings.Contains(string(e.Payload), `"kind":"push"`) && !strings.Contains(string(e.Payload), `"running"`)
	})
	if !strings.Contains(string(e.Payload), `"succeeded"`) {
		t.Errorf("push: %s", e.Payload)
	}
	if !warned {
		t.Error("nobody was warned that the sandbox had a credential")
	}
	list, err := h.store.Events(t.Context(), store.EventFilter{TaskID: k.ID, Limit: 500})
	h.must(err)
	var all strings.Builder
	for _, e := range list {
		all.Write(e.Payload)
	}
	if !strings.Contains(all.String(), "nothing found") || !strings.Contains(all.String(), "# shop") || strings.Contains(all.String(), narrow) {
		t.Errorf("what the agent found:\n%.3000s", all.String())
	}
	if got := gittest.Git(t, filepath.Join(h.upstream.Root, "acme/shop.git"), "show", fmt.Sprintf("task-%d:hi.txt", k.Number)); got != "hi" {
		t.Errorf("upstream has %q", got)
	}
	h.asked.Lock()
	defer h.asked.Unlock()
	if text := strings.Join(h.asked.bodies, "\n"); !strings.Contains(text, `"repositories":["shop"]`) || !strings.Contains(text, `"contents":"read"`) {
		t.Errorf("GitHub was asked for\n%s", text)
	}
}

// A token that opens more than the repository is not handed out.
func TestCloud_PersonalTokenIsRefusedWithARemedy(t *testing.T) {
	t.Parallel()
	h := newHouse(t, false)
	h.populate(squad.CredentialToken, narrow)
	_, e := h.run("true", func(e squad.Event) bool {
		return e.Type == squad.EventTaskUpdated && strings.Contains(string(e.Payload), `"flag":"failed"`)
	})
	if !strings.Contains(string(e.Payload), "SQUAD_PUBLIC_URL") || strings.Contains(string(e.Payload), narrow) {
		t.Errorf("it says %s", e.Payload)
	}
}

func TestCloud_PersonalTokenIsHandedOutWhereTheOwnerSaysSo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, true)
	h.populate(squad.CredentialToken, narrow)
	h.run("cat README.md", func(e squad.Event) bool {
		return e.Type == squad.EventLog && strings.Contains(string(e.Payload), "# shop")
	})
	list, err := h.store.Events(t.Context(), store.EventFilter{Types: []squad.EventType{squad.EventLog}, Limit: 500})
	h.must(err)
	if len(list) == 0 || !strings.Contains(string(list[0].Payload), "share-forge-token") {
		t.Errorf("nobody was warned: %+v", list)
	}
}
