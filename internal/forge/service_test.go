package forge_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// house is a local forge with one repository and one task, on a real database and
// real git.
type house struct {
	t       *testing.T
	store   *store.Store
	service *forge.Service
	repo    squad.Repository
	task    squad.Task
	dir     string // the bare repository
	work    string // a clone that pushes into it
	branch  string // of the task; "" is task-1
}

func newHouse(t *testing.T) *house {
	t.Helper()
	ctx, data := t.Context(), t.TempDir()
	db, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(data, "squad.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	vault, err := forge.OpenVault(filepath.Join(data, "key"))
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, store: db, service: forge.NewService(forge.Config{
		Store: db, Credentials: forge.NewCredentials(db, vault, nil), Git: git.New(git.Config{AllowFile: true}), Dir: filepath.Join(data, "repos"),
	})}
	h.work = seed(t)
	sq := squad.Squad{Name: "Crew", Status: squad.SquadActive}
	h.repo = squad.Repository{Name: "hello", Forge: squad.ForgeLocal}
	if err := h.service.Prepare(ctx, &h.repo, h.work); err != nil {
		t.Fatal(err)
	}
	err = db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.CreateSquad(ctx, &sq); err != nil {
			return err
		}
		h.repo.SquadID = sq.ID
		if err := tx.CreateRepository(ctx, &h.repo); err != nil {
			return err
		}
		h.task = squad.Task{SquadID: sq.ID, RepositoryID: h.repo.ID, Title: "Add a greeting", Status: squad.TaskTodo}
		return tx.CreateTask(ctx, &h.task)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.dir = forge.LocalDir(filepath.Join(data, "repos"), h.repo.ID)
	run(t, h.work, "remote", "add", "squad", h.dir)
	return h
}

// seed makes a repository with one commit on a branch that is not called main.
func seed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "init", "-q", "-b", "trunk")
	write(t, dir, "README.md", "hello\n")
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-qm", "docs: begin")
	return dir
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (h *house) head() string {
	if h.branch != "" {
		return h.branch
	}
	return "task-1"
}

// push commits a file on the task's branch and pushes it.
func (h *house) push(name, text string) string {
	h.t.Helper()
	run(h.t, h.work, "checkout", "-qB", h.head())
	write(h.t, h.work, name, text)
	run(h.t, h.work, "add", ".")
	run(h.t, h.work, "commit", "-qm", "feat: greet")
	run(h.t, h.work, "push", "-q", "squad", h.head())
	return run(h.t, h.work, "rev-parse", "HEAD")
}

func (h *house) ensure(ctx context.Context) squad.PullRequest {
	h.t.Helper()
	pull, err := h.service.Ensure(ctx, forge.EnsureRequest{Repository: h.repo, Task: h.task, Head: h.head(), Base: h.repo.DefaultBranch})
	if err != nil {
		h.t.Fatal(err)
	}
	return pull
}

func (h *house) events(kind squad.EventType) int {
	h.t.Helper()
	list, err := h.store.Events(h.t.Context(), store.EventFilter{Types: []squad.EventType{kind}, Limit: 100})
	if err != nil {
		h.t.Fatal(err)
	}
	return len(list)
}

func TestPrepare_ImportsBranchesAndFindsTheDefault(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if h.repo.DefaultBranch != "trunk" {
		t.Errorf("default branch %q", h.repo.DefaultBranch)
	}
	branches, err := h.service.Branches(t.Context(), h.repo.ID)
	if err != nil || len(branches) != 1 || branches[0] != "trunk" {
		t.Errorf("branches %v, %v", branches, err)
	}
}

func TestPrepare_EmptyRepositoryHasABranchToMergeInto(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	repo := squad.Repository{Name: "empty", Forge: squad.ForgeLocal, SquadID: h.repo.SquadID}
	for range 2 { // repeatable
		if err := h.service.Prepare(t.Context(), &repo, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := run(t, forge.LocalDir(filepath.Dir(h.dir), repo.ID), "log", "--format=%s", "main"); got != "chore: begin" {
		t.Errorf("main has %q", got)
	}
}

func TestEnsure_TwiceMakesOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.push("hi.txt", "hi\n")
	first, second := h.ensure(t.Context()), h.ensure(t.Context())
	if first.ID != second.ID || first.Number != 1 {
		t.Errorf("two pull requests: %+v %+v", first, second)
	}
	if first.Title != "feat: add a greeting" || first.Mergeable != "clean" || first.TaskID != h.task.ID {
		t.Errorf("pull request %+v", first)
	}
	if n := h.events(squad.EventPRCreated); n != 1 {
		t.Errorf("%d pr_created events", n)
	}
	if h.push("hi.txt", "hi there\n"); h.ensure(t.Context()).HeadSHA == first.HeadSHA {
		t.Error("a second push was not seen")
	}
}

func TestMerge_EachMethodBringsTheWorkIn(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.push("hi.txt", "hi\n")
			pull := h.ensure(t.Context())
			merged, err := h.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if merged.State != squad.PullMerged || merged.MergeSHA == "" {
				t.Errorf("merged %+v", merged)
			}
			if got := run(t, h.dir, "show", "trunk:hi.txt"); got != "hi" {
				t.Errorf("trunk has %q", got)
			}
			if _, err := h.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{}); err != nil {
				t.Errorf("merging twice: %v", err)
			}
			if n := h.events(squad.EventPRMerged); n != 1 {
				t.Errorf("%d pr_merged events", n)
			}
			diff, err := h.service.Diff(t.Context(), squad.System(), pull.ID)
			if err != nil || len(diff.Files) != 1 || diff.Files[0].Path != "hi.txt" {
				t.Errorf("diff after merge %+v, %v", diff, err)
			}
		})
	}
}

