package e2bserver_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
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
