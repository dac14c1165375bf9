package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/api"
	"agentsquad/internal/event"
	"agentsquad/internal/forge"
	"agentsquad/internal/git"
	"agentsquad/internal/pgtest"
	"agentsquad/internal/store"
	"agentsquad/internal/task"
)

// house is a real server over a real store and a real local forge.
type house struct {
	t      testing.TB
	url    string
	store  *store.Store
	events *event.Log
	server *api.Server
	admin  person
}

// person is an actor of the stories: a user with a client of their own.
type person struct {
	*client.Client
	user  squad.User
	token string
}

func newHouse(t testing.TB, adjust ...func(*api.Config)) *house {
	t.Helper()
	return newHouseOn(t, "sqlite:"+filepath.Join(t.TempDir(), "squad.db"), adjust...)
}

// onBoth tells a story in a house on each database.
func onBoth(t *testing.T, story func(t *testing.T, h *house)) {
	t.Helper()
	t.Run(store.SQLite, func(t *testing.T) {
		t.Parallel()
		story(t, newHouse(t))
	})
	t.Run(store.Postgres, func(t *testing.T) {
		t.Parallel()
		story(t, newHouseOn(t, pgtest.URL(t)))
	})
}

func newHouseOn(t testing.TB, database string, adjust ...func(*api.Config)) *house {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	log := event.NewLog(s, nil)
	t.Cleanup(log.Close)
	vault, err := forge.OpenVault(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	forges := forge.NewService(forge.Config{
		Store: s, Credentials: forge.NewCredentials(s, vault, nil), Git: git.New(git.Config{AllowFile: true}), Dir: filepath.Join(dir, "repos"),
	})
	cfg := api.Config{
		Store: s, Events: log, Life: task.New(s), Version: "test", Heartbeat: 50 * time.Millisecond,
		Ports: api.Ports{Sealer: vault, Forges: forges},
	}
	for _, f := range adjust {
		f(&cfg)
	}
	server, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(server.Stop) // before the web server, which waits for streams
	h := &house{t: t, url: web.URL, store: s, events: log, server: server}
	h.admin = h.person("root", true)
	return h
}

// person makes a user with a full token.
func (h *house) person(name string, admin bool, scopes ...string) person {
	h.t.Helper()
	u := squad.User{Name: name, Admin: admin}
	var made squad.CreatedToken
	err := h.store.Tx(h.t.Context(), func(tx *store.Tx) error {
		if err := tx.CreateUser(h.t.Context(), &u); err != nil {
			return err
		}
		var err error
		made, err = api.Mint(h.t.Context(), tx, squad.APIToken{UserID: u.ID, Kind: squad.TokenUser, Name: name, Scopes: scopes})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return person{h.client(made.Secret), u, made.Secret}
}

func (h *house) client(token string) *client.Client {
	h.t.Helper()
	c, err := client.New(client.Config{URL: h.url, Token: token})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// squad makes a squad with a member.
func (h *house) squad(name string) (squad.Squad, squad.Member) {
	h.t.Helper()
	s := must(h.admin.CreateSquad(h.t.Context(), squad.NewSquad{Name: name}))(h.t)
	m := must(h.admin.CreateMember(h.t.Context(), squad.NewMember{
		SquadID: s.ID, Name: "Ada", Role: "developer", Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: "true"},
	}))(h.t)
	return s, m
}

func (h *house) task(s squad.Squad, title string) squad.Task {
	h.t.Helper()
	return must(h.admin.CreateTask(h.t.Context(), squad.NewTask{SquadID: s.ID, Title: title}))(h.t)
}

// must unwraps a result of a call that has to succeed.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wantCode wants an error of the given kind.
func wantCode(t *testing.T, err error, code squad.Code) {
	t.Helper()
	if squad.CodeOf(err) != code {
		t.Fatalf("got %q (%v), want %s", squad.CodeOf(err), err, code)
	}
}

// request sends a request as it is, and reads the whole answer.
func (h *house) request(method, path string, body string, header http.Header) (*http.Response, string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	noFollow := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := noFollow.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp, string(raw)
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// problem reads problem JSON.
func problem(t testing.TB, body string) api.Problem {
	t.Helper()
	var p api.Problem
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	if err := d.Decode(&p); err != nil || p.Code == "" {
		t.Fatalf("not a problem: %q (%v)", body, err)
	}
	return p
}

type answer struct {
	status int
	text   string
}

// ask sends a request with the given token and body; empty ones are left out.
func (h *house) ask(method, path, token string, body []byte) answer {
	h.t.Helper()
	header := http.Header{}
	if token != "" {
		header = bearer(token)
	}
	resp, text := h.request(method, path, string(body), header)
	return answer{resp.StatusCode, text}
}
