package git

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	squad "agentsquad"
)

// CloneOptions says what to clone.
type CloneOptions struct {
	URL        string // without credentials
	Branch     string // to check out; default is the remote's own
	Auth       Auth
	Submodules bool // fetch submodules too, where their addresses can be reached
	// Borrow, where set, makes a new checkout from objects that are there already.
	Borrow *Borrow
}

// CloneResult says what was found.
type CloneResult struct {
	Existing bool   // there was a checkout already; it was brought up to date
	Backup   string // ref that keeps what lay uncommitted in it, "" if it was clean
	Diverged bool   // the local branch has commits of its own and was left alone
	Empty    bool   // the repository has no commit yet
	Branch   string
	Head     string
	Warnings []string
}

// Clone makes the checkout. An existing one is not cloned again: what is
// uncommitted in it is kept on a backup ref, then it is fetched and moved forward
// where no commit of its own stands in the way.
func (c *Checkout) Clone(ctx context.Context, o CloneOptions) (CloneResult, error) {
	var res CloneResult
	if err := CheckURL(o.URL); err != nil {
		return res, err
	}
	if o.Branch != "" {
		if err := checkBranch("branch", o.Branch); err != nil {
			return res, err
		}
	}
	err := c.do(ctx, "clone", func(op *operation) error {
		var err error
		if o.Borrow != nil {
			if res.Existing, err = c.cloneBorrowed(ctx, op, o, &res); err == nil && !res.Existing {
				return c.submodules(ctx, op, o, &res)
			}
		} else {
			res.Existing, err = c.Exists(ctx)
		}
		switch {
		case err != nil:
		case res.Existing:
			err = c.refresh(ctx, op, o, &res)
		default:
			err = c.cloneNew(ctx, op, o)
		}
		if err == nil {
			err = c.describe(ctx, &res)
		}
		if err != nil {
			return err
		}
		return c.submodules(ctx, op, o, &res)
	})
	return res, Explain(err, "clone")
}

// cloneNew clones beside the final place and moves the result there, so that a
// clone that was cut off is never taken for a checkout.
func (c *Checkout) cloneNew(ctx context.Context, op *operation, o CloneOptions) error {
	part := c.dir + ".squad-part"
	if _, err := c.program(ctx, "rm", "-rf", "--", part); err != nil {
		return err
	}
	if _, err := c.program(ctx, "mkdir", "-p", "--", path.Dir(c.dir)); err != nil {
		return err
	}
	args := []string{"clone", "--progress", "--origin", "origin", "--template="}
	if o.Branch != "" {
		args = append(args, "--branch", o.Branch)
	}
	_, err := op.net(ctx, Call{Args: append(args, "--", o.URL, part), Auth: o.Auth, Config: []string{"safe.directory=" + part}})
	if KindOf(err) == KindNotFound && o.Branch != "" && strings.Contains(err.Error(), "emote branch") {
		return squad.Wrap(squad.CodeNotFound, err, "the repository has no branch %q", o.Branch)
	}
	if err != nil {
		return err
	}
	if _, err := c.program(ctx, "mv", "-T", "--", part, c.dir); err != nil {
		return squad.Wrap(squad.CodeConflict, err, "%s exists and is not an empty folder; remove it or configure another path", c.dir)
	}
	return nil
}

func (c *Checkout) refresh(ctx context.Context, op *operation, o CloneOptions, res *CloneResult) error {
	origin, err := c.origin(ctx)
	if err != nil {
		return err
	}
	if another(origin, o.URL) {
		return squad.Errorf(squad.CodeConflict, "%s is a checkout of another repository; configure another path for one of the two", c.dir)
	}
	st, backup, err := c.keepSafe(ctx)
	if err != nil {
		return fmt.Errorf("keep uncommitted work: %w", err)
	}
	res.Backup = backup
	if err := c.setOrigin(ctx, origin, o.URL); err != nil {
		return err
	}
	if err := c.fetch(ctx, op, o.Auth); err != nil {
		return err
	}
	if st.Head == "" {
		return c.checkoutFirst(ctx, o)
	}
	return c.forward(ctx, st.Head, st.Branch, res)
}

// origin is the address of the remote, "" where there is none.
func (c *Checkout) origin(ctx context.Context) (string, error) {
	now, err := c.r.Run(ctx, Call{Dir: c.dir, Args: []string{"remote", "get-url", "origin"}, Accept: []int{2, 128}})
	return strings.TrimSpace(string(now.Stdout)), err
}

// another says whether two addresses of one server are those of two repositories. The
// same repository may be reached at another server than before.
func another(a, b string) bool {
	x, err := url.Parse(a)
	y, err2 := url.Parse(b)
	return err == nil && err2 == nil && x.Host != "" && x.Host == y.Host && strings.TrimSuffix(x.Path, ".git") != strings.TrimSuffix(y.Path, ".git")
}

func (c *Checkout) setOrigin(ctx context.Context, now, url string) (err error) {
	switch now {
	case url:
	case "":
		_, err = c.git(ctx, "remote", "add", "--", "origin", url)
	default:
		_, err = c.git(ctx, "remote", "set-url", "--", "origin", url)
	}
	return err
}

