package envd_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/user"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"agentsquad/internal/envd"
	"agentsquad/internal/envdpb/filesystem/filesystemconnect"
	"agentsquad/internal/envdpb/process"
	"agentsquad/internal/envdpb/process/processconnect"
)

// box is a server with clients in one of the two codecs.
type box struct {
	t     testing.TB
	url   string
	procs processconnect.ProcessClient
	files filesystemconnect.FilesystemClient
}

func me(t testing.TB) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

func start(t testing.TB, c envd.Config, options ...connect.ClientOption) *box {
	t.Helper()
	if c.DefaultUser == "" {
		c.DefaultUser = me(t)
	}
	if c.DefaultWorkdir == "" {
		c.DefaultWorkdir = t.TempDir()
	}
	server := envd.NewServer(c)
	h := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		h.CloseClientConnections()
		h.Close()
	})
	return &box{
		t: t, url: h.URL,
		procs: processconnect.NewProcessClient(h.Client(), h.URL, options...),
		files: filesystemconnect.NewFilesystemClient(h.Client(), h.URL, options...),
	}
}

// both runs a test with the proto and the JSON codec.
func both(t *testing.T, c envd.Config, test func(*testing.T, *box)) {
	t.Helper()
	for name, options := range map[string][]connect.ClientOption{"proto": nil, "json": {connect.WithProtoJSON()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, c, options...))
		})
	}
}

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // no deadline: it would travel and become the process's lifetime
	timer := time.AfterFunc(60*time.Second, cancel)
	t.Cleanup(func() { timer.Stop(); cancel() })
	return ctx
}

// result is a followed command.
type result struct {
	pid                 uint32
	stdout, stderr, pty string
	keepalives          int
	end                 *process.ProcessEvent_EndEvent
	err                 error
}

func (r *result) add(e *process.ProcessEvent) {
	switch v := e.GetEvent().(type) {
	case *process.ProcessEvent_Start:
		r.pid = v.Start.GetPid()
	case *process.ProcessEvent_Data:
		r.stdout += string(v.Data.GetStdout())
		r.stderr += string(v.Data.GetStderr())
		r.pty += string(v.Data.GetPty())
	case *process.ProcessEvent_Keepalive:
		r.keepalives++
	case *process.ProcessEvent_End:
		r.end = v.End
	}
}

func shell(script string) *process.StartRequest {
	return &process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", script}}, Stdin: new(bool)}
}

func (b *box) run(ctx context.Context, req *process.StartRequest) result {
	b.t.Helper()
	var r result
	stream, err := b.procs.Start(ctx, connect.NewRequest(req))
	if err != nil {
		r.err = err
		return r
	}
	defer stream.Close()
	first := true
	for stream.Receive() {
		if first && stream.Msg().GetEvent().GetStart() == nil {
			b.t.Fatalf("first event is %v, want start", stream.Msg().GetEvent())
		}
		first = false
		r.add(stream.Msg().GetEvent())
	}
	r.err = stream.Err()
	return r
}

// begin starts a command and returns its pid and stream.
func (b *box) begin(ctx context.Context, req *process.StartRequest) (uint32, *connect.ServerStreamForClient[process.StartResponse]) {
	b.t.Helper()
	stream, err := b.procs.Start(ctx, connect.NewRequest(req))
	if err != nil {
		b.t.Fatal(err)
	}
	if !stream.Receive() {
		b.t.Fatalf("no start event: %v", stream.Err())
	}
	pid := stream.Msg().GetEvent().GetStart().GetPid()
	if pid == 0 {
		b.t.Fatal("the first event carries no pid")
	}
	return pid, stream
}

func byPID(pid uint32) *process.ProcessSelector {
	return &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: pid}}
}

func wantCode(t *testing.T, err error, code connect.Code, text string) {
	t.Helper()
	if connect.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v (%v), want code %v with %q", err, connect.CodeOf(err), code, text)
	}
}

// do sends a plain HTTP request; header pairs follow the body.
func (b *box) do(method, path string, body io.Reader, header ...string) (*http.Response, []byte) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res, data
}

func (b *box) wantFail(res *http.Response, body []byte, status int, text string) {
	b.t.Helper()
	var e struct {
		Code    int
		Message string
	}
	if err := json.Unmarshal(body, &e); err != nil {
		b.t.Fatalf("%d with a body that is not JSON: %q", res.StatusCode, body)
	}
	if res.StatusCode != status || e.Code != status || !strings.Contains(e.Message, text) {
		b.t.Fatalf("got %d %+v, want %d with %q", res.StatusCode, e, status, text)
	}
	if ct := res.Header.Get("Content-Type"); ct != "application/json; charset=utf-8" {
		b.t.Fatalf("content type %q", ct)
	}
}

