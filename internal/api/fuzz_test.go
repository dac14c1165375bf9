package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"agentsquad/client"
	"agentsquad/internal/api"
)

func serve(h *house, r *http.Request) *httptest.ResponseRecorder {
	r.Header.Set("Authorization", "Bearer "+h.admin.token)
	w := httptest.NewRecorder()
	h.server.ServeHTTP(w, r)
	return w
}

func FuzzFilters_AnyQueryIsAnsweredOrRefused(f *testing.F) {
	for _, q := range []string{"limit=5&after=abc", "status=todo,done&q=%25_%5C", "after=MDE5&newest=1", "squad_id=%00", "q=\xff\xfe", "limit=99999999999999999999"} {
		f.Add(q)
	}
	h := newHouse(f)
	f.Fuzz(func(t *testing.T, query string) {
		if _, err := url.ParseQuery(query); err != nil || strings.ContainsAny(query, " #") {
			t.Skip()
		}
		for _, path := range []string{"/tasks?", "/events?", "/messages?", "/sandboxes?", "/audit?"} {
			u, err := url.Parse(api.Prefix + path + query)
			if err != nil {
				t.Skip()
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.URL = u
			if w := serve(h, r); w.Code >= 500 {
				t.Fatalf("%s: %d %s", u, w.Code, w.Body)
			}
		}
	})
}

func FuzzBody_AnyTaskIsMadeOrRefused(f *testing.F) {
	for _, b := range []string{`{"squad_id":"x","title":"y"}`, `{"title":"\u0000"}`, `{"priority":1e400}`, `null`, `{"labels":[null]}`, `{"budget":{"task_usd":-1}}`} {
		f.Add([]byte(b))
	}
	h := newHouse(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, api.Prefix+"/tasks", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		if w := serve(h, r); w.Code >= 500 {
			t.Fatalf("%q: %d %s", body, w.Code, w.Body)
		}
	})
}

func FuzzScan_AnyStreamEnds(f *testing.F) {
	f.Add("id: 1\nevent: x\ndata: {}\n\n: heartbeat\n\n")
	f.Add("data: a\ndata: b\n\nid: no\n")
	f.Fuzz(func(t *testing.T, text string) {
		if err := client.Scan(strings.NewReader(text), func(int64, []byte) error { return nil }); err == nil {
			t.Fatal("a stream that ends is always an error")
		}
	})
}
