package runner_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	if filepath.Base(os.Args[0]) == "envd" { // process 1 of the sandboxes made here
		os.Exit(envd.Main(os.Args[1:]))
	}
	gvisortest.Static()
	os.Exit(m.Run())
}

// house is every room that an execution passes, real ones all: database, sandboxes,
// git, local forge.
type house struct {
	t      *testing.T
	data   string
	store  *store.Store
	events *event.Log
	life   *task.Life
	runner *runner.Runner
	forges *forge.Service
	boxes  *sandbox.Service
	squad  squad.Squad
	repo   squad.Repository

	models  http.RoundTripper      // of agents of kind llm
	signKey atomic.Pointer[[]byte] // signs commits, where set
	mute    atomic.Bool            // streams of processes fall silent instead of ending
}

func newHouse(t *testing.T, limit ...func(*runner.Limits)) *house {
	t.Helper()
	data := t.TempDir()
	return newHouseOn(t, "sqlite:"+filepath.Join(data, "squad.db"), data, limit...)
}

// newHouseOn is a house on a given database.
func newHouseOn(t *testing.T, url, data string, limit ...func(*runner.Limits)) *house {
	t.Helper()
	h := &house{t: t, data: data}
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	h.open(ctx, url, log)
	runtime, server := h.local(ctx, log)
	web := httptest.NewServer(h.mutable(server))
	client, err := e2b.New(e2b.Config{APIKey: testKey, APIURL: web.URL, SandboxURL: web.URL, Domain: "localhost"})
	h.must(err)
	h.boxes, err = sandbox.New(ctx, sandbox.Config{
		Store: h.store, Log: log, Providers: map[string]sandbox.Provider{"local": {Client: client, Mounts: true, PauseAtEnd: true}},
		OnLost: func(_ context.Context, row squad.Sandbox) { h.runner.SandboxLost(row) },
	})
	h.must(err)
	vault, err := forge.OpenVault(filepath.Join(h.data, "key"))
	h.must(err)
	hostGit := git.New(git.Config{AllowFile: true, Log: log})
	credentials := forge.NewCredentials(h.store, vault, nil)
	repos := filepath.Join(h.data, "repos")
	h.forges = forge.NewService(forge.Config{Store: h.store, Credentials: credentials, Git: hostGit, Dir: repos, Log: log})
	gate := gateway.New(gateway.Config{
		Store: h.store, Events: h.events, Credentials: credentials, ReposDir: repos, Log: log,
		Trees: gateway.TreeConfig{Dir: filepath.Join(h.data, "trees"), WriteImage: func(ctx context.Context, dir, out string) error {
			return gvisor.WriteImage(ctx, dir, out, gvisor.ImageOptions{Owned: true, UID: 1000, GID: 1000})
		}},
		Mirrors: git.NewMirrors(git.MirrorsConfig{Dir: filepath.Join(h.data, "mirrors"), Runner: hostGit, Auth: credentials.GitAuth, Log: log}),
	})
	theGate.Store(gate)
	limits := runner.Limits{PerMember: 10}
	for _, set := range limit {
		set(&limits)
	}
	flows := flow.New(flow.Config{Store: h.store, Log: log})
	h.runner = runner.New(runner.Config{
		Store: h.store, Events: h.events, Life: h.life, Flows: flows, Sandboxes: h.boxes, Forges: h.forges, Git: hostGit, Log: log,
		Gateway: &runner.Outward{Gateway: gate, Git: hostGit, Default: "local"},
		SignKey: func(context.Context, string) ([]byte, error) {
			if key := h.signKey.Load(); key != nil {
				return *key, nil
			}
			return nil, nil
		},
		Drivers: map[squad.AgentKind]agent.Driver{
			squad.AgentCommand: agent.Shell{}, squad.AgentACP: agent.ACP{},
			squad.AgentLLM: agent.LLM{Models: func(agent.Turn) http.RoundTripper { return h.models }},
		},
		Limits: limits,
	})
	done := make(chan struct{}, 5)
	for _, work := range []func(context.Context) error{server.Run, h.boxes.Run, flows.Run, gate.Run, h.runner.Work} {
		go func() { _ = work(ctx); done <- struct{}{} }()
	}
	t.Cleanup(func() {
		cancel()
		for range 5 {
			<-done
		}
		h.killAll(client)
		web.Close()
		runtime.Close()
		h.events.Close()
		h.store.Close()
	})
	h.populate()
	return h
}

const testKey = "e2b_0123456789abcdef0123456789abcdef01234567"

// theGate is set when the gateway exists: sandboxes are only made after.
var theGate atomic.Pointer[gateway.Gateway]

func (h *house) open(ctx context.Context, url string, log *slog.Logger) {
	h.t.Helper()
	var err error
	h.store, err = store.Open(ctx, store.Config{URL: url, Log: log})
	h.must(err)
	h.events = event.NewLog(h.store, log)
	h.life = task.New(h.store)
}

