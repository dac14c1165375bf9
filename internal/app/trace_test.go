package app_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/app"
)

// A collector gets the request's span and the transaction below it, and no query
// string of a sign-in link.
func TestTracing_RequestsAndTransactionsReachTheCollector(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/v1/traces" {
			_, _ = io.Copy(&got, r.Body)
		}
	}))
	t.Cleanup(collector.Close)
	dir := filepath.Join(t.TempDir(), "data")
	cfg := settings(t, dir)
	cfg.OTLPEndpoint = collector.URL
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := app.Start(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	found, err := client.FromData(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(found)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateSquad(ctx, squad.NewSquad{Name: "crew"}); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL()+"/signin?code=signin_verysecret", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := a.Stop(); err != nil { // sends the last of them
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"POST /api/v1/squads", "store.Tx", "/signin"} {
		if !bytes.Contains(got.Bytes(), []byte(want)) {
			t.Errorf("the collector got no span %q", want)
		}
	}
	if bytes.Contains(got.Bytes(), []byte("verysecret")) {
		t.Error("the collector got the code of a sign-in link")
	}
}
