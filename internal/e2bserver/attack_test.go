package e2bserver_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"agentsquad/internal/e2bserver"
	"agentsquad/internal/tunnel"
)

const someHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// uploadURL asks for the address of an upload.
func uploadURL(t *testing.T, r *rig) *url.URL {
	t.Helper()
	var made struct{ TemplateID string }
	r.must(http.StatusAccepted, &made, alice, "POST", "/v3/templates", `{"name":"layers"}`)
	var link struct {
		Present bool
		URL     string
	}
	r.must(http.StatusCreated, &link, alice, "GET", "/templates/"+made.TemplateID+"/files/"+someHash, "")
	u, err := url.Parse(link.URL)
	if err != nil || link.Present {
		t.Fatalf("link %+v: %v", link, err)
	}
	return u
}

func (r *rig) put(u string, body []byte) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPut, u, bytes.NewReader(body))
	w := httptest.NewRecorder()
	r.server.ServeHTTP(w, req)
	return w
}

// archive makes a tar.gz of the given headers; regular files hold zeros.
func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestUpload_RefusesWhatLeadsOutsideOrIsOutOfProportion(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost(), func(c *e2bserver.Config) { c.MaxUpload = 1 << 20 })
	u := uploadURL(t, r)
	for name, c := range map[string]struct {
		body   []byte
		status int
	}{
		"not an archive": {[]byte("hello"), 400},
		"absolute":       {archive(t, tar.Header{Name: "/etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644}), 400},
		"dots":           {archive(t, tar.Header{Name: "a/../../x", Typeflag: tar.TypeReg, Mode: 0o644}), 400},
		"hard link":      {archive(t, tar.Header{Name: "a", Linkname: "../../etc/shadow", Typeflag: tar.TypeLink}), 400},
		"device":         {archive(t, tar.Header{Name: "a", Typeflag: tar.TypeBlock}), 400},
		"cut off":        {archive(t, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 1 << 16, Mode: 0o644})[:80], 400},
		"large":          {bytes.Repeat([]byte{1}, 2<<20), 413},
	} {
		if w := r.put(u.String(), c.body); w.Code != c.status {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, c.status, w.Body)
		}
	}
	bent := *u
	q := bent.Query()
	q.Set("owner", "bob")
	bent.RawQuery = q.Encode()
	late := *u
	q = late.Query()
	q.Set("until", "1")
	late.RawQuery = q.Encode()
	climb := strings.Replace(u.String(), someHash, "..%2f..%2fx", 1)
	for name, address := range map[string]string{"other owner": bent.String(), "other time": late.String(), "other path": climb} {
		if w := r.put(address, nil); w.Code != http.StatusForbidden {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
	fine := archive(t, tar.Header{Name: "a/b", Typeflag: tar.TypeReg, Size: 5, Mode: 0o644}, tar.Header{Name: "l", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink})
	if w := r.put(u.String(), fine); w.Code != http.StatusOK {
		t.Errorf("a good layer: status %d %s", w.Code, w.Body)
	}
}

func TestUpload_BombIsRefusedWithoutBeingKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	u := uploadURL(t, r)
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	// A header that promises far more than any layer may hold is enough.
	if err := w.WriteHeader(&tar.Header{Name: "bomb", Typeflag: tar.TypeReg, Size: 64 << 30, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.CopyN(w, zeros{}, 1<<20)
	_ = z.Close()
	if got := r.put(u.String(), buf.Bytes()); got.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d %s", got.Code, got.Body)
	}
}

// ask opens a way out as a sandbox would and returns the reply.
func ask(t *testing.T, s *e2bserver.Server, id, host string, port int) (ok bool, reason string) {
	t.Helper()
	inner, outer := net.Pipe()
	go s.Accept(id, tunnel.Header{Kind: tunnel.KindEgress, Host: host, Port: port}, outer)
	line, err := bufio.NewReader(inner).ReadBytes('\n')
	_ = inner.Close()
	if err != nil {
		t.Fatalf("%s: %v", host, err)
	}
	var reply struct {
		OK    bool
		Error string
	}
	if err := json.Unmarshal(line, &reply); err != nil {
		t.Fatal(err)
	}
	return reply.OK, reply.Error
}

func TestEgress_NeverReachesTheHostOrItsNetwork(t *testing.T) {
	t.Parallel()
	names := map[string][]string{
		"public.test": {"203.0.113.5"}, "loop.test": {"127.0.0.1"}, "mixed.test": {"10.0.0.8", "203.0.113.6"},
		"six.test": {"::1"}, "mapped.test": {"::ffff:169.254.169.254"},
	}
	var dialled []string
	r := newRig(t, newFakeHost(), func(c *e2bserver.Config) {
		c.Resolve = func(_ context.Context, host string) (addrs []netip.Addr, err error) {
			for _, text := range names[host] {
				addrs = append(addrs, netip.MustParseAddr(text))
			}
			return addrs, nil
		}
		c.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			a, b := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, b) }()
			return a, nil
		}
		c.Egress = func(_, host string, _ int) (bool, string) { return host != "forbidden.test", "the house says no" }
	})
	id := r.create(alice, `{"templateID":"base","network":{"allowOut":["127.0.0.0/8","loop.test"],"denyOut":["0.0.0.0/0"]}}`).SandboxID
	open := r.create(alice, `{"templateID":"base"}`).SandboxID
	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "10.1.1.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "168.63.129.16",
		"::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1", "255.255.255.255",
		"loop.test", "six.test", "mapped.test", "localhost/../x", "forbidden.test", "fe80::1%eth0", "*.test",
	} {
		for _, sandbox := range []string{id, open} {
			if ok, reason := ask(t, r.server, sandbox, host, 80); ok {
				t.Errorf("%s was reached", host)
			} else if !strings.Contains(reason, "refused by rule") && !strings.Contains(reason, "no address") {
				t.Errorf("%s: reason %q names no rule", host, reason)
			}
		}
	}
	if len(dialled) != 0 {
		t.Fatalf("dialled %v", dialled)
	}
	for _, host := range []string{"public.test", "mixed.test", "203.0.113.9"} {
		if ok, reason := ask(t, r.server, open, host, 443); !ok {
			t.Errorf("%s: %s", host, reason)
		}
	}
	if want := "[203.0.113.5:443 203.0.113.6:443 203.0.113.9:443]"; fmt.Sprint(dialled) != want {
		t.Errorf("dialled %v, want %s", dialled, want)
	}
	if ok, _ := ask(t, r.server, "iunknown", "public.test", 80); ok {
		t.Error("a sandbox that is not there got out")
	}
	if c, ok := r.server.EgressCounts(open); !ok || c.Allowed != 3 || c.Refused == 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestClaims_TellsE2BFromTheRest(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	for _, c := range []struct {
		want              bool
		method, url, head string
	}{
		{true, "GET", "http://squad.test/v2/sandboxes", "X-API-Key: k"},
		{true, "POST", "http://squad.test/process.Process/Start", "E2b-Sandbox-Id: i1"},
		{true, "GET", "http://3000-iabc.localhost:7777/", ""},
		{true, "GET", "http://squad.test/files?path=a&signature=v1_x", ""},
		{true, "PUT", "http://squad.test/e2b/uploads/abc?signature=x", ""},
		{true, "OPTIONS", "http://squad.test/files", "Access-Control-Request-Headers: content-type,e2b-sandbox-id"},
		{false, "GET", "http://squad.test/", ""},
		{false, "GET", "http://squad.test/files", ""},
		{false, "GET", "http://squad.test/api/v1/tasks", "Authorization: Bearer x"},
		{false, "OPTIONS", "http://squad.test/api/v1/tasks", "Access-Control-Request-Headers: authorization"},
		{false, "GET", "http://my-server.test/", ""},
		{false, "GET", "http://1-prod.test/", ""},
		{true, "GET", "http://1-i0123456789abcdefghij.example.com/", ""},
	} {
		req := httptest.NewRequest(c.method, c.url, nil)
		if name, value, ok := strings.Cut(c.head, ": "); ok {
			req.Header.Set(name, value)
		}
		if got := r.server.Claims(req); got != c.want {
			t.Errorf("%s %s %s: claimed %v", c.method, c.url, c.head, got)
		}
	}
}

