package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/gateway"
	"agentsquad/internal/store"
)

// The gateway says who asks; whatever the sandbox says about itself is left behind.
func TestTools_MembersTokenIsAddedOutsideAndNothingElsePasses(t *testing.T) {
	t.Parallel()
	const secret = "agent_made-for-the-work"
	var made atomic.Int32
	var of squad.Sandbox
	k := newKit(t, func(c *gateway.Config) {
		c.Tools.Token = func(_ context.Context, sb squad.Sandbox) (string, time.Time, error) {
			made.Add(1)
			of = sb
			return secret, time.Now().Add(time.Hour), nil
		}
		c.Tools.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bad := r.Header.Get("Cookie") + r.Header.Get("E2b-Sandbox-Id") + r.Header.Get("X-Forwarded-For") + r.URL.RawQuery
			if bad != "" || r.URL.Path != "/mcp" || r.Host != "squad.internal" || r.Header.Get("Authorization") != "Bearer "+secret {
				t.Errorf("request reaches the tools as %s %s %s %q", r.Method, r.Host, r.URL, r.Header)
			}
			fmt.Fprintf(w, "%s %s", r.Method, body)
		})
	})
	ask := func(path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.url+path, strings.NewReader("{}"))
		must(t, err)
		for name, v := range map[string]string{
			"Authorization": "Bearer another", "Cookie": "squad_session=x", "E2b-Sandbox-Id": "other", "X-Forwarded-For": "8.8.8.8", "Accept": "application/json",
		} {
			req.Header.Set(name, v)
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		if strings.Contains(string(text)+fmt.Sprint(resp.Header), secret) {
			t.Errorf("the token is in the answer: %s", text)
		}
		return resp.StatusCode, string(text)
	}
	for range 2 {
		if status, text := ask("/mcp?signature=x"); status != 200 || text != "POST {}" {
			t.Errorf("%d %s", status, text)
		}
	}
	if made.Load() != 1 || of.ID != k.sandbox.ID || of.AgentID != k.member.ID || of.TaskID != k.task.ID || of.ExecutionID != k.execution.ID {
		t.Errorf("%d tokens, the last for %+v", made.Load(), of)
	}
	for _, path := range []string{"/mcp/x", "/mcp/../api/v1/tasks", "/api/v1/tasks", "/metrics"} {
		if status, text := ask(path); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	k.execution.Status = squad.ExecutionSucceeded
	must(t, k.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.UpdateExecution(t.Context(), &k.execution) }))
	if status, _ := ask("/mcp"); status != http.StatusForbidden {
		t.Errorf("an ended execution reaches the tools: %d", status)
	}
}
