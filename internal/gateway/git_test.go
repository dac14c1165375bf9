package gateway_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
	"agentsquad/internal/store"
)

func TestGit_CloneAndPushOfTheTasksBranch(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	dir := k.clone(t)
	sha := gittest.Commit(t, dir, "cart.go", "package cart\n", "feat: add a cart")
	k.push(t, false, "origin", k.branch())
	if got := gittest.Git(t, k.bare, "rev-parse", k.branch()); got != sha {
		t.Errorf("upstream has %s", got)
	}
	ops := k.operations(t, "push")
	if len(ops) != 1 || ops[0].Status != "succeeded" || ops[0].ExecutionID != k.execution.ID || ops[0].SandboxID != k.sandbox.ID {
		t.Errorf("operations: %+v", ops)
	}
	if n := len(k.events(t, squad.EventGitOperation)); n < 2 {
		t.Errorf("%d events", n)
	}
	e, err := k.store.Execution(t.Context(), k.execution.ID)
	must(t, err)
	if e.HeadSHA != sha || len(e.CommitHistory) != 1 || e.CommitHistory[0].Subject != "feat: add a cart" {
		t.Errorf("execution: %+v", e)
	}
	// By name, and over 1 MiB so that git sends in chunks after an empty probe.
	gittest.Git(t, dir, "remote", "set-url", "origin", k.url+"/git/acme/shop.git")
	gittest.Commit(t, dir, "noise.bin", noise(3<<20), "feat: add noise")
	k.push(t, false, "origin", k.branch())
	gittest.Git(t, k.bare, "fsck")
}

// noise is content that does not compress.
func noise(n int) string {
	b := make([]byte, n)
	x := uint32(n)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

func TestGit_CheckpointsStayHere(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	dir := k.clone(t)
	// Neither its message nor its content is checked: it goes nowhere.
	sha := gittest.Commit(t, dir, "half.txt", awsKey, "half done")
	ref := "refs/squad/checkpoints/" + k.execution.ID + "/1"
	k.push(t, false, "origin", "HEAD:"+ref)
	if got := k.upstreamRefs(t); got != "refs/heads/main" {
		t.Errorf("upstream has %q", got)
	}
	if got := gittest.Git(t, dir, "ls-remote", "origin", ref); !strings.HasPrefix(got, sha) {
		t.Errorf("ls-remote: %q", got)
	}
	e, err := k.store.Execution(t.Context(), k.execution.ID)
	must(t, err)
	if e.HeadSHA != sha {
		t.Errorf("head is %q", e.HeadSHA)
	}
	// Replaced by an unrelated one, the old commit keeps a name.
	gittest.Git(t, dir, "reset", "-q", "--hard", "HEAD~1")
	gittest.Commit(t, dir, "other.txt", "x", "other")
	k.push(t, false, "origin", "+HEAD:"+ref)
	if got := gittest.Git(t, dir, "ls-remote", "origin", ref+".was-"+sha[:12]); !strings.HasPrefix(got, sha) {
		t.Errorf("the former checkpoint is lost: %q", got)
	}
	// What a checkpoint brought in is still new to the branch, and is checked there.
	gittest.Git(t, dir, "reset", "-q", "--hard", sha)
	if out := k.push(t, true, "origin", k.branch()); !strings.Contains(out, "conventional") {
		t.Errorf("got %s", out)
	}
	// Another execution does not see it.
	other := k.newPlace(t, k.repo)
	srv := httptest.NewServer(k.g.For(other.sandbox.E2BID))
	defer srv.Close()
	if got := gittest.Git(t, dir, "ls-remote", srv.URL+"/git/"+k.repo.ID+".git"); strings.Contains(got, "refs/squad/") {
		t.Errorf("others see %q", got)
	}
}

const awsKey = "aws_access_key_id = AKIA" + "QYLPMN5HHHFPZAM2\n"

func TestGit_AttackersPushesAreRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(c *configT) { c.MaxPushBytes, c.MaxBlobBytes = 4<<20, 8<<20 })
	dir := k.clone(t)
	base := gittest.Git(t, dir, "rev-parse", "main")
	ok := gittest.Commit(t, dir, "ok.txt", "ok\n", "feat: honest work")
	k.push(t, false, "origin", k.branch())
	otherTask := k.newPlace(t, k.repo)
	before := k.upstreamRefs(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"main":            {[]string{"origin", "HEAD:main"}, "may push only"},
		"other task":      {[]string{"origin", "HEAD:" + git.TaskBranch(otherTask.task.Number)}, "may push only"},
		"other branch":    {[]string{"origin", "HEAD:feature"}, "may push only"},
		"tag":             {[]string{"origin", "HEAD:refs/tags/v1"}, "may push only"},
		"force main":      {[]string{"-f", "origin", "HEAD~1:main"}, ""},
		"pending":         {[]string{"origin", "HEAD:refs/squad/pending/x"}, "may push only"},
		"others' storage": {[]string{"origin", "HEAD:refs/squad/checkpoints/" + otherTask.execution.ID + "/1"}, "may push only"},
		"delete own":      {[]string{"origin", ":" + k.branch()}, "delet"},
		"delete main":     {[]string{"origin", ":main"}, "may push only"},
		"both":            {[]string{"origin", "HEAD:" + k.branch() + "2", "HEAD:main"}, "may push only"},
	} {
		args := c.args
		if name == "force main" {
			gittest.Git(t, dir, "checkout", "-q", "--orphan", "evil")
			gittest.Git(t, dir, "commit", "-q", "-m", "feat: evil")
			args = []string{"-f", "origin", "HEAD:main"}
		}
		out := k.push(t, true, args...)
		if !strings.Contains(out, c.want) {
			t.Errorf("%s: %s", name, out)
		}
		gittest.Git(t, dir, "checkout", "-q", "-f", k.branch())
	}
	if got := k.upstreamRefs(t); got != before || gittest.Git(t, k.bare, "rev-parse", "main") != base || gittest.Git(t, k.bare, "rev-parse", k.branch()) != ok {
		t.Errorf("upstream changed from %q to %q", before, got)
	}
}