// A crash after git merged and before our row says so must not leave a pull
// request that can never be merged.
func TestMerge_AfterACrashBetweenGitAndRowSucceeds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.push("hi.txt", "hi\n")
	pull := h.ensure(t.Context())
	_, err := git.Merge(t.Context(), git.New(git.Config{AllowFile: true}), h.dir, git.MergeRequest{
		Into: "trunk", Head: "refs/heads/task-1", Method: git.MethodSquash, Message: "feat: greet", Author: git.Identity{Name: "A", Email: "a@b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	merged, err := h.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{Method: "squash"})
	if err != nil || merged.State != squad.PullMerged {
		t.Fatalf("merge again: %+v, %v", merged.State, err)
	}
}

func TestMerge_ConflictIsRefusedAndNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.push("README.md", "theirs\n")
	pull := h.ensure(t.Context())
	run(t, h.work, "checkout", "-q", "trunk")
	write(t, h.work, "README.md", "ours\n")
	run(t, h.work, "commit", "-qam", "docs: ours")
	run(t, h.work, "push", "-q", "squad", "trunk")
	fresh, err := h.service.Refresh(t.Context(), squad.System(), pull.ID)
	if err != nil || fresh.Mergeable != "conflict" {
		t.Errorf("mergeable %q, %v", fresh.Mergeable, err)
	}
	_, err = h.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{})
	if squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("merge of a conflict: %v", err)
	}
}

func TestReview_VerdictChangesTheStateOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.push("hi.txt", "hi\n")
	pull := h.ensure(t.Context())
	c, err := h.service.Review(t.Context(), squad.System(), pull.ID, squad.NewReview{Path: "hi.txt", Line: 1, Side: "new", Verdict: "request_changes", Body: "be kinder"})
	if err != nil || c.ID == "" {
		t.Fatalf("review: %+v, %v", c, err)
	}
	stored, err := h.store.PullRequest(t.Context(), pull.ID)
	if err != nil || stored.Review != "changes_requested" {
		t.Errorf("review state %q, %v", stored.Review, err)
	}
	if n := h.events(squad.EventReviewReceived); n != 1 {
		t.Errorf("%d review_received events", n)
	}
	if _, err := h.service.Review(t.Context(), squad.System(), pull.ID, squad.NewReview{}); squad.CodeOf(err) != squad.CodeInvalid {
		t.Errorf("an empty remark: %v", err)
	}
}

// An approval takes back its author's request for changes, and nobody else's.
func TestReview_ApprovalOfOneLeavesTheRequestOfAnother(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.push("hi.txt", "hi\n")
	pull := h.ensure(t.Context())
	people := map[string]squad.Actor{}
	for _, name := range []string{"Ada", "Bea"} {
		u := squad.User{Name: name}
		if err := h.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.CreateUser(t.Context(), &u) }); err != nil {
			t.Fatal(err)
		}
		people[name] = squad.Actor{Kind: squad.TokenUser, UserID: u.ID}
	}
	for i, said := range []struct{ who, verdict, review, mergeable string }{
		{"Ada", "request_changes", "changes_requested", "blocked"},
		{"Bea", "approve", "changes_requested", "blocked"},
		{"Bea", "comment", "changes_requested", "blocked"},
		{"Ada", "approve", "approved", "clean"},
		{"Bea", "request_changes", "changes_requested", "blocked"},
	} {
		if _, err := h.service.Review(t.Context(), people[said.who], pull.ID, squad.NewReview{Verdict: said.verdict, Body: "so it is"}); err != nil {
			t.Fatal(err)
		}
		fresh, err := h.service.Refresh(t.Context(), squad.System(), pull.ID)
		if err != nil || fresh.Review != said.review || fresh.Mergeable != said.mergeable {
			t.Errorf("%d: after %s of %s: %s, %s, %v", i, said.verdict, said.who, fresh.Review, fresh.Mergeable, err)
		}
	}
	// New commits ask for a new look; then one approval is enough again.
	h.push("more.txt", "more\n")
	if fresh, err := h.service.Refresh(t.Context(), squad.System(), pull.ID); err != nil || fresh.Review != "pending" {
		t.Errorf("after a push: %s, %v", fresh.Review, err)
	}
	if _, err := h.service.Review(t.Context(), people["Ada"], pull.ID, squad.NewReview{Verdict: "approve"}); err != nil {
		t.Fatal(err)
	}
	if fresh, err := h.service.Refresh(t.Context(), squad.System(), pull.ID); err != nil || fresh.Review != "approved" {
		t.Errorf("approved after the push: %s, %v", fresh.Review, err)
	}
}

func TestDiff_OddNamesAndBinaries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	write(t, h.work, "with space.txt", "a\n")
	write(t, h.work, "ünïcode.txt", "b\n")
	write(t, h.work, "bin", "\x00\x01\x02")
	run(t, h.work, "mv", "README.md", "LIESMICH.md")
	h.push("new.txt", "x\n")
	pull := h.ensure(t.Context())
	diff, err := h.service.Diff(t.Context(), squad.System(), pull.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]squad.FileDiff{}
	for _, f := range diff.Files {
		got[f.Path] = f
	}
	if got["with space.txt"].Additions != 1 || got["ünïcode.txt"].Status != "added" || !got["bin"].Binary ||
		got["LIESMICH.md"].OldPath != "README.md" || got["LIESMICH.md"].Status != "renamed" {
		t.Errorf("diff %+v", got)
	}
}
