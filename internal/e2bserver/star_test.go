package e2bserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"agentsquad/internal/e2bserver"
)

// TestStar_EveryPathOfTheSDK walks all that the official SDK calls on sandboxes, by
// old and new paths, in one life: status, and the fields that it reads.
func TestStar_EveryPathOfTheSDK(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	id := r.create(alice, `{"templateID":"base","timeout":600,"metadata":{"k":"v"}}`).SandboxID
	sandboxFields := []string{"templateID", "sandboxID", "clientID", "envdVersion", "envdAccessToken", "domain"}
	listedFields := []string{"templateID", "sandboxID", "clientID", "startedAt", "endAt", "cpuCount", "memoryMB", "diskSizeMB", "state", "envdVersion", "metadata"}
	for _, step := range []struct {
		method, path, body string
		status             int
		fields             []string // of the object, or of the first of a list
	}{
		{"POST", "/v2/sandboxes", `{"templateID":"base"}`, 201, sandboxFields},
		{"POST", "/sandboxes", `{"templateID":"base","secure":true}`, 201, sandboxFields},
		{"POST", "/v2/sandboxes", `{"templateID":"code-interpreter-v1"}`, 201, sandboxFields},
		{"GET", "/v2/sandboxes?metadata=k%3Dv", "", 200, listedFields},
		{"GET", "/sandboxes?metadata=k%3Dv", "", 200, listedFields},
		{"GET", "/v2/sandboxes?state=paused", "", 200, nil},
		{"GET", "/v2/sandboxes?order=asc&limit=1&template=base", "", 200, listedFields[:10]},
		{"GET", "/v2/sandboxes?order=sideways", "", 400, nil},
		{"GET", "/v2/sandboxes?limit=0", "", 400, nil},
		{"GET", "/sandboxes/{id}", "", 200, append(slices.Clone(listedFields), "envdAccessToken", "lifecycle")},
		{"GET", "/sandboxes/{id}-legacy", "", 200, listedFields},
		{"POST", "/v2/sandboxes/{id}/connect", "", 200, sandboxFields},
		{"POST", "/v2/sandboxes/{id}/connect", `{"timeout":60}`, 200, sandboxFields},
		{"POST", "/sandboxes/{id}/connect", `{"timeout":60}`, 200, sandboxFields},
		{"POST", "/sandboxes/{id}/connect", `{}`, 400, nil},
		{"POST", "/sandboxes/{id}/timeout", `{"timeout":300}`, 204, nil},
		{"POST", "/sandboxes/{id}/timeout", `{"timeout":-1}`, 400, nil},
		{"POST", "/sandboxes/{id}/refreshes", `{"duration":60}`, 204, nil},
		{"POST", "/sandboxes/{id}/refreshes", `{"duration":4000}`, 400, nil},
		{"GET", "/sandboxes/{id}/metrics", "", 200, nil},
		{"GET", "/sandboxes/metrics?sandbox_ids={id}", "", 200, []string{"sandboxes"}},
		{"GET", "/v2/sandboxes/{id}/logs", "", 200, []string{"logs"}},
		{"GET", "/sandboxes/{id}/logs", "", 200, []string{"logs", "logEntries"}},
		{"PUT", "/sandboxes/{id}/network", `{"denyOut":["0.0.0.0/0"],"allowOut":["example.com"]}`, 204, nil},
		{"PUT", "/sandboxes/{id}/network", `{}`, 204, nil},
		{"PUT", "/sandboxes/{id}/network", `{"rules":{"a.com":[{}]}}`, 400, nil},
		{"POST", "/sandboxes/{id}/snapshots", `{"name":"saved"}`, 201, []string{"snapshotID", "names"}},
		{"GET", "/snapshots?sandboxID={id}", "", 200, []string{"snapshotID", "names"}},
		{"GET", "/snapshots?name=unknown", "", 200, nil},
		{"POST", "/sandboxes/{id}/fork", `{"count":1,"timeout":60}`, 201, []string{"sandbox"}},
		{"POST", "/sandboxes/{id}/fork", `{"count":101}`, 400, nil},
		{"POST", "/sandboxes/{id}/resume", "", 409, nil},
		{"POST", "/sandboxes/{id}/pause", `{"memory":true}`, 204, nil},
		{"POST", "/sandboxes/{id}/pause", "", 409, nil},
		{"POST", "/sandboxes/{id}/fork", "", 409, nil},
		{"PUT", "/sandboxes/{id}/network", `{}`, 409, nil},
		{"GET", "/v2/sandboxes?state=paused", "", 200, listedFields},
		{"POST", "/v2/sandboxes/{id}/connect", `{"timeout":60}`, 201, sandboxFields},
		{"DELETE", "/templates/saved", "", 204, nil},
		{"DELETE", "/templates/saved", "", 404, nil},
		{"DELETE", "/sandboxes/{id}", "", 204, nil},
		{"DELETE", "/sandboxes/{id}", "", 404, nil},
		{"GET", "/templates/aliases/base", "", 200, []string{"templateID", "public"}},
		{"GET", "/templates/aliases/none", "", 404, nil},
		{"GET", "/volumes", "", 501, nil},
		{"POST", "/secrets", `{}`, 501, nil},
		{"GET", "/events/sandboxes", "", 501, nil},
	} {
		w := r.call(alice, step.method, strings.ReplaceAll(step.path, "{id}", id), step.body)
		if w.Code != step.status {
			t.Errorf("%s %s %s: status %d, want %d: %s", step.method, step.path, step.body, w.Code, step.status, w.Body)
			continue
		}
		if step.status >= 400 {
			step.fields = []string{"code", "message"}
		}
		if missing := without(w.Body.Bytes(), step.fields); len(missing) > 0 {
			t.Errorf("%s %s: no %v in %s", step.method, step.path, missing, w.Body)
		}
	}
}

