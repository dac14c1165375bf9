package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
)

var ada = git.Identity{Name: "developer Ada", Email: "ada@squad.example"}

// desk is a server with one repository and a checkout to work in.
type desk struct {
	*gittest.Server
	url string
	co  *git.Checkout
	r   *git.Runner
	dir string

	mu  sync.Mutex
	ops []squad.GitProgress
}

func newDesk(t *testing.T, branch string) *desk {
	t.Helper()
	root := t.TempDir()
	gittest.Bare(t, root, "shop.git", branch)
	d := &desk{Server: gittest.Serve(t, root, ""), r: newRunner(t)}
	d.url = d.URL + "/shop.git"
	d.co, d.dir = d.open(t)
	return d
}

func (d *desk) open(t *testing.T) (*git.Checkout, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work", "shop")
	co, err := new(git.Checkouts).Open(d.r, "host", dir)
	if err != nil {
		t.Fatal(err)
	}
	co.Observe = func(p squad.GitProgress) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ops = append(d.ops, p)
	}
	return co, dir
}

func (d *desk) clone(t *testing.T, co *git.Checkout) git.CloneResult {
	t.Helper()
	res, err := co.Clone(t.Context(), git.CloneOptions{URL: d.url})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// elsewhere commits to a branch of the server from another place.
func (d *desk) elsewhere(t *testing.T, branch, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	gittest.Git(t, dir, "clone", "-q", d.url, ".")
	if _, err := gittest.Try(dir, "checkout", "-q", branch); err != nil {
		gittest.Git(t, dir, "checkout", "-q", "-b", branch)
	}
	sha := gittest.Commit(t, dir, name, text, "feat: from elsewhere")
	gittest.Git(t, dir, "push", "-q", "origin", branch)
	return sha
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheckout_FromCloneToPush(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "trunk")
	ctx := t.Context()
	if res := d.clone(t, d.co); res.Existing || res.Branch != "trunk" || res.Head == "" {
		t.Fatalf("clone: %+v", res)
	}
	b, err := d.co.Branch(ctx, "task-7", "trunk")
	must(t, err)
	if b.Continued || b.Base == "" {
		t.Errorf("branch: %+v", b)
	}
	odd := "odd \"name\"\t\n*.txt"
	gittest.Write(t, d.dir, odd, "one\ntwo\n")
	gittest.Write(t, d.dir, "README.md", "# shop\n\nsells things\n")
	st, err := d.co.Status(ctx)
	must(t, err)
	if st.Branch != "task-7" || len(st.Files) != 2 {
		t.Errorf("status: %+v", st)
	}
	diff, err := d.co.Diff(ctx, git.DiffOptions{})
	must(t, err)
	if diff.Added != 4 || len(diff.Files) != 2 || diff.Files[1].Path != odd || diff.Files[1].Status != "added" || diff.Files[0].Hunks[0].Lines[1].Op != "+" {
		t.Errorf("diff: %+v", diff)
	}
	if _, err := d.co.Commit(ctx, git.CommitOptions{Message: "changed stuff", Author: ada}); squad.CodeOf(err) != squad.CodeRule {
		t.Errorf("a bad message: %v", err)
	}
	commit, err := d.co.Commit(ctx, git.CommitOptions{Message: "feat: sell things\n\n# not a comment", Author: ada})
	must(t, err)
	if commit.Subject != "feat: sell things" || commit.Author != ada.Name {
		t.Errorf("commit: %+v", commit)
	}
	if _, err := d.co.Commit(ctx, git.CommitOptions{Message: "feat: again", Author: ada}); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("nothing to commit: %v", err)
	}
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-7"}))
	if got := gittest.Git(t, filepath.Join(d.Root, "shop.git"), "rev-parse", "task-7"); got != commit.SHA {
		t.Errorf("the server has %s", got)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var kinds []string
	for _, op := range d.ops {
		if op.Status == "succeeded" {
			kinds = append(kinds, op.Kind)
		}
	}
	if got := strings.Join(kinds, " "); got != "clone branch commit push" {
		t.Errorf("operations: %s", got)
	}
}

func TestClone_ExistingIsFetchedAndDirtyOneKeptSafe(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.clone(t, d.co)
	newer := d.elsewhere(t, "main", "new.txt", "new\n")
	gittest.Write(t, d.dir, "README.md", "half done\n")
	gittest.Write(t, d.dir, "untracked.txt", "mine\n")
	res := d.clone(t, d.co)
	if !res.Existing || res.Backup == "" || res.Head != newer || res.Diverged {
		t.Fatalf("got %+v", res)
	}
	if got := gittest.Git(t, d.dir, "show", res.Backup+":untracked.txt"); got != "mine" {
		t.Errorf("backup holds %q", got)
	}
	if got := gittest.Git(t, d.dir, "show", res.Backup+":README.md"); got != "half done" {
		t.Errorf("backup holds %q", got)
	}
	st, err := d.co.Status(ctx)
	must(t, err)
	if !st.Clean() {
		t.Errorf("still dirty: %+v", st.Files)
	}
}

func TestClone_FolderWithOtherFilesIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	gittest.Write(t, d.dir, "precious.txt", "x")
	_, err := d.co.Clone(t.Context(), git.CloneOptions{URL: d.url})
	if squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "precious.txt")); err != nil {
		t.Error(err)
	}
}

