package sandbox_test

import (
	"context"
	"net/http"
	"os/user"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
	"agentsquad/internal/api"
	"agentsquad/internal/envd"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

var _ api.Sandboxes = (*sandbox.Service)(nil)

// house is a service with a database, a provider that can fail, and one squad.
type house struct {
	t        *testing.T
	store    *store.Store
	provider *e2btest.Server
	service  *sandbox.Service
	metrics  *prometheus.Registry
	squad    squad.Squad
	member   squad.Member
	task     squad.Task
}

// fast makes repetition quick enough for a test.
var fast = sandbox.Retry{Tries: 3, Min: time.Millisecond, Max: 2 * time.Second}

func build(t *testing.T, opts e2btest.Options, change func(*sandbox.Config)) *house {
	t.Helper()
	return buildOn(t, "sqlite:"+t.TempDir()+"/squad.db", opts, change)
}

func buildOn(t *testing.T, database string, opts e2btest.Options, change func(*sandbox.Config)) *house {
	t.Helper()
	h := &house{t: t, provider: e2btest.New(opts), metrics: prometheus.NewRegistry()}
	t.Cleanup(func() {
		h.provider.CloseClientConnections()
		h.provider.Close()
	})
	var err error
	if h.store, err = store.Open(t.Context(), store.Config{URL: database}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.store.Close() })
	h.service = h.start(change)
	h.squad, h.member, h.task = h.people("first")
	return h
}

// start makes a service on the house's database and provider, as a restart does.
func (h *house) start(change func(*sandbox.Config)) *sandbox.Service {
	h.t.Helper()
	cfg := sandbox.Config{
		Store: h.store, Providers: map[string]sandbox.Provider{"fake": {
			Client: client(h.t, h.provider.URL), Mounts: true,
			PerVCPUSecond: sandbox.E2BPerVCPUSecond, PerGiBSecond: sandbox.E2BPerGiBSecond,
		}}, Retry: fast,
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.Metrics == nil && h.service == nil {
		cfg.Metrics = h.metrics
	}
	s, err := sandbox.New(h.t.Context(), cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func client(t *testing.T, url string) *e2b.Client {
	t.Helper()
	return must(url)
}

func must(url string) *e2b.Client {
	c, err := e2b.New(e2b.Config{APIKey: "e2b_00", APIURL: url, SandboxURL: url})
	if err != nil {
		panic(err)
	}
	return c
}

// people makes a squad with one member and one task.
func (h *house) people(name string) (sq squad.Squad, m squad.Member, task squad.Task) {
	h.t.Helper()
	err := h.store.Tx(h.t.Context(), func(tx *store.Tx) error {
		sq = squad.Squad{Name: name, Status: squad.SquadActive}
		if err := tx.CreateSquad(h.t.Context(), &sq); err != nil {
			return err
		}
		m = squad.Member{SquadID: sq.ID, Name: "dev", Role: "developer", IsActive: true}
		if err := tx.CreateMember(h.t.Context(), &m); err != nil {
			return err
		}
		task = squad.Task{SquadID: sq.ID, Title: "do it", Status: squad.TaskTodo, AssigneeID: m.ID}
		return tx.CreateTask(h.t.Context(), &task)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return sq, m, task
}

// execution starts one of a new task.
func (h *house) execution() squad.Execution {
	h.t.Helper()
	task := squad.Task{SquadID: h.squad.ID, Title: "do it", Status: squad.TaskTodo, AssigneeID: h.member.ID}
	if err := h.store.Tx(h.t.Context(), func(tx *store.Tx) error { return tx.CreateTask(h.t.Context(), &task) }); err != nil {
		h.t.Fatal(err)
	}
	return h.executionOf(task)
}

func (h *house) executionOf(task squad.Task) squad.Execution {
	h.t.Helper()
	e := squad.Execution{TaskID: task.ID, SquadID: h.squad.ID, MemberID: h.member.ID, Status: squad.ExecutionRunning, Attempt: 1}
	if err := h.store.Tx(h.t.Context(), func(tx *store.Tx) error { return tx.CreateExecution(h.t.Context(), &e) }); err != nil {
		h.t.Fatal(err)
	}
	return e
}

func (h *house) request(e squad.Execution) sandbox.AcquireRequest {
	return sandbox.AcquireRequest{SquadID: h.squad.ID, MemberID: h.member.ID, TaskID: e.TaskID, ExecutionID: e.ID, Epoch: 1}
}

func (h *house) row(id string) squad.Sandbox {
	h.t.Helper()
	row, err := h.store.Sandbox(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return row
}

// events returns the types of the events of a sandbox, in order.
func (h *house) events(id string) (types []squad.EventType) {
	h.t.Helper()
	events, err := h.store.Events(h.t.Context(), store.EventFilter{SandboxID: id})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

// metric is the sum of a counter or gauge over its labels.
func (h *house) metric(name string) (sum float64) {
	h.t.Helper()
	families, err := h.metrics.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// person is a member of the house's squad.
func (h *house) person(role squad.UserRole) squad.Actor {
	return squad.Actor{Kind: squad.TokenUser, UserID: "u1", Ceiling: squad.RoleAdmin, Roles: map[string]squad.UserRole{h.squad.ID: role}}
}

// machine has the real daemon in each sandbox.
func machine(t *testing.T) e2btest.Options {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return e2btest.Options{Envd: func(_, token string) http.Handler {
		home := t.TempDir() // also as HOME: the profile of whoever runs the test is not our concern
		daemon := envd.NewServer(envd.Config{AccessToken: token, DefaultUser: me.Username, DefaultWorkdir: home, Env: map[string]string{"HOME": home}})
		t.Cleanup(func() { daemon.Close() })
		return daemon
	}}
}

func code(t *testing.T, err error, want squad.Code) {
	t.Helper()
	if got := squad.CodeOf(err); got != want {
		t.Errorf("error %v has code %q, want %q", err, got, want)
	}
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