func (c *Checkout) fetch(ctx context.Context, op *operation, auth Auth) error {
	_, err := op.net(ctx, Call{
		Dir: c.dir, Auth: auth,
		Args: []string{"fetch", "--prune", "--progress", "--no-recurse-submodules", "origin", "+refs/heads/*:refs/remotes/origin/*"},
	})
	return err
}

// forward moves the current branch, "" where there is none, from its commit to where
// the remote has it, if that loses nothing.
func (c *Checkout) forward(ctx context.Context, head, branch string, res *CloneResult) error {
	if branch == "" {
		return nil
	}
	ref := "refs/remotes/origin/" + branch
	refs, err := c.refs(ctx, ref)
	remote := refs[ref]
	if err != nil || remote == "" || remote == head {
		return err
	}
	behind, err := c.ok(ctx, "merge-base", "--is-ancestor", head, remote)
	if err != nil {
		return err
	}
	if !behind {
		ahead, err := c.ok(ctx, "merge-base", "--is-ancestor", remote, head)
		res.Diverged = !ahead
		return err
	}
	_, err = c.git(ctx, "merge", "--ff-only", "--quiet", remote)
	return err
}

// checkoutFirst gives a checkout without a commit its first one, if the remote has
// one meanwhile.
func (c *Checkout) checkoutFirst(ctx context.Context, o CloneOptions) error {
	want := o.Branch
	if want == "" {
		// Which branch is the default is known only now.
		if _, err := c.r.Run(ctx, Call{Dir: c.dir, Auth: o.Auth, Args: []string{"remote", "set-head", "origin", "--auto"}, Accept: []int{1, 128}}); err != nil {
			return err
		}
		ref, err := c.r.Run(ctx, Call{Dir: c.dir, Args: []string{"symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"}, Accept: []int{1}})
		if err != nil {
			return err
		}
		want = strings.TrimPrefix(strings.TrimSpace(string(ref.Stdout)), "refs/remotes/origin/")
	}
	if !ValidBranch(want) {
		return nil
	}
	if _, err := c.r.Resolve(ctx, c.dir, "refs/remotes/origin/"+want); err != nil {
		if KindOf(err) == KindNotFound {
			return nil
		}
		return err
	}
	_, err := c.git(ctx, "checkout", "--quiet", "-B", want, "--track", "refs/remotes/origin/"+want)
	return err
}

func (c *Checkout) branchName(ctx context.Context) (string, error) {
	res, err := c.r.Run(ctx, Call{Dir: c.dir, Args: []string{"symbolic-ref", "--quiet", "--short", "HEAD"}, Accept: []int{1}})
	return strings.TrimSpace(string(res.Stdout)), err
}

func (c *Checkout) describe(ctx context.Context, res *CloneResult) (err error) {
	if res.Head, err = c.Head(ctx); err != nil {
		return err
	}
	res.Empty = res.Head == ""
	res.Branch, err = c.branchName(ctx)
	return err
}

func (c *Checkout) submodules(ctx context.Context, op *operation, o CloneOptions, res *CloneResult) error {
	if !o.Submodules || res.Empty {
		return nil
	}
	if _, err := op.net(ctx, Call{Dir: c.dir, Auth: o.Auth, Args: []string{"submodule", "update", "--init", "--recursive", "--progress"}}); err != nil {
		res.Warnings = append(res.Warnings, "submodules were not fetched: "+lastLine(err.Error()))
	}
	return nil
}

// keepSafe stores what is uncommitted on a backup ref and cleans the checkout. A
// rebase or merge that was left half done is ended. Ignored files stay.
func (c *Checkout) keepSafe(ctx context.Context) (Status, string, error) {
	st, err := c.status(ctx)
	if err != nil || st.Clean() {
		return st, "", err
	}
	ref, err := c.setAside(ctx, st)
	if err != nil {
		return st, "", err
	}
	// Ending a rebase moves the branch back to where it began.
	st, err = c.status(ctx)
	return st, ref, err
}

func (c *Checkout) setAside(ctx context.Context, st Status) (string, error) {
	sha, err := c.snapshotCommit(ctx, "chore: keep uncommitted work", Identity{"Agent Squad", "squad@localhost"})
	if err != nil {
		return "", err
	}
	ref := fmt.Sprintf("refs/squad/backup/%s-%.10s", time.Now().UTC().Format("20060102-150405"), sha)
	if _, err := c.git(ctx, "update-ref", ref, sha); err != nil {
		return "", err
	}
	for _, abort := range [][]string{{"rebase", "--abort"}, {"merge", "--abort"}, {"cherry-pick", "--abort"}} {
		if _, err := c.r.Run(ctx, Call{Dir: c.dir, Args: abort, Accept: []int{1, 128}}); err != nil {
			return "", err
		}
	}
	if st.Head != "" {
		if _, err := c.git(ctx, "reset", "--hard", "--quiet"); err != nil {
			return "", err
		}
	} else if _, err := c.git(ctx, "read-tree", "--empty"); err != nil {
		return "", err
	}
	_, err = c.git(ctx, "clean", "-ffd", "--quiet")
	return ref, err
}
