package e2bserver_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestProxy_CutUploadKeepsTheConnectionSound pauses a sandbox in the middle of
// an upload: nothing may go on reading the body, as the connection is used again.
func TestProxy_CutUploadKeepsTheConnectionSound(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	var mu sync.Mutex
	var said bytes.Buffer
	web := httptest.NewUnstartedServer(r.server)
	web.Config.ErrorLog = log.New(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return said.Write(p)
	}), "", 0)
	web.Start()
	t.Cleanup(web.Close)
	for range 20 {
		id := r.create(alice, `{"templateID":"base"}`).SandboxID
		body, upload := io.Pipe()
		answered := make(chan error, 1)
		go func() { answered <- post(t, web, id, body) }()
		_, _ = upload.Write([]byte("begun"))
		r.must(http.StatusNoContent, nil, alice, "POST", "/sandboxes/"+id+"/pause", "")
		_, _ = upload.Write([]byte("more"))
		_ = upload.Close()
		<-answered // cut or refused; both are right
		if err := post(t, web, id, strings.NewReader("x")); err != nil {
			t.Errorf("the next request: %v", err)
		}
		r.must(http.StatusNoContent, nil, alice, "DELETE", "/sandboxes/"+id, "")
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(said.String(), "panic") {
		t.Errorf("the server said:\n%s", said.String())
	}
}

// TestProxy_AnswerThatBeginsEarlyGetsTheWholeRequest has a server inside that
// answers before the request has ended, as envd does when a command prints.
func TestProxy_AnswerThatBeginsEarlyGetsTheWholeRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	id := r.create(alice, `{"templateID":"base"}`).SandboxID
	web := httptest.NewServer(r.server)
	t.Cleanup(web.Close)
	for i := range 60 {
		body, upload := io.Pipe()
		go func() {
			for range 5 {
				_, _ = upload.Write(make([]byte, 1000))
				runtime.Gosched()
			}
			_ = upload.Close()
		}()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/early", body)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			req.ContentLength = 5000
		}
		req.Header.Set("E2b-Sandbox-Id", id)
		req.Header.Set("E2b-Sandbox-Port", "8080")
		resp, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(answer) != "5000 bytes, <nil>" {
			t.Fatalf("answer %q: %v", answer, err)
		}
	}
}

func post(t *testing.T, web *httptest.Server, id string, body io.Reader) error {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/swallow", struct{ io.Reader }{body})
	if err != nil {
		return err
	}
	req.Header.Set("E2b-Sandbox-Id", id)
	req.Header.Set("E2b-Sandbox-Port", "8080")
	resp, err := web.Client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
