package e2bserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsquad/e2b"
	"agentsquad/internal/e2bserver"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/gvisor/gvisortest"
	"agentsquad/test/e2bsdk/e2btest"
)

func TestMain(m *testing.M) {
	gvisor.Dispatch()
	gvisortest.Static()
	os.Exit(m.Run())
}

func client(t testing.TB, s *e2btest.Stack, key string) *e2b.Client {
	t.Helper()
	c, err := e2b.New(e2b.Config{APIKey: key, APIURL: s.URL, SandboxURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t testing.TB, c *e2b.Client, opts e2b.CreateOptions) *e2b.Sandbox {
	t.Helper()
	sb, err := c.Create(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// sh runs a line in a sandbox and returns its output.
func sh(t testing.TB, sb *e2b.Sandbox, line string, args ...any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := sb.Commands.Run(ctx, fmt.Sprintf(line, args...), e2b.CommandOptions{})
	if err != nil {
		t.Fatalf("run %q: %v", line, err)
	}
	return strings.TrimSpace(res.Stdout)
}

func TestRestart_RealSandboxesGoOn(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	var up, stored *e2b.Sandbox
	t.Run("before", func(t *testing.T) {
		s := e2btest.StartIn(t, dir)
		c := client(t, s, e2btest.Key)
		up, stored = start(t, c, e2b.CreateOptions{Timeout: 10 * time.Minute}), start(t, c, e2b.CreateOptions{Timeout: 10 * time.Minute})
		for _, sb := range []*e2b.Sandbox{up, stored} {
			sh(t, sb, "echo kept > file; (setsid sleep 3600 >/dev/null 2>&1 &)")
		}
		if err := stored.Pause(t.Context(), e2b.PauseOptions{}); err != nil {
			t.Fatal(err)
		}
		s.KeepSandboxes = true
	})
	if t.Failed() || up == nil {
		return
	}
	s := e2btest.StartIn(t, dir)
	c := client(t, s, e2btest.Key)
	for _, id := range []string{up.ID, stored.ID} {
		sb, err := c.Connect(t.Context(), id, e2b.ConnectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := sh(t, sb, "cat file; pgrep -c -f 'sleep 360[0]'"); got != "kept\n1" {
			t.Errorf("after the restart %q", got)
		}
	}
}

func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2b") //nolint:usetesting // short: it holds unix sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestInternal_IsServedPerSandbox(t *testing.T) {
	t.Parallel()
	s := e2btest.Start(t, func(c *e2bserver.Config) {
		c.Internal = func(id string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, _ = fmt.Fprintf(w, "%s %s %s", id, r.URL.Path, body)
			})
		}
	})
	c := client(t, s, e2btest.Key)
	for range 2 {
		sb := start(t, c, e2b.CreateOptions{DenyInternet: true})
		if got := sh(t, sb, "curl -s -d sent http://squad.internal/git/x"); got != sb.ID+" /git/x sent" {
			t.Errorf("squad.internal says %q", got)
		}
	}
}

func TestMounts_AreForTheServersOwnKey(t *testing.T) {
	t.Parallel()
	s := e2btest.Start(t)
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "tree.erofs")
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("from the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := gvisor.WriteImage(t.Context(), dir, image, gvisor.ImageOptions{Owned: true, UID: 1000, GID: 1000}); err != nil {
		t.Fatal(err)
	}
	opts := e2b.CreateOptions{Extra: map[string]any{"squadMounts": []map[string]string{{"image": image, "path": "/home/user/repo"}}}}
	if _, err := client(t, s, e2btest.Key).Create(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "squadMounts") {
		t.Errorf("another owner mounts a file of the host: %v", err)
	}
	sb := start(t, client(t, s, e2btest.SquadKey), opts)
	if got := sh(t, sb, "cat repo/hello.txt && echo more >> repo/hello.txt && cat repo/hello.txt"); got != "from the hostfrom the hostmore" {
		t.Errorf("mount shows %q", got)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "hello.txt")); string(data) != "from the host" {
		t.Error("a write inside reached the host")
	}
}

func TestKill_CutsStreamsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := e2btest.Start(t)
	c := client(t, s, e2btest.Key)
	sb := start(t, c, e2b.CreateOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := sb.Commands.Start(ctx, "sleep 600", e2b.CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.Wait()
		ended <- err
	}()
	if err := sb.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a command of a killed sandbox ended well")
	}
	if _, err := c.Get(ctx, sb.ID); !errors.Is(err, e2b.ErrNotFound) {
		t.Errorf("after kill: %v", err)
	}
	if left := s.Runtime.List(); len(left) != 0 {
		t.Errorf("%d sandboxes left", len(left))
	}
	if files, _ := filepath.Glob(filepath.Join(s.Dir, "e2b", "boxes", "*")); len(files) != 0 {
		t.Errorf("state left: %v", files)
	}
}