func TestGit_AttackersContentIsRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(c *configT) { c.MaxPushBytes, c.MaxBlobBytes = 4<<20, 8<<20 })
	dir := k.clone(t)
	ok := gittest.Commit(t, dir, "ok.txt", "ok\n", "feat: honest work")
	k.push(t, false, "origin", k.branch())
	for name, c := range map[string]struct{ file, text, message, want string }{
		"secret":      {"conf/app.ini", "[aws]\n\n" + awsKey, "feat: configure", "conf/app.ini:3"},
		"excused":     {"conf/b.ini", strings.TrimSpace(awsKey) + " # gitleaks:allow\n", "feat: configure", "conf/b.ini:1"},
		"in message":  {"a.txt", "a", "feat: configure\n\n" + awsKey, "commit message"},
		"bad message": {"a.txt", "a", "did stuff", "not a conventional commit"},
		"huge file":   {"zero.bin", strings.Repeat("\x00", 20<<20), "feat: zeros", "zero.bin has 20 MiB"},
	} {
		gittest.Commit(t, dir, c.file, c.text, c.message)
		out := k.push(t, true, "origin", k.branch())
		if !strings.Contains(out, c.want) || strings.Contains(out, "QYLPMN5HHHFPZAM2") {
			t.Errorf("%s: %s", name, out)
		}
		gittest.Git(t, dir, "reset", "-q", "--hard", ok)
	}
	gittest.Commit(t, dir, "noise.bin", noise(6<<20), "feat: large")
	if out := k.push(t, true, "origin", k.branch()); !strings.Contains(out, "larger than the 4 MiB") {
		t.Errorf("large: %s", out)
	}
	if got := gittest.Git(t, k.bare, "rev-parse", k.branch()); got != ok {
		t.Errorf("upstream's branch is at %s", got)
	}
	if entries, err := os.ReadDir(filepath.Join(mirrorDir(t, k), "squad-scratch")); err != nil || len(entries) > 0 {
		t.Errorf("quarantine keeps %d entries, %v", len(entries), err)
	}
	// None of the refused objects entered the mirror.
	if _, err := gittest.Try(mirrorDir(t, k), "cat-file", "-e", gittest.Git(t, dir, "rev-parse", "HEAD")); err == nil {
		t.Error("a refused commit is in the mirror")
	}
}

