package envd_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"agentsquad/internal/envd"
	"agentsquad/internal/envdpb/filesystem"
)

func (b *box) put(path, content string, header ...string) []byte {
	b.t.Helper()
	res, data := b.do("POST", "/files?path="+url.QueryEscape(path), strings.NewReader(content), append([]string{"Content-Type", "application/octet-stream"}, header...)...)
	if res.StatusCode != 200 {
		b.t.Fatalf("put %s: %d %s", path, res.StatusCode, data)
	}
	return data
}

func zipped(data []byte) *bytes.Buffer {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(data)
	z.Close()
	return &out
}

func TestFiles_WriteThenRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, envd.Config{})
	path := filepath.Join(dir, "a/b/ö ä.txt")
	reply := b.put(path, "hello")
	var list []map[string]any
	if err := json.Unmarshal(reply, &list); err != nil || len(list) != 1 || list[0]["path"] != path || list[0]["name"] != "ö ä.txt" || list[0]["type"] != "file" {
		t.Fatalf("reply %s", reply)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Fatalf("%v %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("parent: %v %v", info, err)
	}
	b.put(path, "hi") // shorter: the old end must go
	res, data := b.do("GET", "/files?path="+url.QueryEscape(path), nil)
	if res.StatusCode != 200 || string(data) != "hi" || res.Header.Get("Vary") != "Accept-Encoding" || !strings.HasPrefix(res.Header.Get("Content-Disposition"), "inline; filename") {
		t.Fatalf("%d %q %v", res.StatusCode, data, res.Header)
	}
}

func TestFiles_RangeAndGzip(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	path := filepath.Join(t.TempDir(), "x.txt")
	text := strings.Repeat("0123456789", 1000)
	b.put(path, text)
	q := "/files?path=" + url.QueryEscape(path)
	res, data := b.do("GET", q, nil, "Range", "bytes=10-14", "Accept-Encoding", "gzip")
	if res.StatusCode != 206 || string(data) != "01234" || res.Header.Get("Content-Encoding") != "" {
		t.Fatalf("range: %d %q", res.StatusCode, data)
	}
	for header, zip := range map[string]bool{"gzip, deflate": true, "identity": false, "": false, "gzip;q=0.1, identity": false, "*": false, "identity;q=0, gzip;q=0.5": true} {
		res, data = b.do("GET", q, nil, "Accept-Encoding", header)
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != zip {
			t.Fatalf("%q: gzip %v, want %v", header, got, zip)
		}
		if zip {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			data, _ = io.ReadAll(z)
		}
		if string(data) != text {
			t.Fatalf("%q: the content differs", header)
		}
	}
	res, data = b.do("GET", q, nil, "Accept-Encoding", "identity;q=0, br")
	b.wantFail(res, data, 406, "encoding")
}

func TestFiles_ReadFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, envd.Config{DefaultWorkdir: dir})
	fifo := filepath.Join(dir, "fifo")
	syscall.Mkfifo(fifo, 0o600)
	for _, c := range []struct {
		path   string
		status int
		text   string
	}{
		{"/no/such", 404, "path '/no/such' does not exist"},
		{dir, 400, "is a directory"},
		{"", 400, "is a directory"},
		{fifo, 400, "not a regular file"},
		{"~other/x", 400, "another user"},
		{"a\x00b", 400, "zero byte"},
		{"/" + strings.Repeat("a/", 3000), 400, "longer"},
		{"/etc/passwd/x", 404, "does not exist"},
	} {
		res, data := b.do("GET", "/files?path="+url.QueryEscape(c.path), nil)
		b.wantFail(res, data, c.status, c.text)
	}
	res, data := b.do("GET", "/files?path=x&username=nobody-here", nil)
	b.wantFail(res, data, 401, "nobody-here")
}

func TestFiles_VirtualFilesHaveContent(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	if _, data := b.do("GET", "/files?path=/proc/self/status", nil); !bytes.Contains(data, []byte("Pid:")) {
		t.Fatalf("%q", data)
	}
}

// form builds a multipart body; the pairs are part name, file name, content.
func form(parts ...string) (*bytes.Buffer, string) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i < len(parts); i += 3 {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf("form-data; name=%q; filename=%q", parts[i], parts[i+1]))
		p, _ := w.CreatePart(h)
		io.WriteString(p, parts[i+2])
	}
	w.Close()
	return &body, w.FormDataContentType()
}

