package git_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
)

// away makes the checkout's own way to the remote useless, so that only what is
// carried arrives.
func (d *desk) away(t *testing.T) *git.Via {
	t.Helper()
	gittest.Git(t, d.dir, "remote", "set-url", "origin", "http://127.0.0.1:1/nowhere.git")
	return &git.Via{Transport: http.DefaultTransport, URL: d.url}
}

func TestPush_CarriedNeedsNoWayOutOfTheCheckout(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	base := d.clone(t, d.co).Head
	via := d.away(t)
	_, err := d.co.Branch(ctx, "task-1", "main")
	must(t, err)
	gittest.Write(t, d.dir, "one.txt", strings.Repeat("one\n", 50_000))
	done, err := d.co.Record(ctx, git.CommitOptions{Message: "feat: one", Author: ada})
	must(t, err)
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-1", Via: via, Head: done.Head, Base: base}))
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-1", Via: via})) // again: nothing to do
	server := filepath.Join(d.Root, "shop.git")
	if got := gittest.Git(t, server, "rev-parse", "task-1"); got != done.Head {
		t.Errorf("the server has %s, want %s", got, done.Head)
	}
	// The next one stands on what was pushed, with no hint of where to begin.
	gittest.Write(t, d.dir, "two.txt", "two\n")
	_, err = d.co.Commit(ctx, git.CommitOptions{Message: "feat: two", Author: ada})
	must(t, err)
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-1", Via: via}))
	if got := gittest.Git(t, server, "log", "--format=%s", "main..task-1"); got != "feat: two\nfeat: one" {
		t.Errorf("the server has %q", got)
	}
	gittest.Git(t, server, "fsck", "--strict")
}

func TestPush_CarriedOverACommitFromElsewhereIsRejected(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.clone(t, d.co)
	_, err := d.co.Branch(ctx, "task-1", "main")
	must(t, err)
	theirs := d.elsewhere(t, "task-1", "theirs.txt", "theirs\n")
	gittest.Write(t, d.dir, "ours.txt", "ours\n")
	done, err := d.co.Record(ctx, git.CommitOptions{Message: "feat: ours", Author: ada})
	must(t, err)
	via := &git.Via{Transport: http.DefaultTransport, URL: d.url}
	if err := d.co.Push(ctx, git.PushOptions{Branch: "task-1", Via: via, Head: done.Head}); squad.CodeOf(err) != squad.CodeConflict {
		t.Fatalf("got %v, want a conflict", err)
	}
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-1", Via: via, Head: done.Head, Rebase: true, Identity: ada}))
	server := filepath.Join(d.Root, "shop.git")
	if got := gittest.Git(t, server, "rev-parse", "task-1~1"); got != theirs {
		t.Errorf("their commit was lost: %s", got)
	}
}

func TestPush_CarriedToAServerThatSaysNoTellsWhy(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.clone(t, d.co)
	_, err := d.co.Branch(ctx, "task-1", "main")
	must(t, err)
	gittest.Write(t, d.dir, "one.txt", "one\n")
	_, err = d.co.Commit(ctx, git.CommitOptions{Message: "feat: one", Author: ada})
	must(t, err)
	server := filepath.Join(d.Root, "shop.git")
	gittest.Git(t, server, "config", "receive.denyCurrentBranch", "refuse")
	gittest.Git(t, server, "config", "transfer.hideRefs", "refs/heads/task-1") // a server may refuse what it hides
	via := &git.Via{Transport: http.DefaultTransport, URL: d.url}
	if err := d.co.Push(ctx, git.PushOptions{Branch: "task-1", Via: via}); squad.CodeOf(err) != squad.CodeRule || !strings.Contains(err.Error(), "hidden ref") {
		t.Errorf("got %v", err)
	}
	via.URL = d.URL + "/other.git"
	if err := d.co.Push(ctx, git.PushOptions{Branch: "task-1", Via: via}); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("got %v, want not found", err)
	}
}