func TestPreview_SharesNeitherOriginNorCookieWithThePage(t *testing.T) {
	t.Parallel()
	host := newFakeHost()
	r := newRig(t, host)
	id := r.create(alice, `{"templateID":"base"}`).SandboxID
	other := r.create(bob, `{"templateID":"base"}`).SandboxID
	send := func(url string, headers ...string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("GET", url, nil)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		r.server.ServeHTTP(w, req)
		return w
	}
	w := send("http://8080-"+id+".localhost:7777/cookie", "X-API-Key", alice)
	if got := w.Header().Get("Set-Cookie"); got != "a=b; Path=/" {
		t.Errorf("preview sets cookie %q", got)
	}
	if seen := host.get(id).request(); seen.Header.Get("X-Api-Key") != "" {
		t.Error("the key went into the sandbox")
	}
	// On a preview's origin the header cannot lead to another sandbox.
	if w = send("http://8080-"+id+".localhost:7777/", "E2b-Sandbox-Id", other); w.Body.String() != "hello from "+id {
		t.Errorf("the header won over the host: %s", w.Body)
	}
	w = send("http://localhost:7777/cookie", "E2b-Sandbox-Id", id, "E2b-Sandbox-Port", "8080", "Cookie", "squad_session=secret")
	if w.Code != 200 || w.Header().Get("Set-Cookie") != "" || w.Header().Get("Content-Security-Policy") != "sandbox" {
		t.Errorf("on the page's origin: %d %v", w.Code, w.Header())
	}
	if seen := host.get(id).request(); seen.Header.Get("Cookie") != "" {
		t.Error("the page's cookie went into the sandbox")
	}
	for target, status := range map[string]int{"http://8081-" + id + ".localhost/": 502, "http://70000-" + id + ".localhost/": 400, "http://49983-" + id + ".localhost/init": 404} {
		if w := send(target); w.Code != status {
			t.Errorf("%s: status %d, want %d", target, w.Code, status)
		}
	}
}

func TestCORS_AnyPageMayAskAndNoCookieCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	req := httptest.NewRequest("OPTIONS", "http://localhost:7777/process.Process/Start", nil)
	req.Header.Set("Access-Control-Request-Headers", "connect-protocol-version,e2b-sandbox-id,x-access-token")
	w := httptest.NewRecorder()
	r.server.ServeHTTP(w, req)
	h := w.Header()
	if w.Code != 204 || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Headers") != "*" || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("preflight: %d %v", w.Code, h)
	}
	if got := r.call(alice, "GET", "/v2/sandboxes", "").Header().Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("control plane allows origin %q", got)
	}
}