func TestUpload_Forms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, envd.Config{})
	one, two := filepath.Join(dir, "d/one"), filepath.Join(dir, "two")
	body, kind := form("file", one, "1", "ignored", "/etc/never", "x", "file", two, "2")
	res, data := b.do("POST", "/files", zipped(body.Bytes()), "Content-Type", kind, "Content-Encoding", "gzip")
	var list []map[string]any
	if json.Unmarshal(data, &list); res.StatusCode != 200 || len(list) != 2 || list[1]["path"] != two {
		t.Fatalf("%d %s", res.StatusCode, data)
	}
	for path, want := range map[string]string{one: "1", two: "2"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("%s: %q %v", path, got, err)
		}
	}
	body, kind = form("file", "other-name", "by query")
	res, data = b.do("POST", "/files?path="+url.QueryEscape(one), body, "Content-Type", kind)
	if got, _ := os.ReadFile(one); res.StatusCode != 200 || string(got) != "by query" {
		t.Fatalf("%d %s %q", res.StatusCode, data, got)
	}
	body, kind = form("file", one, "first", "file", one, "second")
	res, data = b.do("POST", "/files", body, "Content-Type", kind)
	b.wantFail(res, data, 400, "same path")
}

func TestUpload_Failures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, envd.Config{})
	file := filepath.Join(dir, "f")
	os.WriteFile(file, nil, 0o600)
	octet := "application/octet-stream"
	for _, c := range []struct {
		query, kind, encoding, text string
		body                        io.Reader
	}{
		{"?path=" + dir, octet, "", "directory", strings.NewReader("x")},
		{"", octet, "", "path is required", strings.NewReader("x")},
		{"?path=" + file, "text/plain", "", "unsupported Content-Type", strings.NewReader("x")},
		{"?path=" + file, "", "", "Content-Type", strings.NewReader("x")},
		{"?path=" + file, octet, "br", "unsupported Content-Encoding", strings.NewReader("x")},
		{"?path=" + file, octet, "gzip", "gzip", strings.NewReader("not gzip")},
		{"?path=" + file, octet, "gzip", "malformed", bytes.NewReader(zipped(make([]byte, 9999)).Bytes()[:20])},
		{"?path=" + file + "/x", octet, "", "not a directory", strings.NewReader("x")},
		{"", "multipart/form-data; boundary=x", "", "malformed", strings.NewReader("junk")},
	} {
		res, data := b.do("POST", "/files"+c.query, c.body, "Content-Type", c.kind, "Content-Encoding", c.encoding)
		b.wantFail(res, data, 400, c.text)
	}
}

func TestUpload_FullDiskIs507(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs a small tmpfs: run the tests as root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a tmpfs (%v): run where mount(2) is allowed", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	b := start(t, envd.Config{})
	big, old := filepath.Join(dir, "big"), filepath.Join(dir, "old")
	b.put(old, "old")
	bomb := zipped(make([]byte, 4<<20)).Bytes()
	for _, path := range []string{big, old} {
		res, data := b.do("POST", "/files?path="+path, io.LimitReader(rand.Reader, 4<<20), "Content-Type", "application/octet-stream")
		b.wantFail(res, data, 507, "space")
		res, data = b.do("POST", "/files?path="+path, bytes.NewReader(bomb), "Content-Type", "application/octet-stream", "Content-Encoding", "gzip")
		b.wantFail(res, data, 507, "space")
	}
	// Half a file would leave no room for anything else.
	if _, err := os.Stat(big); !os.IsNotExist(err) {
		t.Errorf("half a file is left: %v", err)
	}
	b.put(filepath.Join(dir, "next"), strings.Repeat("x", 1<<19))
}

