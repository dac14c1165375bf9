package web_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"agentsquad/web"
)

func get(t *testing.T, method, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for key, values := range header {
		req.Header[key] = values
	}
	rec := httptest.NewRecorder()
	web.Handler().ServeHTTP(rec, req)
	return rec
}

func TestHandler_UnknownPathIsThePage(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/squads/1/board", "/signin", "/a/../b"} {
		rec := get(t, http.MethodGet, path, nil)
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "<title>Agent Squad</title>") {
			t.Errorf("GET %s: %d, %.80q", path, rec.Code, rec.Body)
		}
		if got := rec.Header().Get("Cache-Control"); got != "no-cache" {
			t.Errorf("GET %s: Cache-Control %q", path, got)
		}
	}
}

func TestHandler_MissingFileIsNotThePage(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/assets/gone-123.js", "/favicon.ico", "/../../etc/passwd.txt"} {
		if rec := get(t, http.MethodGet, path, nil); rec.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, rec.Code)
		}
	}
}

func TestHandler_RefusesWrites(t *testing.T) {
	t.Parallel()
	if rec := get(t, http.MethodPost, "/", nil); rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", rec.Code)
	}
}

func TestHandler_KnownPageIsNotSentAgain(t *testing.T) {
	t.Parallel()
	first := get(t, http.MethodGet, "/", http.Header{"Accept-Encoding": {"gzip"}})
	if first.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("Content-Encoding %q", first.Header().Get("Content-Encoding"))
	}
	again := get(t, http.MethodGet, "/", http.Header{"Accept-Encoding": {"gzip"}, "If-None-Match": {first.Header().Get("Etag")}})
	if again.Code != http.StatusNotModified {
		t.Errorf("second GET: %d", again.Code)
	}
}

func TestHandler_HashedFilesAreKept(t *testing.T) {
	t.Parallel()
	if !web.Built() {
		t.Skip("the page is not in this build: make build, then go test -tags embedweb ./web")
	}
	page := get(t, http.MethodGet, "/", nil).Body.String()
	script := regexp.MustCompile(`/assets/[^"]+\.js`).FindString(page)
	rec := get(t, http.MethodGet, script, nil)
	if rec.Code != http.StatusOK || !strings.Contains(rec.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("GET %s: %d, Cache-Control %q", script, rec.Code, rec.Header().Get("Cache-Control"))
	}
}
