package git_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
)

// mine commits a file on the branch task-1 of the desk.
func (d *desk) mine(t *testing.T, name, text string) {
	t.Helper()
	gittest.Write(t, d.dir, name, text)
	_, err := d.co.Commit(t.Context(), git.CommitOptions{Message: "feat: mine", Author: ada})
	must(t, err)
}

// begin clones, goes to task-1, and pushes a first commit of it.
func (d *desk) begin(t *testing.T) {
	t.Helper()
	d.clone(t, d.co)
	_, err := d.co.Branch(t.Context(), "task-1", "main")
	must(t, err)
	d.mine(t, "mine.txt", "mine\n")
	must(t, d.co.Push(t.Context(), git.PushOptions{Branch: "task-1"}))
}

func TestPull_MovesForwardAndJoinsWhatBothDid(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.begin(t)
	theirs := d.elsewhere(t, "task-1", "theirs.txt", "theirs\n")
	must(t, d.co.Pull(ctx, git.PullOptions{}))
	if head, err := d.co.Head(ctx); err != nil || head != theirs {
		t.Fatalf("after a pull HEAD is %s, not %s: %v", head, theirs, err)
	}
	d.elsewhere(t, "task-1", "theirs.txt", "theirs again\n")
	d.mine(t, "more.txt", "more\n")
	if err := d.co.Pull(ctx, git.PullOptions{}); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("a pull over own commits: %v", err)
	}
	must(t, d.co.Pull(ctx, git.PullOptions{Rebase: true, Identity: ada}))
	must(t, d.co.Push(ctx, git.PushOptions{Branch: "task-1"}))
	if got := gittest.Git(t, filepath.Join(d.Root, "shop.git"), "show", "task-1:theirs.txt", "task-1:more.txt"); got != "theirs again\nmore" {
		t.Errorf("the server has %q", got)
	}
}

func TestPull_ClashIsToldWithBothSidesAndUndone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	ctx := t.Context()
	d.begin(t)
	d.elsewhere(t, "task-1", "mine.txt", "theirs\n")
	d.mine(t, "mine.txt", "mine again\n")
	before, err := d.co.Head(ctx)
	must(t, err)
	err = d.co.Pull(ctx, git.PullOptions{Rebase: true, Identity: ada})
	var clash *git.ConflictError
	if !errors.As(err, &clash) || clash.Files[0].Path != "mine.txt" {
		t.Fatalf("got %v", err)
	}
	if head, err := d.co.Head(ctx); err != nil || head != before {
		t.Errorf("the rebase was not undone: %s, %v", head, err)
	}
}

// racer lets somebody else push just before each push of ours.
type racer struct {
	git.Host
	before func()
}

func (r racer) Run(ctx context.Context, c git.Command) (int, error) {
	if slices.Contains(c.Argv, "push") {
		r.before()
	}
	return r.Host.Run(ctx, c)
}

func TestPush_ABranchThatNeverStandsStillIsGivenUpAfterThreeTries(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	d.begin(t)
	var pushes int
	var waits []time.Duration
	r := git.New(git.Config{
		Exec: racer{before: func() {
			pushes++
			d.elsewhere(t, "task-1", "theirs.txt", time.Now().String())
		}},
		Retry: git.Retry{Wait: time.Millisecond, Sleep: func(_ context.Context, w time.Duration) error {
			waits = append(waits, w)
			return nil
		}},
	})
	co, err := new(git.Checkouts).Open(r, "host", d.dir)
	must(t, err)
	d.mine(t, "more.txt", "more\n")
	err = co.Push(t.Context(), git.PushOptions{Branch: "task-1", Rebase: true, Identity: ada})
	if squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("the end is %v", err)
	}
	if pushes != 3 || !slices.Equal(waits, []time.Duration{time.Millisecond, 2 * time.Millisecond}) {
		t.Errorf("%d pushes, waits %v", pushes, waits)
	}
	must(t, d.co.Push(t.Context(), git.PushOptions{Branch: "task-1", Rebase: true, Identity: ada}))
}
