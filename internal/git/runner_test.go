package git_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
)

// newRunner makes a runner that does not wait between tries.
func newRunner(tb testing.TB) *git.Runner {
	tb.Helper()
	return git.New(git.Config{AllowFile: true, Retry: git.Retry{Sleep: func(context.Context, time.Duration) error { return nil }}})
}

func TestRunner_RepositoryHooksDoNotRun(t *testing.T) {
	t.Parallel()
	dir, marker := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	gittest.Git(t, dir, "init", "-q")
	hook := filepath.Join(dir, ".git", "hooks", "post-checkout")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+marker+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	gittest.Commit(t, dir, "a", "a", "feat: a")
	if _, err := newRunner(t).Line(t.Context(), dir, "checkout", "-q", "-b", "other"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the hook ran")
	}
}

func TestRunner_RefusesOtherTransports(t *testing.T) {
	t.Parallel()
	r := git.New(git.Config{})
	for _, url := range []string{"ext::sh -c 'touch /tmp/x'", "file:///etc", "/etc", "ssh://host/x"} {
		_, err := r.Run(t.Context(), git.Call{Args: []string{"ls-remote", "--", url}})
		if err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%s: got %v", url, err)
		}
		if git.CheckURL(url) == nil {
			t.Errorf("%s: passes as an address", url)
		}
	}
	if git.CheckURL("https://user:pw@host/x") == nil {
		t.Error("an address with credentials passes")
	}
}

func TestRunner_CredentialStaysOutOfArgumentsAndOutput(t *testing.T) {
	t.Parallel()
	secret := "s3cr3t-of-the-forge"
	root := t.TempDir()
	gittest.Bare(t, root, "shop.git", "main")
	srv := gittest.Serve(t, root, secret)
	seen := &spy{}
	r := git.New(git.Config{Exec: seen})
	auth := git.Auth{URL: srv.URL, Secret: secret}
	if _, err := r.Run(t.Context(), git.Call{Args: []string{"ls-remote", "--", srv.URL + "/shop.git"}, Auth: auth}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(seen.argv, " "), secret) {
		t.Error("the secret is an argument")
	}
	if got := srv.Seen.Load().(string); !strings.HasPrefix(got, "Basic ") {
		t.Errorf("the server saw %q", got)
	}
	// Even a program that prints its environment cannot get it past the runner.
	r = git.New(git.Config{Exec: git.Host{}})
	res, err := r.Run(t.Context(), git.Call{Auth: auth, Args: []string{"-c", "alias.leak=!env >&2; exit 3", "leak"}})
	if err == nil || strings.Contains(res.Stderr+err.Error(), secret) || strings.Contains(res.Stderr, "eC1hY2Nlc3M") {
		t.Errorf("leaked: %v\n%s", err, res.Stderr)
	}
	_, err = r.Run(t.Context(), git.Call{Args: []string{"ls-remote", "--", srv.URL + "/shop.git"}})
	if git.KindOf(err) != git.KindAuth {
		t.Errorf("without credential: %v", err)
	}
}

type spy struct {
	git.Host
	argv []string
}

func (s *spy) Run(ctx context.Context, c git.Command) (int, error) {
	s.argv = append(s.argv, c.Argv...)
	return s.Host.Run(ctx, c)
}

func TestRunner_RetriesNetworkErrorsOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	gittest.Bare(t, root, "shop.git", "main")
	srv := gittest.Serve(t, root, "")
	r := newRunner(t)
	srv.Down.Store(2)
	_, tries, err := r.RunRetry(t.Context(), git.Call{Args: []string{"ls-remote", "--", srv.URL + "/shop.git"}})
	if err != nil || tries != 3 {
		t.Errorf("two failures: %d tries, %v", tries, err)
	}
	_, tries, err = r.RunRetry(t.Context(), git.Call{Args: []string{"ls-remote", "--", srv.URL + "/none.git"}})
	if git.KindOf(err) != git.KindNotFound || tries != 1 {
		t.Errorf("missing repository: %d tries, %v", tries, err)
	}
	srv.Down.Store(-1)
	_, tries, err = r.RunRetry(t.Context(), git.Call{Args: []string{"ls-remote", "--", srv.URL + "/shop.git"}})
	if git.KindOf(err) != git.KindNetwork || tries != 4 {
		t.Errorf("server down: %d tries, %v", tries, err)
	}
	if got := squad.CodeOf(git.Explain(err, "read")); got != squad.CodeUnavailable {
		t.Errorf("shown as %s", got)
	}
}

func TestRunner_TimeoutEndsTheProgram(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	_, err := r.Run(t.Context(), git.Call{Args: []string{"-c", "alias.hang=!sleep 60", "hang"}, Timeout: 50 * time.Millisecond})
	if git.KindOf(err) != git.KindTimeout {
		t.Errorf("got %v", err)
	}
}

func TestRefs_OddNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "-x", "a..b", "a b", "a~1", "a^", "a:b", "a.lock", ".a", "a/", "/a", "a//b", "@", "HEAD", "a@{1}", "a\n", "refs/heads/x", "a\\b", "x.lock/y"} {
		if git.ValidBranch(name) {
			t.Errorf("%q passes", name)
		}
	}
	for _, name := range []string{"main", "task-7", "feature/x", "übung", "a.b"} {
		if !git.ValidBranch(name) || !git.ValidRef("refs/heads/"+name) {
			t.Errorf("%q is refused", name)
		}
	}
	for name, want := range map[string]int64{"task-7": 7, "task-07": 0, "task-0": 0, "task--1": 0, "task-7x": 0, "tasks-7": 0} {
		if n, ok := git.TaskNumber(name); n != want || ok != (want != 0) {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
}

func TestParseProgress_ReadsGitsLines(t *testing.T) {
	t.Parallel()
	p, ok := git.ParseProgress("Receiving objects:  41% (41/100), 1.20 MiB | 3.10 MiB/s")
	if !ok || p.Phase != "Receiving objects" || p.Percent != 41 || p.Total != 100 {
		t.Errorf("got %+v, %v", p, ok)
	}
	if p, ok = git.ParseProgress("remote: Counting objects: 100% (3/3), done."); !ok || p.Percent != 100 {
		t.Errorf("got %+v, %v", p, ok)
	}
	if _, ok = git.ParseProgress("fatal: 50% (lost)"); ok {
		t.Error("a failure is not progress")
	}
}
