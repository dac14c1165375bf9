package git

import (
	"context"

	squad "agentsquad"
)

// BranchResult says where a branch came from.
type BranchResult struct {
	Name      string
	Continued bool   // it existed, here or on the remote
	Head      string // "" in an empty repository
	Base      string // commit of the base it was made from, "" where continued
}

// Branch checks out the branch, making it from the remote's base where it does not
// exist. An existing one is continued, and moved forward to where the remote has
// it if that loses nothing.
func (c *Checkout) Branch(ctx context.Context, name, base string) (BranchResult, error) {
	res := BranchResult{Name: name}
	if err := checkBranch("branch", name); err != nil {
		return res, err
	}
	if err := checkBranch("base", base); err != nil {
		return res, err
	}
	err := c.do(ctx, "branch", func(*operation) (err error) {
		local, remote := "refs/heads/"+name, "refs/remotes/origin/"+name
		hasLocal, err := c.has(ctx, local)
		if err != nil {
			return err
		}
		hasRemote, err := c.has(ctx, remote)
		if err != nil {
			return err
		}
		res.Continued = hasLocal || hasRemote
		switch {
		case hasLocal:
			if _, err = c.git(ctx, "checkout", "--quiet", name, "--"); err == nil && hasRemote {
				err = c.forward(ctx, "", &CloneResult{})
			}
		case hasRemote:
			_, err = c.git(ctx, "checkout", "--quiet", "-b", name, "--track", remote, "--")
		default:
			res.Base, err = c.branchFrom(ctx, name, base)
		}
		if err != nil {
			return err
		}
		res.Head, err = c.Head(ctx)
		return err
	})
	return res, Explain(err, "branch "+name)
}

func (c *Checkout) has(ctx context.Context, ref string) (bool, error) {
	_, err := c.r.Resolve(ctx, c.dir, ref)
	if KindOf(err) == KindNotFound {
		return false, nil
	}
	return err == nil, err
}

// branchFrom makes a new branch. In a repository without a commit it is the branch
// that the first commit will be on.
func (c *Checkout) branchFrom(ctx context.Context, name, base string) (string, error) {
	for _, start := range []string{"refs/remotes/origin/" + base, "refs/heads/" + base} {
		sha, err := c.r.Resolve(ctx, c.dir, start)
		if err == nil {
			_, err = c.git(ctx, "checkout", "--quiet", "--no-track", "-b", name, sha, "--")
			return sha, err
		}
		if KindOf(err) != KindNotFound {
			return "", err
		}
	}
	head, err := c.Head(ctx)
	if err != nil {
		return "", err
	}
	if head != "" {
		return "", squad.Errorf(squad.CodeNotFound, "the base branch %q does not exist", base)
	}
	_, err = c.git(ctx, "symbolic-ref", "HEAD", "refs/heads/"+name)
	return "", err
}
