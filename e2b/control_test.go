package e2b_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
)

func newServer(t *testing.T, opts e2btest.Options) (*e2btest.Server, *e2b.Client) {
	t.Helper()
	opts.Key = "e2b_00"
	s := e2btest.New(opts)
	t.Cleanup(s.Close)
	c, err := e2b.New(e2b.Config{APIKey: "e2b_00", APIURL: s.URL, SandboxURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestLifecycle_EveryVerbReachesTheServer(t *testing.T) {
	t.Parallel()
	s, c := newServer(t, e2btest.Options{})
	ctx := t.Context()
	sb, err := c.Create(ctx, e2b.CreateOptions{
		Timeout: 90 * time.Second, Metadata: map[string]string{"who": "me"}, Env: map[string]string{"A": "1"},
		Lifecycle: &e2b.Lifecycle{Pause: true, AutoResume: true}, Network: &e2b.Network{DenyOut: []string{"0.0.0.0/0"}},
		Extra: map[string]any{"squadMounts": []string{"x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	body := s.Body(sb.ID)
	if body["templateID"] != "base" || body["timeout"] != 90.0 || body["autoPause"] != true || body["squadMounts"] == nil {
		t.Errorf("create body = %v", body)
	}
	info, err := sb.Info(ctx)
	if err != nil || info.State != e2b.StateRunning || info.Metadata["who"] != "me" || info.MemoryMB != 512 {
		t.Errorf("info = %+v, %v", info, err)
	}
	if err := sb.Pause(ctx, e2b.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := sb.Pause(ctx, e2b.PauseOptions{}); err != nil {
		t.Errorf("second pause = %v, want none", err)
	}
	if running, err := sb.Running(ctx); running || err != nil {
		t.Errorf("paused sandbox running = %v, %v", running, err)
	}
	if err := sb.Resume(ctx, e2b.ConnectOptions{}); err != nil {
		t.Fatal(err)
	}
	if running, err := sb.Running(ctx); !running || err != nil {
		t.Errorf("resumed sandbox running = %v, %v", running, err)
	}
	if err := sb.SetTimeout(ctx, time.Hour); err != nil {
		t.Error(err)
	}
	if err := sb.SetNetwork(ctx, e2b.Network{}); err != nil {
		t.Error(err)
	}
	if m, err := sb.Metrics(ctx, time.Time{}, time.Now()); err != nil || len(m) != 1 || m[0].CPUUsedPct != 12.5 || m[0].At.IsZero() {
		t.Errorf("metrics = %v, %v", m, err)
	}
	forks, err := sb.Fork(ctx, e2b.ForkOptions{Count: 2})
	if err != nil || len(forks) != 2 {
		t.Fatalf("fork = %v, %v", forks, err)
	}
	for _, one := range append(forks, sb) {
		if err := one.Kill(ctx); err != nil {
			t.Error(err)
		}
	}
	if found, err := c.Kill(ctx, sb.ID); found || err != nil {
		t.Errorf("second kill = %v, %v, want false and no error", found, err)
	}
	if left := s.Running(); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestSnapshots_CreateListDelete(t *testing.T) {
	t.Parallel()
	_, c := newServer(t, e2btest.Options{})
	sb, err := c.Create(t.Context(), e2b.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := sb.Snapshot(t.Context(), "before")
	if err != nil || !slices.Equal(snap.Names, []string{"before"}) {
		t.Fatalf("snapshot = %v, %v", snap, err)
	}
	var ids []string
	for one, err := range c.Snapshots(t.Context(), e2b.SnapshotOptions{SandboxID: sb.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, one.ID)
	}
	if !slices.Equal(ids, []string{snap.ID}) {
		t.Errorf("snapshots = %v", ids)
	}
	for _, want := range []bool{true, false} {
		if found, err := c.DeleteSnapshot(t.Context(), snap.ID); found != want || err != nil {
			t.Errorf("delete = %v, %v, want %v", found, err, want)
		}
	}
}

func TestList_WalksPagesAndFiltersByMetadata(t *testing.T) {
	t.Parallel()
	s, c := newServer(t, e2btest.Options{PageSize: 3})
	odd := map[string]string{"a b": "c&d=é"}
	for i := range 10 {
		opts := e2b.CreateOptions{}
		if i%2 == 1 {
			opts.Metadata = odd
		}
		if _, err := c.Create(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
	}
	count := func(o e2b.ListOptions) (n int) {
		for _, err := range c.List(t.Context(), o) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if n := count(e2b.ListOptions{}); n != 10 {
		t.Errorf("all = %d, want 10", n)
	}
	if n := count(e2b.ListOptions{Metadata: odd, States: []e2b.State{e2b.StateRunning}}); n != 5 {
		t.Errorf("filtered = %d, want 5", n)
	}
	before := len(s.Requests())
	for range c.List(t.Context(), e2b.ListOptions{}) {
		break
	}
	if asked := len(s.Requests()) - before; asked != 1 {
		t.Errorf("a walk that was left after one item asked for %d pages", asked)
	}
}

func TestOlderServer_IsSpokenToByOlderPaths(t *testing.T) {
	t.Parallel()
	s, c := newServer(t, e2btest.Options{Older: true})
	sb, err := c.Create(t.Context(), e2b.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if body := s.Body(sb.ID); body["secure"] != true || body["timeout"] != 300.0 {
		t.Errorf("older create body = %v", body)
	}
	for _, err := range c.List(t.Context(), e2b.ListOptions{}) {
		if err != nil {
			t.Error(err)
		}
	}
	if err := sb.Pause(t.Context(), e2b.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resume(t.Context(), sb.ID, e2b.ConnectOptions{}); err != nil {
		t.Errorf("resume by the older path: %v", err)
	}
	if _, err := c.Create(t.Context(), e2b.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	newer := 0
	for _, r := range s.Requests() {
		if r == "POST /v2/sandboxes" {
			newer++
		}
	}
	if newer != 1 {
		t.Errorf("the newest create path was tried %d times, want once", newer)
	}
}

func TestErrors_TellTheirKind(t *testing.T) {
	t.Parallel()
	_, c := newServer(t, e2btest.Options{Limit: 1})
	ctx := t.Context()
	if _, err := c.Create(ctx, e2b.CreateOptions{Template: "missing"}); !errors.Is(err, e2b.ErrNotFound) || errors.Is(err, e2b.ErrSandboxGone) {
		t.Errorf("unknown template: %v", err)
	}
	for name, err := range map[string]error{
		"get":     second(c.Get(ctx, "nope")),
		"connect": second(c.Connect(ctx, "nope", e2b.ConnectOptions{})),
		"pause":   c.Pause(ctx, "nope", e2b.PauseOptions{}),
		"timeout": c.SetTimeout(ctx, "nope", 1),
	} {
		if !errors.Is(err, e2b.ErrNotFound) || !errors.Is(err, e2b.ErrSandboxGone) {
			t.Errorf("%s of an unknown sandbox: %v", name, err)
		}
	}
	if _, err := c.Create(ctx, e2b.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(ctx, e2b.CreateOptions{}); !errors.Is(err, e2b.ErrQuota) || errors.Is(err, e2b.ErrRateLimited) {
		t.Errorf("over the limit: %v", err)
	}
	bad, err := e2b.New(e2b.Config{APIKey: "wrong", APIURL: c.APIURL()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Check(ctx); !errors.Is(err, e2b.ErrUnauthorized) {
		t.Errorf("wrong key: %v", err)
	}
	if _, err := e2b.New(e2b.Config{}); !errors.Is(err, e2b.ErrUnauthorized) {
		t.Errorf("no key: %v", err)
	}
	if _, err := c.Create(ctx, e2b.CreateOptions{Lifecycle: &e2b.Lifecycle{AutoResume: true}}); !errors.Is(err, e2b.ErrInvalid) {
		t.Errorf("auto resume without pause: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestRetry_OnlyWhatIsSafe(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method string
		fault  e2btest.Fault
		calls  int64 // until the fault stops
		ok     bool
	}{
		"create after 429 with Retry-After":  {"POST", e2btest.Fault{Status: 429, Header: http.Header{"Retry-After": {"1"}}, Message: "rate"}, 2, true},
		"create after 500 is not repeated":   {"POST", e2btest.Fault{Status: 500}, 1, false},
		"create after a cut is not repeated": {"POST", e2btest.Fault{}, 1, false},
		"list after 503":                     {"GET", e2btest.Fault{Status: 503}, 2, true},
		"list after a cut":                   {"GET", e2btest.Fault{}, 2, true},
		"list after 400 is not repeated":     {"GET", e2btest.Fault{Status: 400}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newServer(t, e2btest.Options{})
			var calls atomic.Int64
			s.Fail(func(*http.Request) *e2btest.Fault {
				if calls.Add(1) == 1 {
					return &test.fault
				}
				return nil
			})
			var err error
			if test.method == "GET" {
				_, err = c.Check(t.Context())
			} else {
				_, err = c.Create(t.Context(), e2b.CreateOptions{})
			}
			if (err == nil) != test.ok || calls.Load() != test.calls {
				t.Errorf("err = %v after %d calls, want ok %v after %d", err, calls.Load(), test.ok, test.calls)
			}
		})
	}
}

func TestLimits_AreWhatAnswersTold(t *testing.T) {
	t.Parallel()
	server := e2btest.New(e2btest.Options{Limit: 1, Header: http.Header{
		"Ratelimit-Limit": {"40000"}, "Ratelimit-Remaining": {"39999"}, "Ratelimit-Reset": {strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10)},
	}})
	t.Cleanup(server.Close)
	c, err := e2b.New(e2b.Config{APIKey: "e2b_00", APIURL: server.URL, SandboxURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Limits(); got != (e2b.Limits{}) {
		t.Fatalf("told before it was asked: %+v", got)
	}
	ctx := t.Context()
	if _, err := c.Create(ctx, e2b.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WithRetries(0).Create(ctx, e2b.CreateOptions{}); !errors.Is(err, e2b.ErrQuota) {
		t.Fatal(err)
	}
	if _, err := c.Check(ctx); err != nil {
		t.Fatal(err)
	}
	server.Fail(func(*http.Request) *e2btest.Fault {
		return &e2btest.Fault{Status: http.StatusBadRequest, Message: "Timeout cannot be greater than 24 hours"}
	})
	if _, err := c.Create(ctx, e2b.CreateOptions{Timeout: 48 * time.Hour}); !errors.Is(err, e2b.ErrInvalid) {
		t.Fatal(err)
	}
	got := c.Limits()
	if got.Reset < 50*time.Second || got.Reset > time.Minute {
		t.Errorf("reset in %s", got.Reset)
	}
	got.Reset = 0
	if want := (e2b.Limits{Running: 1, Concurrent: 1, Lifetime: 24 * time.Hour, Requests: 40000, Remaining: 39999}); got != want {
		t.Errorf("limits = %+v, want %+v", got, want)
	}
}

func TestRateLimit_TellsWhenToComeBack(t *testing.T) {
	t.Parallel()
	s, c := newServer(t, e2btest.Options{})
	s.Fail(func(*http.Request) *e2btest.Fault {
		return &e2btest.Fault{Status: 429, Message: "Rate limit exceeded", Header: http.Header{"Retry-After": {"7"}}}
	})
	_, err := c.WithRetries(0).Create(t.Context(), e2b.CreateOptions{})
	var e *e2b.Error
	if !errors.Is(err, e2b.ErrRateLimited) || !errors.As(err, &e) || e.RetryAfter != 7*time.Second {
		t.Errorf("err = %v", err)
	}
}

func TestTimeout_BoundsACallThatHangs(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, e2btest.Options{})
	c, err := e2b.New(e2b.Config{APIKey: "e2b_00", APIURL: s.URL, SandboxURL: s.URL, RequestTimeout: 50 * time.Millisecond, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.Fail(func(*http.Request) *e2btest.Fault { return &e2btest.Fault{Hang: true} })
	if _, err := c.Create(t.Context(), e2b.CreateOptions{}); !errors.Is(err, e2b.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	if _, err := c.Open(e2b.SandboxInfo{ID: "i1"}).Files.ReadAll(t.Context(), "x"); !errors.Is(err, e2b.ErrTimeout) {
		t.Errorf("reading of a file that hangs: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Create(ctx, e2b.CreateOptions{}); !errors.Is(err, context.Canceled) || errors.Is(err, e2b.ErrTimeout) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAddresses_FollowTheOfficialRule(t *testing.T) {
	t.Parallel()
	env := map[string]string{"E2B_API_KEY": "k", "E2B_DOMAIN": "my.dev"}
	cfg := e2b.ConfigFrom(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	c, err := e2b.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if c.APIURL() != "https://api.my.dev" {
		t.Errorf("api = %s", c.APIURL())
	}
	sb := c.Open(e2b.SandboxInfo{ID: "iabc"})
	if h := sb.Host(3000); h != "3000-iabc.my.dev" {
		t.Errorf("host = %s", h)
	}
	if u := sb.Files.DownloadURL("a b", e2b.URLOptions{}); !strings.HasPrefix(u, "https://49983-iabc.my.dev/files?path=a+b") {
		t.Errorf("download = %s", u)
	}
	if own := c.Open(e2b.SandboxInfo{ID: "i1", Domain: "localhost:8443"}).Host(80); own != "80-i1.localhost:8443" {
		t.Errorf("host of a sandbox with a domain of its own = %s", own)
	}
}
