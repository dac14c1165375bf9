package e2b_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
)

func TestFiles_WriteReadStatListMoveRemove(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		ctx, dir := t.Context(), t.TempDir()
		info, err := sb.Files.WriteAll(ctx, dir+"/a/b é.txt", []byte("hello"))
		if err != nil || info.Name != "b é.txt" {
			t.Fatalf("write = %+v, %v", info, err)
		}
		if data, err := sb.Files.ReadAll(ctx, dir+"/a/b é.txt"); err != nil || string(data) != "hello" {
			t.Errorf("read = %q, %v", data, err)
		}
		part, err := sb.Files.Read(ctx, dir+"/a/b é.txt", e2b.ReadOptions{Offset: 1, Length: 3})
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := io.ReadAll(part); string(data) != "ell" || part.Size != 3 {
			t.Errorf("part = %q of %d", data, part.Size)
		}
		part.Close()
		if info, err = sb.Files.Stat(ctx, dir+"/a/b é.txt"); err != nil || info.Size != 5 || info.Type != e2b.TypeFile || info.Mode != 0o644 {
			t.Errorf("stat = %+v, %v", info, err)
		}
		if _, err := sb.Files.WithMetadata(map[string]string{"kind": "note"}).WriteAll(ctx, dir+"/a/m", nil); err != nil {
			t.Logf("metadata not tried, this file system has no user attributes: %v", err)
		} else if info, err := sb.Files.Stat(ctx, dir+"/a/m"); err != nil || info.Metadata["kind"] != "note" {
			t.Errorf("metadata = %v, %v", info.Metadata, err)
		}
		if err := sb.Files.Remove(ctx, dir+"/a/m"); err != nil {
			t.Error(err)
		}
		for _, want := range []bool{true, false} {
			if made, err := sb.Files.MakeDir(ctx, dir+"/c"); made != want || err != nil {
				t.Errorf("mkdir = %v, %v, want %v", made, err, want)
			}
		}
		if _, err := sb.Files.Move(ctx, dir+"/a/b é.txt", dir+"/c/d"); err != nil {
			t.Error(err)
		}
		infos, err := sb.Files.List(ctx, dir, 2)
		var names []string
		for _, i := range infos {
			names = append(names, strings.TrimPrefix(i.Path, dir))
		}
		slices.Sort(names)
		if err != nil || !slices.Equal(names, []string{"/a", "/c", "/c/d"}) {
			t.Errorf("list = %v, %v", names, err)
		}
		if err := sb.Files.Remove(ctx, dir+"/c"); err != nil {
			t.Error(err)
		}
		if found, err := sb.Files.Exists(ctx, dir+"/c/d"); found || err != nil {
			t.Errorf("exists = %v, %v", found, err)
		}
		if _, err := sb.Files.ReadAll(ctx, dir+"/c/d"); !errors.Is(err, e2b.ErrNotFound) {
			t.Errorf("read of a missing file: %v", err)
		}
		if _, err := sb.Files.List(ctx, dir+"/nope", 1); !errors.Is(err, e2b.ErrNotFound) {
			t.Errorf("list of a missing directory: %v", err)
		}
	})
}

func TestFiles_LargeAndManyAreStreamed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		ctx, dir := t.Context(), t.TempDir()
		const size = 64 << 20
		sent := sha256.New()
		random := io.LimitReader(rand.NewChaCha8([32]byte{1}), size)
		if _, err := sb.Files.Write(ctx, dir+"/big", io.TeeReader(random, sent)); err != nil {
			t.Fatal(err)
		}
		r, err := sb.Files.Read(ctx, dir+"/big", e2b.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got := sha256.New()
		if n, err := io.Copy(got, r); err != nil || n != size || r.Size != size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
			t.Errorf("read back %d of %d bytes: %v", n, r.Size, err)
		}
		infos, err := sb.Files.WriteMany(ctx, func(yield func(string, io.Reader) bool) {
			for i := range 50 {
				if !yield(fmt.Sprintf("%s/many/\"%d\"", dir, i), strings.NewReader(strconv.Itoa(i))) {
					return
				}
			}
		})
		if err != nil || len(infos) != 50 {
			t.Fatalf("write many = %d, %v", len(infos), err)
		}
		if data, err := sb.Files.ReadAll(ctx, dir+`/many/"49"`); err != nil || string(data) != "49" {
			t.Errorf("read = %q, %v", data, err)
		}
	})
}

