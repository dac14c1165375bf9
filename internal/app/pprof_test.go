package app_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad/internal/app"
)

// Profiles are on an address of their own, where one was asked for, and never on
// the server's.
func TestPprof_OnlyWhereAskedFor(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	cfg := settings(t, filepath.Join(t.TempDir(), "data"))
	cfg.Pprof = address
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := app.Start(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const path, profile = "/debug/pprof/goroutine?debug=1", "goroutine profile:"
	if got := fetch(ctx, t, "http://"+address+path); !strings.HasPrefix(got, profile) {
		t.Errorf("profiles answer %.80q", got)
	}
	if got := fetch(ctx, t, a.URL()+path); strings.Contains(got, profile) {
		t.Error("the server's own address has profiles")
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("profiles are served after the stop")
	}
}

func fetch(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
