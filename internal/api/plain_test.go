package api_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/api"
	"agentsquad/internal/store"
)

// flaky cuts each answer after limit bytes.
type flaky struct{ limit int64 }

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/sse") {
		return resp, err
	}
	resp.Body = &cut{resp.Body, f.limit}
	return resp, nil
}

type cut struct {
	io.ReadCloser
	left int64
}

func (c *cut) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("connection lost")
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

func TestPorts_MissingRoomsAnswer503(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		s, _ := h.squad("one")
		job := h.task(s, "x")
		for _, path := range []string{"/tasks/" + job.ID + "/run", "/tasks/" + job.ID + "/retry", "/tasks/" + job.ID + "/cancel", "/tasks/" + job.ID + "/merge"} {
			resp, body := h.request(http.MethodPost, api.Prefix+path, "{}", bearer(h.admin.token))
			if resp.StatusCode != http.StatusServiceUnavailable || problem(t, body).Code != squad.CodeUnavailable {
				t.Errorf("%s: %s %s", path, resp.Status, body)
			}
		}
		_, err := h.admin.CreateSandbox(t.Context(), squad.SandboxRequest{SquadID: s.ID})
		wantCode(t, err, squad.CodeUnavailable)
	})
}

func TestPanic_IsContained(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *api.Config) {
		c.Ports.Page = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a secret detail") })
	})
	resp, body := h.request(http.MethodGet, "/", "", nil)
	if resp.StatusCode != http.StatusInternalServerError || strings.Contains(body, "secret detail") || problem(t, body).Code != squad.CodeInternal {
		t.Fatalf("%s %s", resp.Status, body)
	}
	if resp, _ := h.request(http.MethodGet, "/healthz", "", nil); resp.StatusCode != http.StatusOK {
		t.Fatal("the server is gone")
	}
}

func TestHeaders_AreStrict(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		page, _ := h.request(http.MethodGet, "/", "", nil)
		data, _ := h.request(http.MethodGet, api.Prefix+"/me", "", bearer(h.admin.token))
		for _, resp := range []*http.Response{page, data} {
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			} {
				if resp.Header.Get(name) != want {
					t.Errorf("%s is %q", name, resp.Header.Get(name))
				}
			}
		}
		csp := page.Header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "script-src 'self'") || strings.Contains(csp, "script-src 'self' 'unsafe") || strings.Contains(csp, "unsafe-eval") || strings.Contains(csp, "http") {
			t.Errorf("policy of the page: %s", csp)
		}
		if !strings.HasPrefix(data.Header.Get("Content-Security-Policy"), "default-src 'none'") || data.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("headers of data: %v", data.Header)
		}
		if id := data.Header.Get("X-Request-Id"); id == "" {
			t.Error("no request id")
		}
		odd, _ := h.request(http.MethodGet, "/healthz", "", http.Header{"X-Request-Id": {"a b\"c"}})
		if strings.ContainsAny(odd.Header.Get("X-Request-Id"), " \"") {
			t.Error("an odd request id was kept")
		}
		docs, text := h.request(http.MethodGet, api.Prefix+"/docs", "", nil)
		if strings.Contains(text, "<script") || strings.Contains(text, "https://") || docs.StatusCode != http.StatusOK {
			t.Error("the docs page loads something from elsewhere")
		}
	})
}

func TestCompress_LargeReadsOnly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		header := bearer(h.admin.token)
		header.Set("Accept-Encoding", "gzip")
		resp, body := h.request(http.MethodGet, api.Prefix+"/openapi.json", "", header)
		if resp.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%v", resp.Header)
		}
		z, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(z)
		if err != nil || !json.Valid(raw) {
			t.Fatalf("%v", err)
		}
		if resp, _ := h.request(http.MethodPost, api.Prefix+"/tokens", `{"name":"x"}`, header); resp.Header.Get("Content-Encoding") != "" {
			t.Error("an answer with a secret is compressed")
		}
	})
}