func TestRecord_CommitsWhatIsThereOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	base := d.clone(t, d.co).Head
	_, err := d.co.Branch(ctx, "task-1", "main")
	must(t, err)
	opts := git.CommitOptions{Message: "feat: things\n\nTask: #1", Author: ada}
	done, err := d.co.Record(ctx, opts)
	must(t, err)
	if done.Made || done.Head != base {
		t.Errorf("nothing changed: %+v", done)
	}
	gittest.Write(t, d.dir, "it's \"odd\" $(name).txt", "x\n")
	done, err = d.co.Record(ctx, opts)
	must(t, err)
	if !done.Made || done.Head == base {
		t.Errorf("a file: %+v", done)
	}
	again, err := d.co.Record(ctx, opts)
	must(t, err)
	if again.Made || again.Head != done.Head {
		t.Errorf("again: %+v", again)
	}
	if _, err := d.co.Record(ctx, git.CommitOptions{Message: "things", Author: ada}); squad.CodeOf(err) != squad.CodeRule {
		t.Errorf("a bad message: %v", err)
	}
}

func TestRecord_RefusesMarkersOfOpenConflicts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.clone(t, d.co)
	_, err := d.co.Branch(ctx, "task-1", "main")
	must(t, err)
	gittest.Commit(t, d.dir, "README.md", "ours\n", "docs: ours")
	d.elsewhere(t, "main", "README.md", "theirs\n")
	must(t, d.co.Fetch(ctx, git.Auth{}))
	if _, err := gittest.Try(d.dir, "merge", "-q", "origin/main"); err == nil {
		t.Fatal("the merge had no conflict")
	}
	opts := git.CommitOptions{Message: "fix: both", Author: ada}
	if _, err := d.co.Record(ctx, opts); squad.CodeOf(err) != squad.CodeConflict {
		t.Fatalf("markers were committed: %v", err)
	}
	gittest.Write(t, d.dir, "README.md", "both\n")
	done, err := d.co.Record(ctx, opts)
	must(t, err)
	if !done.Made {
		t.Errorf("got %+v", done)
	}
}

func TestBegin_MakesABranchOnceAndLeavesTheFilesAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	base := d.clone(t, d.co).Head
	must(t, d.co.Begin(ctx, "task-1", base))
	st, err := d.co.Status(ctx)
	must(t, err)
	if st.Branch != "task-1" || st.Head != base || !st.Clean() {
		t.Errorf("status %+v", st)
	}
	if err := d.co.Begin(ctx, "task-1", base); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("twice: %v", err)
	}
	// From elsewhere than HEAD the files follow.
	next := gittest.Commit(t, d.dir, "one.txt", "one\n", "feat: one")
	must(t, d.co.Begin(ctx, "task-2", base))
	st, err = d.co.Status(ctx)
	must(t, err)
	if st.Branch != "task-2" || st.Head != base || st.Head == next || !st.Clean() {
		t.Errorf("status %+v", st)
	}
}

// The ways in which a turn may leave a checkout.
func TestRecord_ConcludesAMergeAndKnowsADetachedHead(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	base := d.clone(t, d.co).Head
	opts := git.CommitOptions{Message: "feat: things", Author: ada}
	other := d.elsewhere(t, "side", "side.txt", "side\n")
	must(t, d.co.Fetch(ctx, git.Auth{}))
	gittest.Git(t, d.dir, "merge", "-q", "--no-commit", "--no-ff", "-s", "ours", other)
	done, err := d.co.Record(ctx, opts)
	must(t, err)
	if !done.Made || gittest.Git(t, d.dir, "rev-parse", "HEAD^2") != other {
		t.Errorf("an open merge: %+v", done)
	}
	gittest.Git(t, d.dir, "checkout", "-q", "--detach", base)
	gittest.Git(t, d.dir, "pack-refs", "--all")
	if done, err = d.co.Record(ctx, opts); err != nil || done.Made || done.Head != base {
		t.Errorf("a detached head: %+v, %v", done, err)
	}
	gittest.Git(t, d.dir, "checkout", "-q", "main")
	if done, err = d.co.Record(ctx, opts); err != nil || done.Made || done.Head != gittest.Git(t, d.dir, "rev-parse", "main") {
		t.Errorf("a packed branch: %+v, %v", done, err)
	}
	gittest.Git(t, d.dir, "rm", "-q", "README.md")
	if done, err = d.co.Record(ctx, opts); err != nil || !done.Made {
		t.Errorf("a file that was taken away: %+v, %v", done, err)
	}
}
