package e2bserver_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"agentsquad/e2b"
	"agentsquad/internal/e2bserver"
	"agentsquad/test/e2bsdk/e2btest"
)

// smallImage is an image with a shell and the tools a build needs, taken from
// this machine, and no user of the name user.
func smallImage(t *testing.T) v1.Image {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	seen := map[string]bool{}
	add := func(from, to string, data []byte) {
		if from != "" {
			var err error
			if data, err = os.ReadFile(from); err != nil {
				t.Fatal(err)
			}
		}
		if seen[to] {
			return
		}
		seen[to] = true
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: 0o755, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"bash", "sh", "cat", "grep", "mkdir", "chown", "id", "rm", "ls"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("SKIPPED: the host has no %s to make an image from", tool)
		}
		add(path, "bin/"+tool, nil)
		out, _ := exec.CommandContext(t.Context(), "ldd", path).Output()
		for f := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(f, "/") {
				add(f, strings.TrimPrefix(f, "/"), nil)
			}
		}
	}
	add("", "etc/passwd", []byte("root:x:0:0::/root:/bin/sh\n"))
	add("", "etc/group", []byte("root:x:0:\n"))
	add("", "etc/mark", []byte("small"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.Config(img, v1.Config{Env: []string{"FROM_IMAGE=yes", "PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// build asks for a template as the SDK does and waits for its end.
func build(t *testing.T, s *e2btest.Stack, key, template, plan string) (status, reason string) {
	t.Helper()
	call := func(method, path, body string, out any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		if resp.StatusCode >= 300 {
			status, reason = "refused", string(data)
			return
		}
		if out != nil {
			if err := json.Unmarshal(data, out); err != nil {
				t.Fatalf("%s %s: %v: %s", method, path, err, data)
			}
		}
	}
	var made struct{ TemplateID, BuildID string }
	call("POST", "/v3/templates", fmt.Sprintf(`{"name":%q}`, template), &made)
	call("POST", "/v2/templates/"+made.TemplateID+"/builds/"+made.BuildID, plan, nil)
	for status == "" || status == "building" || status == "waiting" {
		var got struct {
			Status string
			Reason struct{ Message string }
		}
		call("GET", "/templates/"+made.TemplateID+"/builds/"+made.BuildID+"/status", "", &got)
		status, reason = got.Status, got.Reason.Message
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the build does not end")
		}
	}
	return status, reason
}

func TestBuild_FromAnImageOfARegistry(t *testing.T) {
	t.Parallel()
	img := smallImage(t)
	asked := 0
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); r.Method == http.MethodGet && (user != "ann" || password != "secret") {
			asked++
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	address := web.Listener.Addr().String()
	ref, err := name.ParseReference(address + "/small/image:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithContext(t.Context()), remote.WithTransport(basic{"ann", "secret"})); err != nil {
		t.Fatal(err)
	}
	s := e2btest.Start(t, func(c *e2bserver.Config) { c.PrivateRegistries = []string{address} })
	plan := fmt.Sprintf(`{"fromImage":%q,"fromImageRegistry":{"type":"registry","username":"ann","password":"secret"},`+
		`"steps":[{"type":"RUN","args":["echo $FROM_IMAGE $(cat /etc/mark) > /home/user/made"]},{"type":"USER","args":["user"]}]}`, ref)
	if status, reason := build(t, s, e2btest.Key, "small", plan); status != "ready" {
		t.Fatalf("build is %s: %s", status, reason)
	}
	sb := start(t, client(t, s, e2btest.Key), e2b.CreateOptions{Template: "small"})
	if got := sh(t, sb, "cat /home/user/made; id -un; ls /usr 2>/dev/null"); !strings.HasPrefix(got, "yes small\nuser") || strings.Contains(got, "share") {
		t.Errorf("inside the image %q", got)
	}
	bad := strings.Replace(plan, "secret", "wrong", 1)
	if status, reason := build(t, s, e2btest.Key, "small2", bad); status != "error" || strings.Contains(reason, "wrong") {
		t.Errorf("with a wrong password the build is %s: %s", status, reason)
	}
}

type basic struct{ user, password string }

func (b basic) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth(b.user, b.password)
	return http.DefaultTransport.RoundTrip(r)
}

func TestBuild_CannotReadTheHostOrItsNetwork(t *testing.T) {
	t.Parallel()
	hits := 0
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	t.Cleanup(inner.Close)
	secret := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(secret, name.MustParseReference("a/b"), empty.Image); err != nil {
		t.Fatal(err)
	}
	s := e2btest.Start(t)
	for what, image := range map[string]string{
		"a path": secret, "loopback": inner.Listener.Addr().String() + "/a/b", "a name of loopback": strings.Replace(inner.Listener.Addr().String(), "127.0.0.1", "localhost", 1) + "/a/b",
		"metadata": "169.254.169.254/a/b", "dots": "../../etc",
	} {
		status, reason := build(t, s, e2btest.Key, "evil-"+strings.ReplaceAll(what, " ", "-"), fmt.Sprintf(`{"fromImage":%q}`, image))
		if status != "error" && status != "refused" || reason == "" {
			t.Errorf("%s: build is %s: %q", what, status, reason)
		}
	}
	if hits != 0 {
		t.Errorf("%d requests reached a server of the host", hits)
	}
	for what, plan := range map[string]string{
		"unknown step": `{"fromImage":"e2bdev/base","steps":[{"type":"EVIL","args":[]}]}`,
		"no layer":     `{"fromImage":"e2bdev/base","steps":[{"type":"COPY","args":["a","/b"],"filesHash":"` + someHash + `"}]}`,
		"climbing":     `{"fromImage":"e2bdev/base","steps":[{"type":"COPY","args":["../a","/b"],"filesHash":"` + someHash + `"}]}`,
		"two bases":    `{"fromImage":"e2bdev/base","fromTemplate":"base"}`,
		"no base":      `{}`,
		"aws":          `{"fromImage":"x","fromImageRegistry":{"type":"aws"}}`,
	} {
		if status, _ := build(t, s, e2btest.Key, "bad", plan); status != "refused" {
			t.Errorf("%s: build is %s", what, status)
		}
	}
}

func TestBuild_EndsWithTheServer(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	t.Run("before", func(t *testing.T) {
		s := e2btest.StartIn(t, dir)
		s.KeepSandboxes = true
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(func() { cancel(); <-done })
		go func() {
			defer close(done)
			startBuild(ctx, s.URL)
		}()
		for len(s.Runtime.List()) == 0 {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatal("the build does not begin")
			}
		}
	})
	s := e2btest.StartIn(t, dir)
	resp, err := getWithKey(t.Context(), s.URL+"/templates")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(resp, `"buildStatus":"error"`) {
		t.Errorf("after the restart %s", resp)
	}
	if left := s.Runtime.List(); len(left) != 0 {
		t.Errorf("%d sandboxes of builds left", len(left))
	}
}

// startBuild begins a build that would take ten minutes.
func startBuild(ctx context.Context, url string) {
	post := func(path, body string) (out struct{ TemplateID, BuildID string }) {
		req, err := http.NewRequestWithContext(ctx, "POST", url+path, strings.NewReader(body))
		if err != nil {
			return out
		}
		req.Header.Set("X-API-Key", e2btest.Key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return out
		}
		defer resp.Body.Close()
		_ = json.NewDecoder(resp.Body).Decode(&out)
		return out
	}
	made := post("/v3/templates", `{"name":"slow"}`)
	post("/v2/templates/"+made.TemplateID+"/builds/"+made.BuildID, `{"fromImage":"e2bdev/base","steps":[{"type":"RUN","args":["sleep 600"]}]}`)
}

func getWithKey(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("X-API-Key", e2btest.Key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}
