package runner_test

import (
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/gateway"
	"agentsquad/internal/runner"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

// Two repositories in one running sandbox: their objects are borrowed, not fetched,
// each has its own branch and commits, and only that of the task can be pushed.
func TestClone_TwoRepositoriesIntoARunningSandbox(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	work := t.TempDir()
	sh(t, work, `git init -q -b trunk && mkdir -p a/b && printf 'library\n' > a/b/lib.txt && git add . && git commit -qm 'docs: begin' && git tag v1`)
	lib := squad.Repository{Name: "acme/library", Forge: squad.ForgeLocal, SquadID: h.squad.ID, Policy: squad.RepositoryPolicy{Path: "/home/user/work/the lib"}}
	h.must(h.forges.Prepare(ctx, &lib, work))
	strange := squad.Repository{Name: "theirs", Forge: squad.ForgeLocal}
	h.must(h.forges.Prepare(ctx, &strange, work))
	other := squad.Squad{Name: "Others", Status: squad.SquadActive}
	h.tx(func(tx *store.Tx) error {
		if err := tx.CreateRepository(ctx, &lib); err != nil {
			return err
		}
		if err := tx.CreateSquad(ctx, &other); err != nil {
			return err
		}
		strange.SquadID = other.ID
		return tx.CreateRepository(ctx, &strange)
	})
	ada := h.member("Ada", "true")
	k := h.task("Change both", ada)
	row, err := h.boxes.Acquire(ctx, sandbox.AcquireRequest{SquadID: h.squad.ID, MemberID: ada.ID, TaskID: k.ID})
	h.must(err)
	inside := func(script string) string {
		t.Helper()
		res, err := h.boxes.Execute(ctx, squad.System(), row.ID, squad.Command{Shell: script}, nil)
		h.must(err)
		if res.ExitCode != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", script, res.ExitCode, res.Stdout, res.Stderr)
		}
		return strings.TrimSpace(res.Stdout)
	}
	git := h.runner.Checkouts()
	for _, repo := range []squad.Repository{h.repo, lib} {
		req := squad.GitRequest{RepositoryID: repo.ID, Message: "feat: change " + repo.ID[:8]}
		dir := "'" + gateway.CheckoutPath(repo) + "'"
		_, err := git.Clone(ctx, squad.System(), row.ID, req)
		h.must(err)
		if got := inside("cd " + dir + " && git status --porcelain && cat .git/objects/info/alternates && git count-objects -v | head -2 | tr '\\n' ' '"); got != "/run/squad/lent/"+repo.ID+"\ncount: 0 size: 0" {
			t.Errorf("%s after the clone: %q", repo.Name, got)
		}
		_, err = git.Branch(ctx, squad.System(), row.ID, req)
		h.must(err)
		inside("echo changed > " + dir + "/new.txt")
		_, err = git.Commit(ctx, squad.System(), row.ID, req)
		h.must(err)
		_, err = git.Push(ctx, squad.System(), row.ID, req)
		if own := repo.ID == h.repo.ID; own != (err == nil) || !own && !strings.Contains(err.Error(), "may only read acme/library") {
			t.Errorf("push of %s: %v", repo.Name, err)
		}
		if got := inside("cd " + dir + " && git log -1 --format=%s && git status --porcelain && git rev-parse --abbrev-ref HEAD"); got != req.Message+"\ntask-1" {
			t.Errorf("%s after the push: %q", repo.Name, got)
		}
		// Git inside still reaches the remote that it knows.
		inside("cd " + dir + " && git fetch -q origin")
	}
	if got := h.git("show", "task-1:new.txt"); got != "changed" {
		t.Errorf("the branch of the task has %q", got)
	}
	if got := sh(t, forge.LocalDir(h.data+"/repos", lib.ID), "git branch --list 'task-*'"); got != "" {
		t.Errorf("the other repository got %q", got)
	}
	if _, err := git.Clone(ctx, squad.System(), row.ID, squad.GitRequest{RepositoryID: strange.ID}); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("a repository of another squad: %v", err)
	}
	if got := inside("ls /run/squad/lent | wc -l"); got != "2" {
		t.Errorf("%s folders are lent", got)
	}
}

// A sandbox that is made for a repository has it, on whatever it is made of.
func TestFurnished_SandboxOfARepositoryHasItsCheckout(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	boxes := runner.Furnished{Service: h.boxes, Runner: h.runner}
	row, err := boxes.Create(ctx, squad.System(), squad.SandboxRequest{SquadID: h.squad.ID, RepositoryID: h.repo.ID})
	h.must(err)
	_, err = h.runner.Checkouts().Branch(ctx, squad.System(), row.ID, squad.GitRequest{RepositoryID: h.repo.ID, Branch: "try-1"})
	h.must(err)
	res, err := h.boxes.Execute(ctx, squad.System(), row.ID, squad.Command{Shell: "cd hello && cat README.md && git symbolic-ref --short HEAD && git status --porcelain"}, nil)
	h.must(err)
	if res.Stdout != "hello\ntry-1\n" {
		t.Errorf("inside: %q %q", res.Stdout, res.Stderr)
	}
	if _, err := boxes.Create(ctx, squad.System(), squad.SandboxRequest{SquadID: h.squad.ID, RepositoryID: squad.NewID()}); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("a repository that is not there: %v", err)
	}
}