func (h *house) local(ctx context.Context, log *slog.Logger) (*gvisor.Runtime, *e2bserver.Server) {
	h.t.Helper()
	var server *e2bserver.Server
	runtime, err := gvisor.New(gvisor.Config{Dir: h.data, Log: log, Accept: func(id string, hd tunnel.Header, c net.Conn) { server.Accept(id, hd, c) }})
	h.must(err)
	server, err = e2bserver.New(e2bserver.Config{
		Runtime: runtime, Dir: filepath.Join(h.data, "e2b"), Domain: "localhost", Log: log,
		Keys:     func(_ context.Context, key string) (string, bool) { return e2bserver.OwnerSquad, key == testKey },
		Internal: func(id string) http.Handler { return theGate.Load().For(id) },
		Egress:   func(string, string, int) (bool, string) { return false, "test" },
	})
	h.must(err)
	return runtime, server
}

func (h *house) killAll(client *e2b.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for info, err := range client.List(ctx, e2b.ListOptions{}) {
		if err != nil {
			h.t.Errorf("list sandboxes: %v", err)
			return
		}
		if _, err := client.Kill(ctx, info.ID); err != nil {
			h.t.Errorf("kill %s: %v", info.ID, err)
		}
	}
}

// populate makes a squad with a repository.
func (h *house) populate() {
	h.t.Helper()
	ctx, work := h.t.Context(), h.t.TempDir()
	sh(h.t, work, `git init -q -b main && printf 'hello\n' > README.md && git add . && git commit -qm 'docs: begin'`)
	h.squad = squad.Squad{Name: "Crew", Status: squad.SquadActive}
	h.repo = squad.Repository{Name: "hello", Forge: squad.ForgeLocal}
	h.must(h.forges.Prepare(ctx, &h.repo, work))
	h.tx(func(tx *store.Tx) error {
		if err := tx.CreateSquad(ctx, &h.squad); err != nil {
			return err
		}
		h.repo.SquadID = h.squad.ID
		return tx.CreateRepository(ctx, &h.repo)
	})
}

func (h *house) member(name, command string) squad.Member {
	h.t.Helper()
	m := squad.Member{SquadID: h.squad.ID, Name: name, Role: "developer", IsActive: true, Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: command}}
	h.tx(func(tx *store.Tx) error { return tx.CreateMember(h.t.Context(), &m) })
	return m
}

func (h *house) task(title string, m squad.Member) squad.Task {
	h.t.Helper()
	k := squad.Task{SquadID: h.squad.ID, RepositoryID: h.repo.ID, Title: title, Status: squad.TaskTodo, AssigneeID: m.ID}
	h.tx(func(tx *store.Tx) error { return h.life.Create(h.t.Context(), tx, &k) })
	return k
}

func (h *house) start(k squad.Task) squad.Execution {
	h.t.Helper()
	e, err := h.runner.Run(h.t.Context(), squad.System(), k.ID, squad.RunOptions{})
	h.must(err)
	return e
}

// until waits for an event of a task.
func (h *house) until(k squad.Task, what string, is func(squad.Event) bool) squad.Event {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 60*time.Second)
	defer cancel()
	for e, err := range h.events.Subscribe(ctx, store.EventFilter{TaskID: k.ID}) {
		if err != nil {
			break
		}
		if is(e) {
			return e
		}
	}
	h.story(k)
	h.t.Fatalf("%s did not happen to task #%d", what, k.Number)
	return squad.Event{}
}

// untilTask waits until the task stands somewhere.
func (h *house) untilTask(k squad.Task, is func(squad.Task) bool) squad.Task {
	h.t.Helper()
	var now squad.Task
	h.until(k, "expected state", func(squad.Event) bool {
		var err error
		now, err = h.store.Task(h.t.Context(), k.ID)
		return err == nil && is(now)
	})
	return now
}

// story prints what happened to a task.
func (h *house) story(k squad.Task) {
	list, _ := h.store.Events(context.Background(), store.EventFilter{TaskID: k.ID, Limit: 500})
	for _, e := range list {
		text := string(e.Payload)
		if len(text) > 300 {
			text = text[:300]
		}
		h.t.Logf("%4d %-20s %s", e.Seq, e.Type, text)
	}
}

func (h *house) tx(f func(tx *store.Tx) error) { h.t.Helper(); h.must(h.store.Tx(h.t.Context(), f)) }

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// git runs git in the bare repository of the local forge.
func (h *house) git(args ...string) string {
	h.t.Helper()
	return sh(h.t, forge.LocalDir(filepath.Join(h.data, "repos"), h.repo.ID), "git "+strings.Join(args, " "))
}

func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(p []byte) (int, error) {
	defer func() { _ = recover() }() // a line after the test's end is not worth a crash
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}
