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

// borrow reads the mirror of the desk's repository, whose objects are here as well.
func (d *desk) borrow(t *testing.T) *git.Borrow {
	t.Helper()
	m := newMirror(t, d.url, time.Nanosecond)
	must(t, m.Fetch(t.Context(), nil))
	b, err := m.Borrow(t.Context())
	must(t, err)
	b.Objects = filepath.Join(m.Dir(), "objects")
	return b
}

func TestBorrow_IsTheCloneThatTheNetworkGives(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "trunk")
	d.elsewhere(t, "feature/x", "x.txt", "x\n")
	bare := filepath.Join(d.Root, "shop.git")
	gittest.Git(t, bare, "tag", "light", "trunk")
	gittest.Git(t, bare, "-c", "user.name=a", "-c", "user.email=a@b", "tag", "-a", "-m", "v1", "v1", "trunk")
	res, err := d.co.Clone(t.Context(), git.CloneOptions{URL: d.url, Borrow: d.borrow(t)})
	must(t, err)
	other, dir := d.open(t)
	want := d.clone(t, other)
	if res.Existing || res.Branch != "trunk" || res.Head != want.Head || res.Empty {
		t.Errorf("borrowed %+v, cloned %+v", res, want)
	}
	for _, look := range [][]string{
		{"for-each-ref", "--format=%(refname) %(objectname) %(*objectname) %(symref)"}, {"status", "--porcelain=v2", "--branch"},
		{"ls-files", "--stage"}, {"config", "--get-regexp", "^(remote|branch)[.]"}, {"rev-parse", "v1^{}"},
	} {
		if a, b := gittest.Git(t, d.dir, look...), gittest.Git(t, dir, look...); a != b {
			t.Errorf("git %s\nborrowed:\n%s\ncloned:\n%s", look[0], a, b)
		}
	}
	gittest.Git(t, d.dir, "fsck", "--connectivity-only")
	b, err := d.co.Branch(t.Context(), "task-3", "trunk")
	must(t, err)
	if b.Continued || b.Base != want.Head {
		t.Errorf("branch %+v", b)
	}
	again, err := d.co.Clone(t.Context(), git.CloneOptions{URL: d.url, Borrow: d.borrow(t)})
	must(t, err)
	if !again.Existing || again.Branch != "task-3" {
		t.Errorf("the second time %+v", again)
	}
}

func TestBorrow_OddOnes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := newDesk(t, "main")
	b := d.borrow(t)
	if _, err := d.co.Clone(ctx, git.CloneOptions{URL: d.url, Branch: "nowhere", Borrow: b}); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("a branch that is not there: %v", err)
	}
	gittest.Write(t, d.dir, "mine.txt", "mine\n")
	if _, err := d.co.Clone(ctx, git.CloneOptions{URL: d.url, Borrow: b}); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("a folder with something else in it: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(d.dir, "mine.txt")); err != nil || string(text) != "mine\n" {
		t.Errorf("it was touched: %q, %v", text, err)
	}
	gittest.Git(t, d.Root, "init", "-q", "--bare", "-b", "first", "empty.git")
	m := newMirror(t, d.URL+"/empty.git", time.Hour)
	must(t, m.Fetch(ctx, nil))
	none, err := m.Borrow(ctx)
	must(t, err)
	none.Objects = filepath.Join(m.Dir(), "objects")
	co, dir := d.open(t)
	res, err := co.Clone(ctx, git.CloneOptions{URL: d.URL + "/empty.git", Borrow: none})
	must(t, err)
	if !res.Empty || res.Head != "" || gittest.Git(t, dir, "status", "--porcelain") != "" {
		t.Errorf("an empty repository: %+v", res)
	}
}

// writing is a host that also writes files itself, and counts what it runs.
type writing struct {
	git.Host
	ran *int
}

func (w writing) Run(ctx context.Context, c git.Command) (int, error) {
	*w.ran++
	return w.Host.Run(ctx, c)
}

func (w writing) WriteFiles(_ context.Context, files []git.File) error {
	for _, f := range files {
		if err := os.WriteFile(f.Path, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func TestStart_MakesTheBranchWithoutRunningAProgram(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	base := d.clone(t, d.co).Head
	ran := 0
	co, err := new(git.Checkouts).Open(git.New(git.Config{Exec: writing{ran: &ran}}), "host", d.dir)
	must(t, err)
	must(t, co.Start(t.Context(), "task-9", base))
	if ran != 0 {
		t.Errorf("%d programs ran", ran)
	}
	st, err := co.Status(t.Context())
	must(t, err)
	if st.Branch != "task-9" || st.Head != base || !st.Clean() {
		t.Errorf("status %+v", st)
	}
	for _, bad := range []string{"../evil", "a..b", "", "-x"} {
		if err := co.Start(t.Context(), bad, base); squad.CodeOf(err) != squad.CodeInvalid {
			t.Errorf("branch %q: %v", bad, err)
		}
	}
	if strings.Contains(gittest.Git(t, d.dir, "branch"), "evil") {
		t.Error("a bad name was written")
	}
}