func TestHealth_NeedsNoToken(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{AccessToken: "secret"})
	if res, _ := b.do("GET", "/health", nil); res.StatusCode != 204 {
		t.Fatalf("got %d", res.StatusCode)
	}
}

func TestToken_IsAskedEverywhereElse(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{AccessToken: "secret"})
	for _, path := range []string{"/envs", "/metrics"} {
		res, body := b.do("GET", path, nil)
		b.wantFail(res, body, 401, "access token")
		res, body = b.do("GET", path, nil, "X-Access-Token", "wrong")
		b.wantFail(res, body, 401, "access token")
		if res, _ = b.do("GET", path, nil, "X-Access-Token", "secret"); res.StatusCode != 200 {
			t.Fatalf("%s: %d", path, res.StatusCode)
		}
	}
	_, err := b.procs.List(bounded(t), connect.NewRequest(&process.ListRequest{}))
	wantCode(t, err, connect.CodeUnauthenticated, "")
	req := connect.NewRequest(&process.ListRequest{})
	req.Header().Set("X-Access-Token", "secret")
	if _, err := b.procs.List(bounded(t), req); err != nil {
		t.Fatal(err)
	}
}

func TestInit_SetsTokenEnvAndUserOnce(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	dir := t.TempDir()
	body := func(v any) io.Reader {
		data, _ := json.Marshal(v)
		return bytes.NewReader(data)
	}
	res, _ := b.do("POST", "/init", body(map[string]any{"accessToken": "a", "envVars": map[string]string{"A": "1", "B": "2"}, "defaultWorkdir": dir, "sandboxID": "i123", "timestamp": "2026-01-01T00:00:00Z"}))
	if res.StatusCode != 204 || res.Header.Get("X-Envd-Version") != envd.Version {
		t.Fatalf("init: %d %v", res.StatusCode, res.Header)
	}
	res, data := b.do("POST", "/init", body(map[string]any{"accessToken": "b"}))
	b.wantFail(res, data, 401, "token")
	res, data = b.do("POST", "/init", body(map[string]any{}))
	b.wantFail(res, data, 401, "token")
	if res, _ = b.do("POST", "/init", body(map[string]any{"accessToken": "a", "envVars": map[string]string{"C": "3"}})); res.StatusCode != 204 {
		t.Fatalf("second init: %d", res.StatusCode)
	}
	_, data = b.do("GET", "/envs", nil, "X-Access-Token", "a")
	var env map[string]string
	if err := json.Unmarshal(data, &env); err != nil {
		t.Fatal(err)
	}
	if env["C"] != "3" || env["A"] != "" || env["E2B_SANDBOX"] != "true" || env["E2B_SANDBOX_ID"] != "i123" {
		t.Fatalf("envs: %v", env)
	}
	for text, bad := range map[string]any{"does not exist": map[string]any{"accessToken": "a", "defaultUser": "nobody-here"}, "cannot be passed": map[string]any{"accessToken": "a", "envVars": map[string]string{"A=": ""}}, "JSON": "x"} {
		res, data = b.do("POST", "/init", body(bad))
		b.wantFail(res, data, 400, text)
	}
}

func TestMetrics_HaveAllFields(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	_, data := b.do("GET", "/metrics", nil)
	var m map[string]float64
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache", "mem_total_mib", "mem_used_mib", "disk_used", "disk_total"} {
		if _, ok := m[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if m["cpu_count"] < 1 || m["mem_total"] < 1 || m["disk_total"] < 1 || m["mem_used"] > m["mem_total"] {
		t.Fatalf("implausible: %v", m)
	}
}

func TestUnknownEndpoint_Is404JSON(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	res, data := b.do("GET", "/nope", nil)
	b.wantFail(res, data, 404, "/nope")
}

func TestCORS_PreflightIsAnsweredWithoutAToken(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{AccessToken: "secret"})
	res, _ := b.do("OPTIONS", "/process.Process/List", nil, "Origin", "https://x.test", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "connect-protocol-version")
	if res.StatusCode != 204 || res.Header.Get("Access-Control-Allow-Origin") != "*" || res.Header.Get("Access-Control-Allow-Headers") == "" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
}

func TestBasicAuth_UnknownUserIsUnauthenticated(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		req := connect.NewRequest(shell("true"))
		req.Header().Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("nobody-here:")))
		stream, err := b.procs.Start(bounded(t), req)
		if err == nil {
			stream.Receive()
			err = stream.Err()
		}
		wantCode(t, err, connect.CodeUnauthenticated, "nobody-here")
		var coded *connect.Error
		if !errors.As(err, &coded) {
			t.Fatalf("not a connect error: %v", err)
		}
	})
}
