package e2bgo_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsquad/e2b"
	"agentsquad/test/e2bsdk/e2btest"
)

// TestClient_OnRealSandboxes tells one long story per codec, since a sandbox is
// dearer than an assertion.
func TestClient_OnRealSandboxes(t *testing.T) {
	t.Parallel()
	stack := e2btest.Start(t)
	for name, json := range map[string]bool{"proto": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			c := connect(t, stack.URL, json)
			sb, err := c.Create(ctx, e2b.CreateOptions{Timeout: 5 * time.Minute, Metadata: map[string]string{"codec": name}, Env: map[string]string{"GLOBAL": "g"}})
			if err != nil {
				t.Fatal(err)
			}
			commands(ctx, t, sb)
			files(ctx, t, sb)
			ports(ctx, t, sb)
			lifecycle(ctx, t, c, sb)
		})
	}
}

func commands(ctx context.Context, t *testing.T, sb *e2b.Sandbox) {
	t.Helper()
	if res, err := sb.Commands.Run(ctx, `echo "$GLOBAL $USER $PWD"; exit 0`, e2b.CommandOptions{}); err != nil || res.Stdout != "g user /home/user\n" {
		t.Errorf("run = %+v, %v", res, err)
	}
	if res, err := sb.Commands.Run(ctx, "id -u", e2b.CommandOptions{User: "root"}); err != nil || res.Stdout != "0\n" {
		t.Errorf("as root = %+v, %v", res, err)
	}
	var exit *e2b.CommandExitError
	if _, err := sb.Commands.Run(ctx, "exit 9", e2b.CommandOptions{}); !errors.As(err, &exit) || exit.ExitCode != 9 {
		t.Errorf("exit = %v", err)
	}
	if _, err := sb.Commands.Run(ctx, "sleep 60", e2b.CommandOptions{Timeout: 500 * time.Millisecond}); !errors.Is(err, e2b.ErrTimeout) {
		t.Errorf("timeout = %v", err)
	}
	if res, err := sb.Commands.Run(ctx, "sort -r", e2b.CommandOptions{Stdin: strings.NewReader("a\nb\n")}); err != nil || res.Stdout != "b\na\n" {
		t.Errorf("stdin = %+v, %v", res, err)
	}
	term, err := sb.Pty.Start(ctx, e2b.PtyOptions{Size: e2b.Size{Cols: 90, Rows: 25}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(term, "stty size; whoami; exit\n"); err != nil {
		t.Error(err)
	}
	if screen, err := io.ReadAll(term); err != nil || !strings.Contains(string(screen), "25 90") {
		t.Errorf("terminal = %q, %v", screen, err)
	}
}

func files(ctx context.Context, t *testing.T, sb *e2b.Sandbox) {
	t.Helper()
	w, err := sb.Files.Watch(ctx, "/home/user", e2b.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := sb.Files.WriteAll(ctx, "dir/file", []byte("text")); err != nil || info.Path != "/home/user/dir/file" {
		t.Errorf("write = %+v, %v", info, err)
	}
	for event, err := range w.Events() {
		if err != nil || event.Name != "dir" {
			t.Errorf("watch = %+v, %v", event, err)
		}
		break
	}
	w.Close()
	if info, err := sb.Files.Stat(ctx, "dir/file"); err != nil || info.Owner != "user" || info.Size != 4 {
		t.Errorf("stat = %+v, %v", info, err)
	}
	resp, err := http.Get(sb.Files.DownloadURL("dir/file", e2b.URLOptions{Expires: time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "text" {
		t.Errorf("signed address = %d %s", resp.StatusCode, body)
	}
	if _, err := sb.Files.ReadAll(ctx, "nope"); !errors.Is(err, e2b.ErrNotFound) {
		t.Errorf("missing file: %v", err)
	}
}

func ports(ctx context.Context, t *testing.T, sb *e2b.Sandbox) {
	t.Helper()
	if _, err := sb.Commands.Run(ctx, "command -v python3", e2b.CommandOptions{}); err != nil {
		t.Log("ports not tried: no python3 on this host to serve one inside")
		return
	}
	p, err := sb.Commands.Start(ctx, "exec python3 -u -m http.server 8123 --directory /home/user/dir 2>&1", e2b.CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill(ctx)
	var body []byte
	for range 100 {
		resp, err := sb.HTTPClient(8123).Get("http://sandbox/file")
		if err != nil {
			t.Fatal(err)
		}
		body, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if string(body) != "text" {
		t.Errorf("port through the proxy = %s", body)
	}
	conn, err := sb.DialPort(ctx, 8123)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /file HTTP/1.0\r\n\r\n")
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "text") {
		t.Errorf("port by connection = %q, %v", answer, err)
	}
	if _, err := sb.DialPort(ctx, 9); !errors.Is(err, e2b.ErrPortClosed) {
		t.Errorf("closed port: %v", err)
	}
}

func lifecycle(ctx context.Context, t *testing.T, c *e2b.Client, sb *e2b.Sandbox) {
	t.Helper()
	if _, err := sb.Commands.Start(ctx, "i=0; while sleep 0.1; do i=$((i+1)); echo $i > count; done", e2b.CommandOptions{Tag: "counter"}); err != nil {
		t.Fatal(err)
	}
	if err := sb.Pause(ctx, e2b.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Commands.Run(ctx, "true", e2b.CommandOptions{}); !errors.Is(err, e2b.ErrSandboxGone) {
		t.Errorf("command in a paused sandbox: %v", err)
	}
	if err := sb.Resume(ctx, e2b.ConnectOptions{Timeout: 5 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	if list, err := sb.Commands.List(ctx); err != nil || len(list) != 1 || list[0].Tag != "counter" {
		t.Errorf("processes after resume = %+v, %v", list, err)
	}
	forks, err := sb.Fork(ctx, e2b.ForkOptions{Count: 2})
	if err != nil || len(forks) != 2 {
		t.Fatalf("fork = %v, %v", forks, err)
	}
	for i, fork := range forks {
		if _, err := fork.Files.WriteAll(ctx, "mine", []byte{byte('0' + i)}); err != nil {
			t.Error(err)
		}
	}
	if found, err := sb.Files.Exists(ctx, "mine"); found || err != nil {
		t.Errorf("a fork writes into its origin: %v, %v", found, err)
	}
	snap, err := sb.Snapshot(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Create(ctx, e2b.CreateOptions{Template: snap.ID})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := again.Files.ReadAll(ctx, "dir/file"); err != nil || string(data) != "text" {
		t.Errorf("of a snapshot: %q, %v", data, err)
	}
	if found, err := c.DeleteSnapshot(ctx, snap.ID); !found || err != nil {
		t.Errorf("delete snapshot = %v, %v", found, err)
	}
	p, err := sb.Commands.Start(ctx, "exec sleep 600", e2b.CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range append(forks, again, sb) {
		if err := one.Kill(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Wait(); !errors.Is(err, e2b.ErrSandboxGone) {
		t.Errorf("stream of a killed sandbox: %v", err)
	}
	if _, err := c.Get(ctx, sb.ID); !errors.Is(err, e2b.ErrSandboxGone) {
		t.Errorf("get of a killed sandbox: %v", err)
	}
}
