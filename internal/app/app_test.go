package app_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/app"
	"agentsquad/internal/config"
	"agentsquad/internal/envd"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/gvisor/gvisortest"
)

func TestMain(m *testing.M) {
	gvisor.Dispatch() // sandboxes of the house are this program started again
	envd.Dispatch()
	gvisortest.Static()
	os.Exit(m.Run())
}

func settings(t *testing.T, dir string) *config.Config {
	t.Helper()
	c, err := config.Load(config.Sources{
		Flags:  map[string]string{"data": dir, "listen": "127.0.0.1:0", "pool-max": "0", "stop-timeout": "10s"},
		Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T, dir string) *app.App {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := app.Start(ctx, settings(t, dir), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func TestStart_FirstTimeMakesAnAdministratorWithALink(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	a := start(t, dir)
	found, err := client.FromData(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(found)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	me, err := c.Me(t.Context())
	if err != nil || !me.Admin {
		t.Fatalf("%+v %v", me, err)
	}
	link, err := a.SignInLink(t.Context())
	if err != nil || !strings.HasPrefix(link.URL, a.URL()+"/signin?code=") {
		t.Fatalf("%v %v", link, err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if len(resp.Cookies()) != 1 {
		t.Fatalf("the link answers %s", resp.Status)
	}
	for _, name := range []string{"admin.token", "key", "server.json", "squad.db"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	_, err = app.Start(t.Context(), settings(t, dir), slog.New(slog.DiscardHandler))
	if squad.CodeOf(err) != squad.CodeConflict {
		t.Fatalf("a second server in the folder: %v", err)
	}
}

func TestStop_TheNextStartGoesOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := start(t, dir)
	before, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "server.json")); !os.IsNotExist(err) {
		t.Fatal("server.json is left behind")
	}
	start(t, dir)
	after, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	if err != nil || string(before) != string(after) {
		t.Fatalf("the token changed: %v", err)
	}
}