// without returns the fields that an object, or the first of a list, lacks.
func without(body []byte, fields []string) (missing []string) {
	var list []map[string]any
	if json.Unmarshal(body, &list) != nil {
		list = make([]map[string]any, 1)
		_ = json.Unmarshal(body, &list[0]) // what is no object lacks everything
	}
	for _, f := range fields {
		if len(list) == 0 || list[0][f] == nil {
			missing = append(missing, f)
		}
	}
	return missing
}

// TestStar_UnknownSandboxIs404Everywhere also holds for one of another key: a
// stranger who guesses a name learns nothing.
func TestStar_UnknownSandboxIs404Everywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	theirs := r.create(bob, `{"templateID":"base"}`).SandboxID
	for _, id := range []string{"i00000000000000000000", theirs} {
		for _, call := range []struct{ method, path, body string }{
			{"GET", "/sandboxes/" + id, ""},
			{"DELETE", "/sandboxes/" + id, ""},
			{"POST", "/v2/sandboxes/" + id + "/connect", ""},
			{"POST", "/sandboxes/" + id + "/connect", `{"timeout":60}`},
			{"POST", "/sandboxes/" + id + "/resume", ""},
			{"POST", "/sandboxes/" + id + "/pause", ""},
			{"POST", "/sandboxes/" + id + "/timeout", `{"timeout":60}`},
			{"POST", "/sandboxes/" + id + "/refreshes", ""},
			{"GET", "/sandboxes/" + id + "/metrics", ""},
			{"GET", "/sandboxes/" + id + "/logs", ""},
			{"GET", "/v2/sandboxes/" + id + "/logs", ""},
			{"PUT", "/sandboxes/" + id + "/network", `{}`},
			{"POST", "/sandboxes/" + id + "/snapshots", ""},
			{"POST", "/sandboxes/" + id + "/fork", ""},
		} {
			w := r.call(alice, call.method, call.path, call.body)
			if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"code":404`) {
				t.Errorf("%s %s: status %d %s", call.method, call.path, w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "bob") {
				t.Errorf("%s %s names the owner", call.method, call.path)
			}
		}
	}
	if w := r.call(bob, "GET", "/sandboxes/"+theirs, ""); w.Code != http.StatusOK {
		t.Errorf("the owner's sandbox was harmed: %d", w.Code)
	}
}

// TestEgress_NameThatChangesItsAddressGainsNothing: a name is public when it is
// asked first and loopback after (rebinding), or a server answers with a redirect
// to the metadata address. The address that was checked is the one that is
// dialled, and each connection is checked anew.
func TestEgress_NameThatChangesItsAddressGainsNothing(t *testing.T) {
	t.Parallel()
	answers, dialled := []string{"203.0.113.5", "127.0.0.1", "169.254.169.254"}, []string{}
	r := newRig(t, newFakeHost(), func(c *e2bserver.Config) {
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			next := answers[0]
			answers = append(answers[1:], next)
			return []netip.Addr{netip.MustParseAddr(next)}, nil
		}
		c.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			a, b := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, b) }()
			return a, nil
		}
	})
	id := r.create(alice, `{"templateID":"base"}`).SandboxID
	for i, want := range []bool{true, false, false, true} {
		if ok, reason := ask(t, r.server, id, "rebind.test", 80); ok != want {
			t.Errorf("question %d: %v (%s), want %v", i, ok, reason, want)
		}
	}
	if !slices.Equal(dialled, []string{"203.0.113.5:80", "203.0.113.5:80"}) {
		t.Errorf("dialled %v", dialled)
	}
}