// Two repositories of one name lie in one place by default: the second must not take
// over the checkout of the first.
func TestClone_CheckoutOfAnotherRepositoryIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	gittest.Bare(t, d.Root, "other.git", "main")
	d.clone(t, d.co)
	gittest.Write(t, d.dir, "README.md", "half done\n")
	_, err := d.co.Clone(t.Context(), git.CloneOptions{URL: d.URL + "/other.git"})
	if squad.CodeOf(err) != squad.CodeConflict || !strings.Contains(err.Error(), "another repository") {
		t.Errorf("got %v", err)
	}
	if got := gittest.Git(t, d.dir, "remote", "get-url", "origin") + gittest.Git(t, d.dir, "status", "--porcelain"); got != d.url+"M README.md" {
		t.Errorf("the checkout was changed: %q", got)
	}
	// The server of the same repository may move.
	moved := strings.Replace(d.url, "127.0.0.1", "localhost", 1)
	if _, err := d.co.Clone(t.Context(), git.CloneOptions{URL: moved}); err != nil || gittest.Git(t, d.dir, "remote", "get-url", "origin") != moved {
		t.Errorf("at a new address: %v", err)
	}
}

func TestBranch_ExistingOnTheServerIsContinued(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	tip := d.elsewhere(t, "task-9", "a.txt", "a\n")
	d.clone(t, d.co)
	b, err := d.co.Branch(t.Context(), "task-9", "main")
	must(t, err)
	if !b.Continued || b.Head != tip {
		t.Errorf("got %+v", b)
	}
	if _, err := d.co.Branch(t.Context(), "task-10", "nothing"); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("unknown base: %v", err)
	}
	if _, err := d.co.Branch(t.Context(), "--orphan", "main"); squad.CodeOf(err) != squad.CodeInvalid {
		t.Errorf("option as branch: %v", err)
	}
}

// A new branch leaves work in the tree alone, may have folders in its name, and waits
// for nobody's lock: a lock that somebody holds is git's to judge.
func TestBranch_NewOnesKeepWorkAndLocks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	d.clone(t, d.co)
	gittest.Write(t, d.dir, "README.md", "changed\n")
	for _, name := range []string{"task-1", "deep/er/task-2"} {
		b, err := d.co.Branch(t.Context(), name, "main")
		must(t, err)
		st, err := d.co.Status(t.Context())
		must(t, err)
		if b.Continued || b.Base != b.Head || st.Branch != name || len(st.Files) != 1 || gittest.Git(t, d.dir, "rev-parse", "HEAD") != b.Head {
			t.Errorf("%s: %+v, %+v", name, b, st)
		}
		gittest.Git(t, d.dir, "symbolic-ref", "HEAD", "refs/heads/main")
	}
	gittest.Git(t, d.dir, "fsck", "--strict")
	gittest.Write(t, d.dir, ".git/HEAD.lock", "")
	if _, err := d.co.Branch(t.Context(), "task-3", "main"); err == nil {
		t.Error("HEAD was changed under a lock")
	}
	if got := gittest.Git(t, d.dir, "symbolic-ref", "HEAD"); got != "refs/heads/main" {
		t.Errorf("HEAD is %s", got)
	}
}

func TestPush_MovedBranchIsRebasedAndPushed(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.clone(t, d.co)
	_, err := d.co.Branch(ctx, "task-1", "main")
	must(t, err)
	gittest.Write(t, d.dir, "mine.txt", "mine\n")
	_, err = d.co.Commit(ctx, git.CommitOptions{Message: "feat: mine", Author: ada})
	must(t, err)
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-1"}))
	d.elsewhere(t, "task-1", "theirs.txt", "theirs\n")
	gittest.Write(t, d.dir, "more.txt", "more\n")
	_, err = d.co.Commit(ctx, git.CommitOptions{Message: "feat: more", Author: ada})
	must(t, err)
	if err := d.co.Push(ctx, git.PushOptions{Branch: "task-1"}); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("plain push over others' work: %v", err)
	}
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-1", Rebase: true, Identity: ada}))
	if got := gittest.Git(t, filepath.Join(d.Root, "shop.git"), "ls-tree", "--name-only", "task-1"); got != "README.md\nmine.txt\nmore.txt\ntheirs.txt" {
		t.Errorf("the server has %q", got)
	}
}

