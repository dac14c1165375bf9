package e2bserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestCreate_AnswersWhatSDKsNeed(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	sb := r.create(alice, `{"templateID":"base","metadata":{"a":"b"},"unknown":{"x":1}}`)
	if len(sb.SandboxID) != 21 || sb.SandboxID[0] != 'i' || sb.EnvdAccessToken == "" || sb.EnvdVersion < "0.6.4" {
		t.Errorf("answer %+v", sb)
	}
	if sb.Domain == nil || *sb.Domain != "localhost:7777" || sb.TrafficToken != nil {
		t.Errorf("answer %+v", sb)
	}
	var again sandbox
	r.must(http.StatusOK, &again, alice, "POST", "/v2/sandboxes/"+sb.SandboxID+"/connect", `{"timeout":10}`)
	if again.EnvdAccessToken != sb.EnvdAccessToken {
		t.Error("the access token changed on connect")
	}
	secured := r.create(alice, `{"templateID":"base","network":{"allowPublicTraffic":false}}`)
	if secured.TrafficToken == nil || *secured.TrafficToken == "" {
		t.Error("no traffic token although traffic is not public")
	}
}

func TestCreate_BadInputIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	host := newFakeHost()
	r := newRig(t, host)
	for name, body := range map[string]string{
		"no body": "", "not json": "{", "array": "[]", "no template": "{}", "template of wrong type": `{"templateID":5}`,
		"bad template name": `{"templateID":"../../etc"}`, "negative timeout": `{"templateID":"base","timeout":-1}`,
		"zero timeout": `{"templateID":"base","timeout":0}`, "endless timeout": `{"templateID":"base","timeout":99999999}`,
		"fraction": `{"templateID":"base","timeout":1.5}`, "metadata of numbers": `{"templateID":"base","metadata":{"a":1}}`,
		"env name":       `{"templateID":"base","envVars":{"A=B":"c"}}`,
		"memory pause":   `{"templateID":"base","autoPauseMemory":false}`,
		"pause resume":   `{"templateID":"base","autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true}}`,
		"volume":         `{"templateID":"base","volumeMounts":[{"name":"v","path":"/v"}]}`,
		"rules":          `{"templateID":"base","network":{"rules":{"a.com":[{"transform":{"headers":{"x":"y"}}}]}}}`,
		"deny domain":    `{"templateID":"base","network":{"denyOut":["example.com"]}}`,
		"allow domain":   `{"templateID":"base","network":{"allowOut":["example.com"]}}`,
		"mounts":         `{"templateID":"base","squadMounts":[{"image":"/etc/passwd","path":"/x"}]}`,
		"many metadata":  `{"templateID":"base","metadata":{"a":"` + strings.Repeat("x", 70_000) + `"}}`,
		"mask with line": `{"templateID":"base","network":{"maskRequestHost":"a\r\nb"}}`,
	} {
		w := r.call(alice, "POST", "/v2/sandboxes", body)
		var e struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusBadRequest || e.Code != w.Code || e.Message == "" {
			t.Errorf("%s: status %d, body %s", name, w.Code, w.Body)
		}
	}
	if w := r.call(alice, "POST", "/v2/sandboxes", `{"templateID":"none"}`); w.Code != http.StatusNotFound {
		t.Errorf("unknown template: status %d", w.Code)
	}
	if w := r.call(alice, "POST", "/v2/sandboxes", `{"templateID":"`+strings.Repeat("x", 2<<20)+`"}`); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("huge body: status %d", w.Code)
	}
	if host.created != 0 {
		t.Errorf("%d sandboxes were made", host.created)
	}
}

func TestKeys_MissingAndUnknownAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	for _, key := range []string{"", "e2b_000000"} {
		if w := r.call(key, "GET", "/v2/sandboxes", ""); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `"code":401`) {
			t.Errorf("key %q: status %d %s", key, w.Code, w.Body)
		}
	}
}

func TestOwners_DoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	sb := r.create(alice, `{"templateID":"base"}`)
	for _, c := range [][2]string{
		{"GET", ""}, {"DELETE", ""}, {"POST", "/pause"}, {"POST", "/resume"}, {"POST", "/connect"}, {"POST", "/timeout"},
		{"POST", "/refreshes"}, {"GET", "/metrics"}, {"GET", "/logs"}, {"PUT", "/network"}, {"POST", "/snapshots"}, {"POST", "/fork"},
	} {
		body := ""
		if c[0] != "GET" && c[0] != "DELETE" {
			body = `{"timeout":60}`
		}
		w := r.call(bob, c[0], "/sandboxes/"+sb.SandboxID+c[1], body)
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "doesn't exist or you don't have access to it") {
			t.Errorf("%s %s: status %d %s", c[0], c[1], w.Code, w.Body)
		}
	}
	var all []sandbox
	r.must(http.StatusOK, &all, bob, "GET", "/v2/sandboxes", "")
	if len(all) != 0 {
		t.Errorf("bob sees %+v", all)
	}
	r.must(http.StatusOK, nil, alice, "GET", "/sandboxes/"+sb.SandboxID, "")
}