// stuck is a reader that has stopped reading.
type stuck struct {
	first func()
	until <-chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	s.first()
	<-s.until
	return len(p), nil
}

// TestPrinter_WithoutEndHurtsItselfOnly: one prints to a reader that stopped, one to
// nobody. Neither fills the server's memory or holds up another command.
func TestPrinter_WithoutEndHurtsItselfOnly(t *testing.T) {
	s := e2btest.Start(t)
	sb := start(t, client(t, s, e2btest.Key), e2b.CreateOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	over, full := make(chan struct{}), make(chan struct{})
	unread, err := sb.Commands.Start(ctx, "yes", e2b.CommandOptions{Stdout: stuck{sync.OnceFunc(func() { close(full) }), over}})
	if err != nil {
		t.Fatal(err)
	}
	<-full
	alone, err := sb.Commands.Start(ctx, "yes", e2b.CommandOptions{Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var n int64
	res, err := sb.Commands.Run(ctx, "head -c 8000000 /dev/zero; echo fine >&2", e2b.CommandOptions{Stdout: (*counter)(&n)})
	if err != nil || n != 8000000 || res.Stderr != "fine\n" {
		t.Errorf("beside the printers: %d bytes, %+v, %v", n, res, err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grew := int64(after.HeapAlloc) - int64(before.HeapAlloc); grew > 32<<20 {
		t.Errorf("the server holds %d MiB more", grew>>20)
	}
	if got := sh(t, sb, "pgrep -xc yes; pkill yes; echo over"); got != "2\nover" {
		t.Errorf("the printers themselves: %q", got)
	}
	close(over)
	if _, err := unread.Wait(); err == nil {
		t.Error("a printer that was killed ended well")
	}
}

// TestChaos_RealSandboxesSurviveCrossingVerbs lets several callers pause, resume,
// fork, snapshot and kill the same real sandboxes at once.
func TestChaos_RealSandboxesSurviveCrossingVerbs(t *testing.T) {
	t.Parallel()
	s := e2btest.Start(t)
	c := client(t, s, e2btest.Key)
	var boxes []*e2b.Sandbox
	for range 3 {
		boxes = append(boxes, start(t, c, e2b.CreateOptions{Timeout: time.Hour}))
	}
	verbs := []func(context.Context, *e2b.Sandbox) error{
		func(ctx context.Context, sb *e2b.Sandbox) error { return sb.Pause(ctx, e2b.PauseOptions{}) },
		func(ctx context.Context, sb *e2b.Sandbox) error {
			_, err := c.Connect(ctx, sb.ID, e2b.ConnectOptions{})
			return err
		},
		func(ctx context.Context, sb *e2b.Sandbox) error {
			_, err := sb.Snapshot(ctx, "")
			return err
		},
		func(ctx context.Context, sb *e2b.Sandbox) error {
			forks, err := sb.Fork(ctx, e2b.ForkOptions{Count: 1, Timeout: time.Hour})
			for _, f := range forks {
				if f != nil {
					err = errors.Join(err, firstOutput(ctx, f), f.Kill(ctx))
				}
			}
			return err
		},
		func(ctx context.Context, sb *e2b.Sandbox) error { return firstOutput(ctx, sb) },
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 5 {
				verb := (worker*7 + i*3) % len(verbs)
				err := verbs[verb](t.Context(), boxes[(worker+i)%len(boxes)])
				if errors.Is(err, e2b.ErrConflict) || errors.Is(err, e2b.ErrNotFound) || errors.Is(err, e2b.ErrTimeout) || errors.Is(err, e2b.ErrSandboxGone) {
					continue // in the way of another verb, as documented
				}
				if err != nil && verb != len(verbs)-1 { // a command may be cut by a pause
					t.Errorf("verb %d: %v", verb, err)
				}
			}
		})
	}
	wg.Wait()
	for _, sb := range boxes {
		again, err := c.Connect(t.Context(), sb.ID, e2b.ConnectOptions{})
		if err == nil {
			err = firstOutput(t.Context(), again)
		}
		if err = errors.Join(err, sb.Kill(t.Context())); err != nil {
			t.Errorf("after all: %v", err)
		}
	}
	if left := s.Runtime.List(); len(left) != 0 {
		t.Errorf("%d sandboxes left", len(left))
	}
}