func TestRebase_ClashIsReportedWithBothSides(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.clone(t, d.co)
	_, err := d.co.Branch(ctx, "task-1", "main")
	must(t, err)
	d.elsewhere(t, "main", "README.md", "# their shop\n")
	gittest.Write(t, d.dir, "README.md", "# my shop\n")
	mine, err := d.co.Commit(ctx, git.CommitOptions{Message: "docs: my shop", Author: ada})
	must(t, err)
	err = d.co.Rebase(ctx, git.RebaseOptions{Onto: "main", Fetch: true, Identity: ada})
	var clash *git.ConflictError
	if !errors.As(err, &clash) || squad.CodeOf(err) != squad.CodeConflict {
		t.Fatalf("got %v", err)
	}
	f := clash.Files[0]
	if f.Path != "README.md" || len(f.Hunks) != 1 || f.Hunks[0].Ours != "# their shop\n" || f.Hunks[0].Theirs != "# my shop\n" {
		t.Errorf("got %+v", f)
	}
	if head, err := d.co.Head(ctx); err != nil || head != mine.SHA {
		t.Errorf("the rebase was not undone: %s, %v", head, err)
	}
	// Kept, the agent resolves it; markers cannot be committed meanwhile.
	if err = d.co.Rebase(ctx, git.RebaseOptions{Onto: "main", Identity: ada, Keep: true}); !errors.As(err, &clash) {
		t.Fatalf("got %v", err)
	}
	if _, err := d.co.Commit(ctx, git.CommitOptions{Message: "docs: both", Author: ada}); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("markers were committed: %v", err)
	}
}

func TestCheckpoint_StoresAllAndChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.clone(t, d.co)
	gittest.Write(t, d.dir, "README.md", "staged\n")
	gittest.Git(t, d.dir, "add", "README.md")
	gittest.Write(t, d.dir, "README.md", "unstaged\n")
	gittest.Write(t, d.dir, "new.txt", "new\n")
	before, err := d.co.Status(ctx)
	must(t, err)
	sha, err := d.co.Checkpoint(ctx, git.CheckpointOptions{Ref: "refs/squad/checkpoints/e1/1", Message: "chore: checkpoint", Author: ada})
	must(t, err)
	after, err := d.co.Status(ctx)
	must(t, err)
	if len(before.Files) != len(after.Files) || before.Files[0] != after.Files[0] || before.Head != after.Head {
		t.Errorf("changed from %+v to %+v", before, after)
	}
	server := filepath.Join(d.Root, "shop.git")
	if got := gittest.Git(t, server, "show", sha+":README.md") + gittest.Git(t, server, "show", "refs/squad/checkpoints/e1/1:new.txt"); got != "unstagednew" {
		t.Errorf("stored %q", got)
	}
}

func TestClone_EmptyRepositoryTakesItsFirstCommit(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	server := filepath.Join(d.Root, "empty.git")
	gittest.Git(t, d.Root, "init", "-q", "--bare", server)
	gittest.Git(t, server, "config", "http.receivepack", "true")
	d.url = d.URL + "/empty.git"
	if res := d.clone(t, d.co); !res.Empty {
		t.Fatalf("got %+v", res)
	}
	b, err := d.co.Branch(ctx, "task-1", "main")
	must(t, err)
	if b.Head != "" {
		t.Errorf("got %+v", b)
	}
	gittest.Write(t, d.dir, "first.txt", "x\n")
	diff, err := d.co.Diff(ctx, git.DiffOptions{})
	must(t, err)
	if len(diff.Files) != 1 {
		t.Errorf("diff: %+v", diff)
	}
	_, err = d.co.Commit(ctx, git.CommitOptions{Message: "feat: begin", Author: ada})
	must(t, err)
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-1"}))
	other, _ := d.open(t)
	if _, err := other.Clone(ctx, git.CloneOptions{URL: d.url, Branch: "task-1"}); err != nil {
		t.Error(err)
	}
	third, _ := d.open(t)
	if _, err := third.Clone(ctx, git.CloneOptions{URL: d.URL + "/none.git"}); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("missing repository: %v", err)
	}
}

func TestCheckout_OperationsQueueUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	d.clone(t, d.co)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := string(rune('a'+i)) + ".txt"
			gittest.Write(t, d.dir, name, name)
			_, err := d.co.Commit(t.Context(), git.CommitOptions{Message: "feat: add " + name, Author: ada, Paths: []string{name}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := gittest.Git(t, d.dir, "rev-list", "--count", "HEAD"); got != "9" {
		t.Errorf("%s commits", got)
	}
}

func TestClone_SubmodulesAndLargeFilePointers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	gittest.Bare(t, d.Root, "lib.git", "main")
	dir := t.TempDir()
	gittest.Git(t, dir, "clone", "-q", d.url, ".")
	gittest.Git(t, dir, "submodule", "add", "-q", d.URL+"/lib.git", "lib")
	gittest.Write(t, dir, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	gittest.Commit(t, dir, "big.bin", pointer, "feat: library and big file")
	gittest.Git(t, dir, "push", "-q", "origin", "main")
	res, err := d.co.Clone(t.Context(), git.CloneOptions{URL: d.url, Submodules: true})
	must(t, err)
	if len(res.Warnings) > 0 {
		t.Errorf("warnings: %q", res.Warnings)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "lib", "README.md")); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(d.dir, "big.bin")); err != nil || string(got) != pointer {
		t.Errorf("pointer: %q, %v", got, err)
	}
	st, err := d.co.Status(t.Context())
	must(t, err)
	if !st.Clean() {
		t.Errorf("dirty: %+v", st.Files)
	}
}
