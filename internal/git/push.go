package git

import (
	"context"
	"strings"

	squad "agentsquad"
)

// PushOptions says what to push.
type PushOptions struct {
	Branch string
	Auth   Auth
	// Rebase answers a branch that has moved on the remote with fetch, rebase and
	// another push, three times at most.
	Rebase bool
	// Force replaces the remote branch, if it still is where it was last seen.
	Force    bool
	Identity Identity // committer of rebased commits
	// Via, where set, is the remote as this program reaches it: the objects are
	// taken out of the checkout and sent from here, so that nothing inside has to
	// reach the remote or hold a credential.
	Via  *Via
	Head string // what to push, where known
	Base string // a commit that the remote has, where known
}

// Push sends the branch to the remote. CodeConflict: the remote has commits that are
// not here, or (as a [*ConflictError]) cannot be rebased on; CodeRule: a rule of the
// remote refuses it and says why.
func (c *Checkout) Push(ctx context.Context, o PushOptions) error {
	if err := checkBranch("branch", o.Branch); err != nil {
		return err
	}
	err := c.do(ctx, "push", func(op *operation) error {
		wait := c.r.cfg.Retry.Wait
		for try := 1; ; try++ {
			op.entry.Attempts = max(op.entry.Attempts, try)
			err := c.pushOnce(ctx, op, o)
			if KindOf(err) != KindRejected || !o.Rebase || try == 3 {
				return err
			}
			if c.r.cfg.Retry.Sleep(ctx, wait) != nil {
				return err
			}
			wait *= 2
			if err := c.fetch(ctx, op, o.Auth); err != nil {
				return err
			}
			if err := c.rebase(ctx, "refs/remotes/origin/"+o.Branch, o.Identity, false); err != nil {
				return err
			}
			o.Head = "" // it has moved
		}
	})
	return Explain(err, "push "+o.Branch)
}

func (c *Checkout) pushOnce(ctx context.Context, op *operation, o PushOptions) error {
	if o.Via != nil {
		return c.carryBranch(ctx, op, o)
	}
	ref := "refs/heads/" + o.Branch
	args := []string{"push", "--progress", "--no-verify", "--recurse-submodules=no"}
	if o.Force {
		seen, err := c.r.Resolve(ctx, c.dir, "refs/remotes/origin/"+o.Branch)
		if err != nil && KindOf(err) != KindNotFound {
			return err
		}
		args = append(args, "--force-with-lease="+ref+":"+seen)
	}
	_, err := op.net(ctx, Call{Dir: c.dir, Auth: o.Auth, Args: append(args, "origin", ref+":"+ref)})
	return err
}

func (c *Checkout) carryBranch(ctx context.Context, op *operation, o PushOptions) error {
	ref, sha := "refs/heads/"+o.Branch, o.Head
	if sha == "" {
		var err error
		if sha, err = c.r.Resolve(ctx, c.dir, ref); err != nil {
			return err
		}
	}
	return c.carry(ctx, op, o.Via, cargo{ref: ref, sha: sha, base: o.Base, force: o.Force})
}

// Fetch brings the remote's branches into the checkout's remote refs.
func (c *Checkout) Fetch(ctx context.Context, auth Auth) error {
	err := c.do(ctx, "fetch", func(op *operation) error { return c.fetch(ctx, op, auth) })
	return Explain(err, "fetch")
}

// PullOptions says how the remote's commits come in.
type PullOptions struct {
	Auth     Auth
	Rebase   bool // put own commits on top; else only moving forward is allowed
	Identity Identity
}