func mirrorDir(t *testing.T, k *kit) string {
	t.Helper()
	m, err := k.g.Mirror(k.repo)
	must(t, err)
	return m.Dir()
}

func TestGit_OwnCommitsMayBeReplacedOthersMayNot(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	dir := k.clone(t)
	gittest.Commit(t, dir, "a.txt", "a\n", "feat: first")
	k.push(t, false, "origin", k.branch())
	gittest.Git(t, dir, "commit", "-q", "--amend", "-m", "feat: first, better")
	k.push(t, true, "origin", k.branch()) // git itself asks for force
	k.push(t, false, "-f", "origin", k.branch())
	// A person adds a commit upstream.
	person := t.TempDir()
	gittest.Git(t, person, "clone", "-q", k.bare, ".")
	gittest.Git(t, person, "checkout", "-q", k.branch())
	theirs := gittest.Commit(t, person, "review.txt", "please\n", "fix: what review found")
	gittest.Git(t, person, "push", "-q", "origin", k.branch())
	gittest.Git(t, dir, "commit", "-q", "--amend", "-m", "feat: first, even better")
	gittest.Git(t, dir, "fetch", "-q", "origin")
	out := k.push(t, true, "-f", "origin", k.branch())
	if !strings.Contains(out, theirs[:10]) || !strings.Contains(out, "did not make") {
		t.Errorf("got %s", out)
	}
	if got := gittest.Git(t, k.bare, "rev-parse", k.branch()); got != theirs {
		t.Errorf("upstream is at %s", got)
	}
	// Rebased on it, all is well.
	gittest.Git(t, dir, "reset", "-q", "--hard", "origin/"+k.branch())
	gittest.Commit(t, dir, "b.txt", "b\n", "feat: second")
	k.push(t, false, "origin", k.branch())
}

func TestGit_UpstreamDownKeepsCommitsAndTriesAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(c *configT) { c.RetryPending = 1 })
	dir := k.clone(t)
	sha := gittest.Commit(t, dir, "a.txt", "a\n", "feat: first")
	k.upstream.Down.Store(-1)
	out := k.push(t, true, "origin", k.branch())
	if !strings.Contains(out, "kept on the server") {
		t.Errorf("got %s", out)
	}
	if ops := k.operations(t, "push"); len(ops) != 1 || ops[0].Status != "failed" {
		t.Errorf("operations: %+v", ops)
	}
	// Our own client takes it for what it is: worth another try.
	co, err := new(git.Checkouts).Open(git.New(git.Config{Retry: git.Retry{Attempts: 1}}), "sandbox", dir)
	must(t, err)
	if err := co.Push(t.Context(), git.PushOptions{Branch: k.branch()}); squad.CodeOf(err) != squad.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if got := gittest.Git(t, mirrorDir(t, k), "rev-parse", "refs/squad/pending/"+k.branch()); got != sha {
		t.Errorf("pending: %s", got)
	}
	k.upstream.Down.Store(0)
	// A server started anew finds and sends it.
	k.restart(t, func() bool {
		_, err := gittest.Try(mirrorDir(t, k), "rev-parse", "--verify", "-q", "refs/squad/pending/"+k.branch())
		return err != nil
	})
	if got := gittest.Git(t, k.bare, "rev-parse", k.branch()); got != sha {
		t.Errorf("upstream has %s", got)
	}
}

func TestGit_UpstreamsOwnRulesReachTheClient(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.clone(t)
	hook := filepath.Join(k.bare, "hooks", "pre-receive")
	must(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	must(t, os.WriteFile(hook, []byte("#!/bin/sh\necho 'Rule 13: no pushes on Sundays' >&2\nexit 1\n"), 0o755))
	gittest.Commit(t, k.work, "a.txt", "a\n", "feat: first")
	out := k.push(t, true, "origin", k.branch())
	if !strings.Contains(out, "Rule 13: no pushes on Sundays") || strings.Contains(out, "kept on the server") {
		t.Errorf("got %s", out)
	}
	if ops := k.operations(t, "push"); len(ops) != 1 || !strings.Contains(ops[0].OutputTail, "Rule 13") {
		t.Errorf("operations: %+v", ops)
	}
}

func TestGit_LocalForgeIsItsOwnUpstream(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	local := squad.Repository{SquadID: k.squad.ID, Name: "own", Forge: squad.ForgeLocal, DefaultBranch: "main"}
	must(t, k.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.CreateRepository(t.Context(), &local) }))
	bare := gittest.Bare(t, k.cfg.ReposDir, local.ID+".git", "main")
	k.place = k.newPlace(t, local)
	k.repo = local
	srv := httptest.NewServer(k.g.For(k.sandbox.ID))
	defer srv.Close()
	k.url = srv.URL
	dir := k.clone(t)
	sha := gittest.Commit(t, dir, "a.txt", "a\n", "feat: first")
	k.push(t, false, "origin", k.branch())
	if got := gittest.Git(t, bare, "rev-parse", k.branch()); got != sha {
		t.Errorf("got %s", got)
	}
	k.push(t, true, "origin", "HEAD:main")
}