func TestOpenAPI_DescribesEveryOperationOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		var doc struct {
			OpenAPI string
			Paths   map[string]map[string]struct {
				OperationID string `json:"operationId"`
				Summary     string
				Responses   map[string]any
			}
			Components struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal(h.server.OpenAPI(), &doc); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for path, methods := range doc.Paths {
			for method, op := range methods {
				if op.OperationID == "" || op.Summary == "" || seen[op.OperationID] {
					t.Errorf("%s %s: id %q, summary %q", method, path, op.OperationID, op.Summary)
				}
				seen[op.OperationID] = true
			}
		}
		for _, want := range []string{"create-task", "stream", "execute", "merge-pull", "create-token", "git-push"} {
			if !seen[want] {
				t.Errorf("no operation %s", want)
			}
		}
		for _, want := range []string{"Task", "Problem", "Sandbox", "Event"} {
			if doc.Components.Schemas[want] == nil {
				t.Errorf("no schema %s", want)
			}
		}
		if doc.OpenAPI != "3.1.0" || len(seen) < 80 {
			t.Errorf("version %s, %d operations", doc.OpenAPI, len(seen))
		}
	})
}

func TestMetrics_CountRoutesNotPaths(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		h.request(http.MethodGet, api.Prefix+"/tasks/some-secret-id", "", bearer(h.admin.token))
		h.request("BREW", "/", "", nil)
		_, text := h.request(http.MethodGet, "/metrics", "", nil)
		if strings.Contains(text, "some-secret-id") || strings.Contains(text, "BREW") || !strings.Contains(text, `route="GET /api/v1/tasks/{id}"`) {
			t.Fatal(text)
		}
	})
}

func TestMetrics_APageThatIsLeftIsNoFailure(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, api.Prefix+"/tasks", nil)
	r.Header = bearer(h.admin.token)
	h.server.ServeHTTP(httptest.NewRecorder(), r)
	_, text := h.request(http.MethodGet, "/metrics", "", nil)
	if !strings.Contains(text, `status="499"`) || strings.Contains(text, `status="503"`) {
		t.Fatal(text)
	}
}

func TestInsights_CountWhatHappened(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		s, _ := h.squad("one")
		h.task(s, "x")
		_, text := h.request(http.MethodGet, api.Prefix+"/insights?squad_id="+s.ID, "", bearer(h.admin.token))
		if !strings.Contains(text, `"tasks":{"todo":1}`) {
			t.Fatal(text)
		}
		if rows := must(client.Collect(client.List[api.UsageRow](t.Context(), h.admin.Client, "/usage", client.Values{"by": "member"})))(t); len(rows) != 0 {
			t.Fatalf("%v", rows)
		}
	})
}

// waits is a forge whose branches take their time.
type waits struct {
	api.Forges
	d time.Duration
}

func (w waits) Merge(ctx context.Context, _ squad.Actor, _ string, _ squad.MergeOptions) (squad.PullRequest, error) {
	select {
	case <-ctx.Done():
		return squad.PullRequest{}, context.Cause(ctx)
	case <-time.After(w.d):
		return squad.PullRequest{Title: "patience"}, nil
	}
}

// A verb may take longer than its request took to arrive: the bound on the body
// must not stay on the connection.
func TestVerbs_MayTakeLongerThanTheirBody(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for six seconds; run without -short")
	}
	h := newHouse(t, func(c *api.Config) { c.Ports.Forges = waits{c.Ports.Forges, 6 * time.Second} })
	s, _ := h.squad("one")
	r := must(h.admin.CreateRepository(t.Context(), squad.NewRepository{SquadID: s.ID, Name: "code"}))(t)
	p := squad.PullRequest{RepositoryID: r.ID, Number: 1, State: squad.PullOpen, Head: "a", Base: "b"}
	if err := h.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.CreatePullRequest(t.Context(), &p) }); err != nil {
		t.Fatal(err)
	}
	if merged := must(h.admin.MergePull(t.Context(), p.ID, squad.MergeOptions{}))(t); merged.Title != "patience" {
		t.Fatalf("%+v", merged)
	}
}