// Pull fetches and brings the current branch up to date.
func (c *Checkout) Pull(ctx context.Context, o PullOptions) error {
	err := c.do(ctx, "pull", func(op *operation) error {
		if err := c.fetch(ctx, op, o.Auth); err != nil {
			return err
		}
		branch, err := c.branchName(ctx)
		if err != nil {
			return err
		}
		if branch == "" {
			return squad.Errorf(squad.CodeConflict, "the checkout is on no branch")
		}
		remote := "refs/remotes/origin/" + branch
		if o.Rebase {
			return c.rebase(ctx, remote, o.Identity, false)
		}
		head, err := c.Head(ctx)
		if err != nil {
			return err
		}
		var res CloneResult
		if err := c.forward(ctx, head, branch, &res); err != nil {
			return err
		}
		if res.Diverged {
			return squad.Errorf(squad.CodeConflict, "%s and the remote's %s have both moved; rebase to join them", branch, branch)
		}
		return nil
	})
	return Explain(err, "pull")
}

// RebaseOptions says what to rebase on.
type RebaseOptions struct {
	Onto     string // a branch of the remote, or any revision
	Auth     Auth
	Fetch    bool // fetch first
	Identity Identity
	// Keep leaves a clash in the working tree for the agent to resolve; else the
	// rebase is undone.
	Keep bool
}

// Rebase puts the current branch's commits on top of another. A clash is a
// [*ConflictError] inside a CodeConflict, with both sides' text: Ours is what is
// rebased on, Theirs the commit that does not fit.
func (c *Checkout) Rebase(ctx context.Context, o RebaseOptions) error {
	if err := checkRevision("onto", o.Onto); err != nil {
		return err
	}
	err := c.do(ctx, "rebase", func(op *operation) error {
		if o.Fetch {
			if err := c.fetch(ctx, op, o.Auth); err != nil {
				return err
			}
		}
		onto := o.Onto
		if remote := "refs/remotes/origin/" + onto; ValidBranch(onto) && ValidRef(remote) {
			if yes, err := c.has(ctx, remote); err != nil {
				return err
			} else if yes {
				onto = remote
			}
		}
		return c.rebase(ctx, onto, o.Identity, o.Keep)
	})
	return Explain(err, "rebase")
}

func (c *Checkout) rebase(ctx context.Context, onto string, who Identity, keep bool) error {
	if err := who.check(); err != nil {
		return err
	}
	env := []string{"GIT_COMMITTER_NAME=" + who.Name, "GIT_COMMITTER_EMAIL=" + who.Email}
	_, err := c.r.Run(ctx, Call{Dir: c.dir, Env: env, Args: []string{"rebase", "--quiet", "--no-autostash", "--empty=drop", onto}, Config: []string{"merge.conflictStyle=merge"}})
	if err == nil {
		return nil
	}
	files, cerr := c.openConflicts(ctx)
	if cerr != nil || len(files) == 0 {
		return err
	}
	if !keep {
		if _, err := c.git(ctx, "rebase", "--abort"); err != nil {
			return err
		}
	}
	return conflict("rebase on "+strings.TrimPrefix(onto, "refs/remotes/origin/"), files)
}

// openConflicts reads the unmerged files of the working tree with both sides.
func (c *Checkout) openConflicts(ctx context.Context) ([]FileConflict, error) {
	out, err := c.git(ctx, "ls-files", "--unmerged", "-z")
	if err != nil {
		return nil, err
	}
	var m MergeResult
	words := strings.Split(strings.TrimSuffix(out, "\x00")+"\x00", "\x00")
	i := -1
	err = m.readStages(func() (string, bool) {
		i++
		if i >= len(words) {
			return "", false
		}
		return words[i], true
	})
	if err != nil {
		return nil, err
	}
	for i := range m.Conflicts {
		f := &m.Conflicts[i]
		f.Kind = "contents"
		if f.Ours == "" || f.Theirs == "" {
			f.Kind = "modify/delete"
			continue
		}
		text, err := c.program(ctx, "head", "-c", "1048576", "--", c.dir+"/"+f.Path)
		if err == nil {
			f.Hunks = ParseMarkers(string(text))
		}
	}
	return m.Conflicts, nil
}