func TestGit_OtherRepositories(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.clone(t)
	ctx := t.Context()
	sibling := squad.Repository{SquadID: k.squad.ID, Name: "acme/lib", Forge: squad.ForgeGitea, URL: k.upstream.URL + "/lib.git", DefaultBranch: "main"}
	stranger := squad.Repository{Name: "rival/secret", Forge: squad.ForgeGitea, URL: k.upstream.URL + "/shop.git", DefaultBranch: "main"}
	must(t, k.store.Tx(ctx, func(tx *store.Tx) error {
		rival := squad.Squad{Name: "Rival", Status: squad.SquadActive}
		if err := tx.CreateSquad(ctx, &rival); err != nil {
			return err
		}
		stranger.SquadID = rival.ID
		if err := tx.CreateRepository(ctx, &stranger); err != nil {
			return err
		}
		return tx.CreateRepository(ctx, &sibling)
	}))
	gittest.Bare(t, k.upstream.Root, "lib.git", "main")
	gittest.Git(t, k.work, "ls-remote", k.url+"/git/acme/lib.git") // of the same squad: to read
	k.push(t, true, k.url+"/git/"+sibling.ID+".git", "HEAD:"+k.branch())
	for _, name := range []string{stranger.ID, "rival/secret", "../../etc", "nothing"} {
		if out, err := gittest.Try(k.work, "ls-remote", k.url+"/git/"+name+".git"); err == nil {
			t.Errorf("%s can be read: %s", name, out)
		}
		k.push(t, true, k.url+"/git/"+name+".git", "HEAD:"+k.branch())
	}
}

func TestPublic_NeedsTheSandboxesOwnToken(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	srv := httptest.NewServer(k.g.Public())
	defer srv.Close()
	secret := k.token(t, k.sandbox.ID)
	address := func(pass string) string {
		return strings.Replace(srv.URL, "http://", "http://sandbox:"+pass+"@", 1) + "/git/" + k.repo.ID + ".git"
	}
	if out, err := gittest.Try(t.TempDir(), "ls-remote", srv.URL+"/git/"+k.repo.ID+".git"); err == nil {
		t.Errorf("without token: %s", out)
	}
	if out, err := gittest.Try(t.TempDir(), "ls-remote", address("wrong")); err == nil {
		t.Errorf("with a wrong token: %s", out)
	}
	k.clone(t)
	gittest.Commit(t, k.work, "a.txt", "a\n", "feat: from the cloud")
	k.push(t, false, address(secret), k.branch())
	k.push(t, true, address(secret), "HEAD:main")
}

func TestGit_EndedSandboxHasNoWayOut(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.clone(t)
	gittest.Commit(t, k.work, "a.txt", "a\n", "feat: late")
	ctx := t.Context()
	must(t, k.store.Tx(ctx, func(tx *store.Tx) error {
		k.execution.Status = squad.ExecutionCancelled
		return tx.UpdateExecution(ctx, &k.execution)
	}))
	k.push(t, true, "origin", k.branch())
	gittest.Git(t, k.work, "fetch", "-q")
	must(t, k.store.Tx(ctx, func(tx *store.Tx) error {
		k.sandbox.Status = squad.SandboxTerminated
		return tx.UpdateSandbox(ctx, &k.sandbox)
	}))
	if out, err := gittest.Try(k.work, "fetch", "-q"); err == nil {
		t.Errorf("read: %s", out)
	}
}
