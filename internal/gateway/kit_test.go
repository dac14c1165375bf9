package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/gateway"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
	"agentsquad/internal/store"
)

const (
	forgeToken = "forge-token-that-must-not-leak"
	modelKey   = "sk-model-key-that-must-not-leak-1234567890"
)

// secrets are the server's credentials in tests.
type secrets struct{}

func (secrets) GitAuth(context.Context, string) (string, string, error) {
	return "x-access-token", forgeToken, nil
}
func (secrets) ModelKey(context.Context, string, string) (string, error) { return modelKey, nil }

// kit is a whole gateway with database, upstream forge and one working sandbox.
type kit struct {
	g        *gateway.Gateway
	cfg      gateway.Config
	store    *store.Store
	upstream *gittest.Server
	bare     string // upstream's repository on disk
	repo     squad.Repository
	squad    squad.Squad
	member   squad.Member
	url      string // of the handler for the sandbox
	work     string // a clone made through the gateway
	place
}

// place is a task with its execution and sandbox.
type place struct {
	task      squad.Task
	execution squad.Execution
	sandbox   squad.Sandbox
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func newKit(t testing.TB, change func(*gateway.Config)) *kit {
	t.Helper()
	ctx := t.Context()
	st, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "squad.db")})
	must(t, err)
	log := event.NewLog(st, nil)
	t.Cleanup(func() { log.Close(); st.Close() })
	root := t.TempDir()
	k := &kit{store: st, bare: gittest.Bare(t, root, "shop.git", "main"), upstream: gittest.Serve(t, root, forgeToken)}
	noWait := git.Retry{Attempts: 2, Sleep: func(context.Context, time.Duration) error { return nil }}
	runner := git.New(git.Config{AllowFile: true, Retry: noWait})
	k.cfg = gateway.Config{
		Store: st, Events: log, Credentials: secrets{}, ReposDir: t.TempDir(),
		Mirrors: git.NewMirrors(git.MirrorsConfig{Dir: t.TempDir(), Runner: runner, Auth: secrets{}.GitAuth, Fresh: time.Nanosecond}),
	}
	if change != nil {
		change(&k.cfg)
	}
	k.g = gateway.New(k.cfg)
	must(t, st.Tx(ctx, func(tx *store.Tx) error {
		k.squad = squad.Squad{Name: "Shop", Status: squad.SquadActive}
		if err := tx.CreateSquad(ctx, &k.squad); err != nil {
			return err
		}
		k.member = squad.Member{SquadID: k.squad.ID, Name: "Ada", Role: "developer", IsActive: true}
		if err := tx.CreateMember(ctx, &k.member); err != nil {
			return err
		}
		k.repo = squad.Repository{SquadID: k.squad.ID, Name: "acme/shop", Forge: squad.ForgeGitea, URL: k.upstream.URL + "/shop.git", DefaultBranch: "main"}
		return tx.CreateRepository(ctx, &k.repo)
	}))
	k.place = k.newPlace(t, k.repo)
	srv := httptest.NewServer(k.g.For(k.sandbox.ID))
	t.Cleanup(srv.Close)
	k.url = srv.URL
	return k
}

// newPlace makes a task of a repository with a running execution in a sandbox.
func (k *kit) newPlace(t testing.TB, repo squad.Repository) place {
	t.Helper()
	ctx := t.Context()
	var p place
	must(t, k.store.Tx(ctx, func(tx *store.Tx) error {
		p.task = squad.Task{SquadID: repo.SquadID, RepositoryID: repo.ID, Title: "Sell things", Status: squad.TaskInProgress}
		if err := tx.CreateTask(ctx, &p.task); err != nil {
			return err
		}
		p.execution = squad.Execution{TaskID: p.task.ID, SquadID: repo.SquadID, MemberID: k.member.ID, Status: squad.ExecutionRunning, Attempt: 1}
		if err := tx.CreateExecution(ctx, &p.execution); err != nil {
			return err
		}
		p.sandbox = squad.Sandbox{
			Provider: "local", E2BID: "i" + squad.NewID(), SquadID: repo.SquadID, AgentID: k.member.ID, TaskID: p.task.ID, ExecutionID: p.execution.ID,
			Template: "base", Status: squad.SandboxRunning,
		}
		if err := tx.CreateSandbox(ctx, &p.sandbox); err != nil {
			return err
		}
		p.task.ExecutionID = p.execution.ID
		return tx.UpdateTask(ctx, &p.task)
	}))
	return p
}

// clone clones through the gateway and checks the task's branch out.
func (k *kit) clone(t testing.TB) string {
	t.Helper()
	k.work = filepath.Join(t.TempDir(), "shop")
	gittest.Git(t, filepath.Dir(k.work), "clone", "-q", k.url+"/git/"+k.repo.ID+".git", k.work)
	gittest.Git(t, k.work, "checkout", "-q", "-b", k.branch())
	return k.work
}

func (k *kit) branch() string { return git.TaskBranch(k.task.Number) }

// push pushes and returns git's words; refused tells what is expected.
func (k *kit) push(t testing.TB, refused bool, args ...string) string {
	t.Helper()
	out, err := gittest.Try(k.work, append([]string{"push"}, args...)...)
	if (err != nil) != refused {
		t.Fatalf("push %s: refused is %v\n%s", strings.Join(args, " "), err != nil, out)
	}
	if strings.Contains(out, forgeToken) {
		t.Errorf("the credential is in the answer:\n%s", out)
	}
	return out
}

// upstreamRefs lists what upstream has.
func (k *kit) upstreamRefs(t testing.TB) string {
	t.Helper()
	return gittest.Git(t, k.bare, "for-each-ref", "--format=%(refname)")
}

func (k *kit) operations(t testing.TB, kind string) []squad.GitOperation {
	t.Helper()
	list, err := k.store.GitOperations(t.Context(), store.GitOperationFilter{Kind: kind})
	must(t, err)
	return list
}

func (k *kit) events(t testing.TB, kinds ...squad.EventType) []squad.Event {
	t.Helper()
	list, err := k.store.Events(t.Context(), store.EventFilter{Types: kinds, Limit: 1000})
	must(t, err)
	return list
}

// token mints a sandbox's token.
func (k *kit) token(t testing.TB, sandboxID string) string {
	t.Helper()
	secret := "sq_" + squad.NewID()
	sum := sha256.Sum256([]byte(secret))
	must(t, k.store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.CreateAPIToken(t.Context(), &squad.APIToken{
			Kind: squad.TokenAgent, Name: "gateway", SandboxID: sandboxID, MemberID: k.member.ID, Hash: hex.EncodeToString(sum[:]),
		})
	}))
	return secret
}

type configT = gateway.Config

// restart makes a second gateway on the same state and runs it until done says so.
func (k *kit) restart(t *testing.T, done func() bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	ended := make(chan error, 1)
	g := gateway.New(k.cfg)
	go func() { ended <- g.Run(ctx) }()
	k.waitFor(t, done)
	stop()
	must(t, <-ended)
}

// waitFor waits until done says so.
func (k *kit) waitFor(t *testing.T, done func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it did not happen in time")
		}
	}
}
