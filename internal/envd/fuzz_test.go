package envd_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad/internal/envd"
)

func FuzzResolvePath(f *testing.F) {
	for _, path := range []string{"", "~", "~/x", "~other", "a/../../b", "/a//b/.", "x\x00y"} {
		f.Add(path, "/home/user", "/work")
	}
	f.Fuzz(func(t *testing.T, path, home, workdir string) {
		got, err := envd.ResolvePath(path, home, workdir)
		if err != nil {
			return
		}
		if !filepath.IsAbs(got) || filepath.Clean(got) != got {
			t.Fatalf("%q resolves to %q", path, got)
		}
		if again, err := envd.ResolvePath(got, home, workdir); len(got) < 4000 && (err != nil || again != got) {
			t.Fatalf("%q resolves to %q, then to %q (%v)", path, got, again, err)
		}
	})
}

func FuzzSignature(f *testing.F) {
	f.Add("hello.txt", "user", "v1_x", "123")
	f.Add("", "", "", "")
	f.Add("a:read", "b", "v1_", "-1")
	f.Fuzz(func(t *testing.T, path, user, signature, expires string) {
		const token = "the token that the fuzzer does not know"
		q := url.Values{"path": {path}, "username": {user}, "signature": {signature}, "signature_expiration": {expires}}
		if err := envd.CheckSignature(q, "read", token, time.Unix(1, 0)); err == nil {
			t.Fatalf("accepted %v", q)
		}
	})
}

// FuzzUpload sends anything as a form: the server must answer, and must not
// write outside the folder that well-formed parts name.
func FuzzUpload(f *testing.F) {
	dir, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { os.RemoveAll(dir) })
	server := envd.NewServer(envd.Config{DefaultUser: me(f)})
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	w.SetBoundary("b")
	p, _ := w.CreateFormFile("file", "x")
	io.WriteString(p, "content")
	w.Close()
	f.Add(body.Bytes())
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=file; filename=\"\"\r\n\r\nx\r\n--b--"))
	f.Add([]byte("--b\r\n\r\n--b\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		req := httptest.NewRequest("POST", "/files?path="+url.QueryEscape(filepath.Join(dir, "f")), bytes.NewReader(data))
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		res := httptest.NewRecorder()
		server.ServeHTTP(res, req)
		if res.Code != 200 && res.Code != 400 {
			t.Fatalf("%d %s", res.Code, res.Body)
		}
		if res.Code == 200 && strings.Count(res.Body.String(), "\"path\"") > 1 {
			t.Fatalf("one path was written twice: %s", res.Body)
		}
	})
}