func TestList_FiltersAndPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	var ids []string
	for i := range 5 {
		ids = append(ids, r.create(alice, fmt.Sprintf(`{"templateID":"base","metadata":{"n":"%d","a b":"c&d"}}`, i)).SandboxID)
	}
	r.must(http.StatusNoContent, nil, alice, "POST", "/sandboxes/"+ids[1]+"/pause", "")

	var got []string
	token, path := "", "/v2/sandboxes?limit=2"
	for page := range 3 {
		var part []sandbox
		h := r.must(http.StatusOK, &part, alice, "GET", path+token, "")
		for _, sb := range part {
			got = append(got, sb.SandboxID)
		}
		next := h.Get("X-Next-Token")
		if (next == "") != (page == 2) || h.Get("X-Total-Running") != "4" {
			t.Fatalf("page %d: next %q, running %q", page, next, h.Get("X-Total-Running"))
		}
		token = "&nextToken=" + url.QueryEscape(next)
	}
	if want := []string{ids[4], ids[3], ids[2], ids[1], ids[0]}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("order %v, want %v", got, want)
	}
	for query, want := range map[string]int{
		"state=running": 4, "state=paused": 1, "state=running,paused": 5, "order=asc": 5, "template=base": 5, "template=other": 0,
		"metadata=n%3D3": 1, "metadata=a%252520b%3Dc%252526d": 5, "metadata=a%252520b%3Dc%252526d%26n%3D2": 1, "metadata=n%3D9": 0,
		"startedAfter=2020-01-01T00:00:00Z": 5, "startedAfter=2999-01-01T00:00:00Z": 0,
	} {
		var part []sandbox
		r.must(http.StatusOK, &part, alice, "GET", "/v2/sandboxes?"+query, "")
		if len(part) != want {
			t.Errorf("%s: %d sandboxes, want %d", query, len(part), want)
		}
	}
	for _, query := range []string{"state=dead", "order=up", "startedAfter=now", "limit=0", "limit=101", "limit=x", "nextToken=!!", "metadata=%25zz"} {
		if w := r.call(alice, "GET", "/v2/sandboxes?"+query, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d", query, w.Code)
		}
	}
	var old []sandbox
	r.must(http.StatusOK, &old, alice, "GET", "/sandboxes", "")
	if len(old) != 4 {
		t.Errorf("old list has %d", len(old))
	}
}

func TestConcurrencyLimit_Is429AndFreedByPauseAndKill(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost(), limitOf(2))
	first := r.create(alice, `{"templateID":"base"}`)
	second := r.create(alice, `{"templateID":"base"}`)
	if w := r.call(alice, "POST", "/v2/sandboxes", `{"templateID":"base"}`); w.Code != http.StatusTooManyRequests {
		t.Fatalf("third: status %d", w.Code)
	}
	r.create(bob, `{"templateID":"base"}`)
	r.must(http.StatusNoContent, nil, alice, "POST", "/sandboxes/"+first.SandboxID+"/pause", "")
	r.create(alice, `{"templateID":"base"}`)
	if w := r.call(alice, "POST", "/v2/sandboxes/"+first.SandboxID+"/connect", ""); w.Code != http.StatusTooManyRequests {
		t.Errorf("resume over the limit: status %d", w.Code)
	}
	r.must(http.StatusNoContent, nil, alice, "DELETE", "/sandboxes/"+second.SandboxID, "")
	r.must(http.StatusCreated, nil, alice, "POST", "/v2/sandboxes/"+first.SandboxID+"/connect", "")
}

func TestVerbs_StatusesAsDocumented(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	id := r.create(alice, `{"templateID":"base","timeout":100}`).SandboxID
	at := "/sandboxes/" + id
	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{409, "POST", at + "/resume", `{"timeout":10}`},
		{400, "POST", at + "/connect", `{}`},
		{204, "POST", at + "/timeout", `{"timeout":50}`},
		{400, "POST", at + "/timeout", `{"timeout":-1}`},
		{400, "POST", at + "/timeout", `{}`},
		{204, "POST", at + "/refreshes", ``},
		{400, "POST", at + "/refreshes", `{"duration":4000}`},
		{200, "GET", at + "/metrics", ``},
		{400, "GET", at + "/metrics?start=9&end=1", ``},
		{200, "GET", "/sandboxes/metrics?sandbox_ids=" + id, ``},
		{400, "GET", "/sandboxes/metrics", ``},
		{200, "GET", at + "/logs", ``},
		{200, "GET", "/v2" + at + "/logs?direction=forward&limit=1", ``},
		{400, "GET", "/v2" + at + "/logs?limit=5000", ``},
		{204, "PUT", at + "/network", `{"denyOut":["0.0.0.0/0"],"allowOut":["example.com"]}`},
		{400, "PUT", at + "/network", `{"allowOut":["not a name"]}`},
		{204, "POST", at + "/pause", ``},
		{409, "POST", at + "/pause", `{"memory":false}`},
		{404, "POST", at + "/timeout", `{"timeout":50}`},
		{409, "PUT", at + "/network", `{}`},
		{409, "POST", at + "/snapshots", ``},
		{409, "POST", at + "/fork", ``},
		{200, "GET", at, ``},
		{201, "POST", "/v2" + at + "/connect", ``},
		{200, "POST", at + "/connect", `{"timeout":5}`},
		{400, "POST", at + "/fork", `{"count":0}`},
		{501, "GET", "/volumes", ``},
		{501, "POST", "/secrets/x", `{}`},
		{404, "GET", "/nothing", ``},
		{404, "GET", "/sandboxes/iunknown", ``},
		{204, "DELETE", at + "-client", ``},
		{404, "DELETE", at, ``},
	} {
		if w := r.call(alice, c.method, c.path, c.body); w.Code != c.status {
			t.Errorf("%s %s %s: status %d, want %d: %s", c.method, c.path, c.body, w.Code, c.status, w.Body)
		}
	}
}