func TestMetadata_IsReplacedByEachUpload(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{})
	path := filepath.Join(t.TempDir(), "m")
	reply := b.put(path, "x", "X-Metadata-Author", "Ann", "X-Metadata-Kind", "draft")
	if !strings.Contains(string(reply), `"author":"Ann"`) {
		t.Fatalf("reply: %s", reply)
	}
	if m := b.stat(path).GetMetadata(); len(m) != 2 || m["author"] != "Ann" || m["kind"] != "draft" {
		t.Fatalf("metadata: %v", m)
	}
	b.put(path, "y", "X-Metadata-Kind", "final")
	if m := b.stat(path).GetMetadata(); len(m) != 1 || m["kind"] != "final" {
		t.Fatalf("metadata: %v", m)
	}
	b.put(path, "z")
	if m := b.stat(path).GetMetadata(); len(m) != 0 {
		t.Fatalf("metadata: %v", m)
	}
	for name, value := range map[string]string{"X-Metadata-" + strings.Repeat("k", 247): "v", "X-Metadata-Big": strings.Repeat("v", 4097), "X-Metadata-Odd": "\xff"} {
		res, data := b.do("POST", "/files?path="+path, strings.NewReader("x"), "Content-Type", "application/octet-stream", name, value)
		b.wantFail(res, data, 400, "etadata")
	}
}

func (b *box) stat(path string) *filesystem.EntryInfo {
	b.t.Helper()
	res, err := b.files.Stat(bounded(b.t), connect.NewRequest(&filesystem.StatRequest{Path: path}))
	if err != nil {
		b.t.Fatal(err)
	}
	return res.Msg.GetEntry()
}

func TestSignature_PublishedVector(t *testing.T) {
	t.Parallel()
	got := envd.Signature("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", 0)
	if got != "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E" {
		t.Fatal(got)
	}
}

func TestFiles_TokenOrSignature(t *testing.T) {
	t.Parallel()
	b := start(t, envd.Config{AccessToken: "secret"})
	path := filepath.Join(t.TempDir(), "f")
	b.put(path, "hi", "X-Access-Token", "secret")
	signed := func(op, token string, expires int64) string {
		q := url.Values{"path": {path}, "username": {me(t)}, "signature": {envd.Signature(path, op, me(t), token, expires)}}
		if expires != 0 {
			q.Set("signature_expiration", strconv.FormatInt(expires, 10))
		}
		return "/files?" + q.Encode()
	}
	hour := time.Now().Add(time.Hour).Unix()
	for _, expires := range []int64{0, hour} {
		if res, data := b.do("GET", signed("read", "secret", expires), nil); res.StatusCode != 200 || string(data) != "hi" {
			t.Fatalf("%d %s", res.StatusCode, data)
		}
	}
	if res, data := b.do("POST", signed("write", "secret", hour), strings.NewReader("new"), "Content-Type", "application/octet-stream"); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, data)
	}
	for _, c := range []struct{ url, text string }{
		{"/files?path=" + path, "missing signature"},
		{signed("write", "secret", 0), "invalid signature"},
		{signed("read", "other", 0), "invalid signature"},
		{signed("read", "secret", time.Now().Add(-time.Hour).Unix()), "signature is already expired"},
		{signed("read", "secret", 0) + "&signature_expiration=" + strconv.FormatInt(hour, 10), "invalid signature"},
		{signed("read", "secret", 0) + "&signature_expiration=soon", "expiration"},
	} {
		res, data := b.do("GET", c.url, nil)
		b.wantFail(res, data, 401, c.text)
	}
	res, data := b.do("GET", signed("read", "secret", 0), nil, "X-Access-Token", "wrong")
	b.wantFail(res, data, 401, "does not match")
}

func TestCompose_JoinsAndRemovesTheSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, envd.Config{})
	var names []string
	for i, text := range []string{"a", "b", "c"} {
		names = append(names, filepath.Join(dir, strconv.Itoa(i)))
		os.WriteFile(names[i], []byte(text), 0o600)
	}
	to := filepath.Join(dir, "sub/all")
	body, _ := json.Marshal(map[string]any{"source_paths": names, "destination": to})
	res, data := b.do("POST", "/files/compose", bytes.NewReader(body), "Content-Type", "application/json")
	if got, _ := os.ReadFile(to); res.StatusCode != 200 || string(got) != "abc" || !bytes.Contains(data, []byte("FILE_TYPE_FILE")) {
		t.Fatalf("%d %s %q", res.StatusCode, data, got)
	}
	if _, err := os.Stat(names[0]); err == nil {
		t.Fatal("a source is still there")
	}
	res, data = b.do("POST", "/files/compose", bytes.NewReader(body), "Content-Type", "application/json")
	b.wantFail(res, data, 404, "does not exist")
}