func TestWatch_SeesChangesUntilClosed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		ctx, dir := t.Context(), t.TempDir()
		w, err := sb.Files.Watch(ctx, dir, e2b.WatchOptions{Recursive: true, WithInfo: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sb.Files.WriteAll(ctx, dir+"/new", []byte("x")); err != nil {
			t.Fatal(err)
		}
		seen := map[e2b.FileEventType]bool{}
		for event, err := range w.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if event.Name != "new" {
				t.Errorf("event of %q", event.Name)
			}
			seen[event.Type] = true
			if event.Type == e2b.FileWritten {
				w.Close()
			}
		}
		if !seen[e2b.FileCreated] || !seen[e2b.FileWritten] {
			t.Errorf("seen = %v", seen)
		}
		if _, err := sb.Files.Watch(ctx, dir+"/new", e2b.WatchOptions{}); !errors.Is(err, e2b.ErrInvalid) {
			t.Errorf("watch of a file: %v", err)
		}
		ended, cancel := context.WithCancel(ctx)
		if w, err = sb.Files.Watch(ended, dir, e2b.WatchOptions{}); err != nil {
			t.Fatal(err)
		}
		cancel()
		for _, err := range w.Events() {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("end of context: %v", err)
			}
		}
	})
}

func TestSignedURL_OpensOneFileWithoutAKey(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *e2btest.Server, sb *e2b.Sandbox) {
		ctx, path := t.Context(), t.TempDir()+"/f"
		if _, err := sb.Files.WriteAll(ctx, path, []byte("open")); err != nil {
			t.Fatal(err)
		}
		fetch := func(address string) (int, string) {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			req.Header.Set("E2b-Sandbox-Id", sb.ID) // what the host name says elsewhere
			req.Header.Set("E2b-Sandbox-Port", "49983")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(body)
		}
		signed := sb.Files.DownloadURL(path, e2b.URLOptions{Expires: time.Minute})
		if status, body := fetch(signed); status != 200 || body != "open" {
			t.Errorf("signed = %d %s", status, body)
		}
		u, _ := url.Parse(signed)
		q := u.Query()
		q.Set("path", path+"x")
		u.RawQuery = q.Encode()
		if status, _ := fetch(u.String()); status != 401 {
			t.Errorf("changed path = %d, want 401", status)
		}
	})
}

func TestPorts_HTTPWebSocketAndPlainTCP(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, _ *e2btest.Server, sb *e2b.Sandbox) {
		inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/ws" {
				fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
				return
			}
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			kind, data, _ := ws.Read(r.Context())
			_ = ws.Write(r.Context(), kind, bytes.ToUpper(data))
			ws.Close(websocket.StatusNormalClosure, "")
		}))
		defer inside.Close()
		port := inside.Listener.Addr().(*net.TCPAddr).Port
		resp, err := sb.HTTPClient(port).Get("http://anything/path")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "GET /path" {
			t.Errorf("http = %s", body)
		}
		ws, _, err := websocket.Dial(t.Context(), "http://anything/ws", &websocket.DialOptions{HTTPClient: sb.HTTPClient(port)})
		if err != nil {
			t.Fatal(err)
		}
		_ = ws.Write(t.Context(), websocket.MessageText, []byte("shout"))
		if _, data, err := ws.Read(t.Context()); err != nil || string(data) != "SHOUT" {
			t.Errorf("websocket = %s, %v", data, err)
		}
		ws.CloseNow()
		conn, err := sb.DialPort(t.Context(), port)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /raw HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "GET /raw") {
			t.Errorf("tcp = %q, %v", answer, err)
		}
		conn.Close()
		waitFor(t, "the carrier of the connection to be gone", func() bool {
			list, err := sb.Commands.List(t.Context())
			return err == nil && len(list) == 0
		})
		inside.Close()
		if _, err := sb.DialPort(t.Context(), port); !errors.Is(err, e2b.ErrPortClosed) {
			t.Errorf("closed port: %v", err)
		}
	})
}

// TestPorts_WebSocketBesideHTTP2 speaks to a server that offers HTTP/2, as the
// cloud does: requests may use it, upgrades cannot.
func TestPorts_WebSocketBesideHTTP2(t *testing.T) {
	t.Parallel()
	cloud := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("E2b-Sandbox-Port") != "3000" {
			http.Error(w, "wrong port", http.StatusBadRequest)
			return
		}
		if r.Header.Get("Upgrade") == "" {
			fmt.Fprint(w, r.Proto)
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_ = ws.Write(r.Context(), websocket.MessageText, []byte("hello"))
		ws.Close(websocket.StatusNormalClosure, "")
	}))
	cloud.EnableHTTP2 = true
	cloud.StartTLS()
	defer cloud.Close()
	c, err := e2b.New(e2b.Config{APIKey: "k", APIURL: cloud.URL, SandboxURL: cloud.URL, HTTPClient: cloud.Client()})
	if err != nil {
		t.Fatal(err)
	}
	inside := c.Open(e2b.SandboxInfo{ID: "i1"}).HTTPClient(3000)
	for range 2 { // the second after the first has settled on HTTP/2
		resp, err := inside.Get("http://x/")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(text) != "HTTP/2.0" {
			t.Errorf("plain request went by %s", text)
		}
		ws, _, err := websocket.Dial(t.Context(), "http://x/ws", &websocket.DialOptions{HTTPClient: inside})
		if err != nil {
			t.Fatal(err)
		}
		if _, data, err := ws.Read(t.Context()); err != nil || string(data) != "hello" {
			t.Errorf("websocket = %s, %v", data, err)
		}
		ws.CloseNow()
	}
}
