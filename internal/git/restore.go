package git

import (
	"context"
	"strings"

	squad "agentsquad"
)

// RestoreOptions says which stored state to bring back.
type RestoreOptions struct {
	Ref  string // of the remote, for example a checkpoint
	SHA  string // the commit expected there; "" takes what is there
	Auth Auth
}

// Restore fetches a stored commit and puts the current branch and the working tree
// there; what a checkpoint kept of uncommitted work is uncommitted again. It is for a
// fresh checkout: what was uncommitted there is lost.
func (c *Checkout) Restore(ctx context.Context, o RestoreOptions) error {
	if !ValidRef(o.Ref) || o.SHA != "" && !ValidSHA(o.SHA) {
		return squad.Invalid("ref", "%q cannot be restored", o.Ref)
	}
	err := c.do(ctx, "fetch", func(op *operation) error {
		if _, err := op.net(ctx, Call{Dir: c.dir, Auth: o.Auth, Args: []string{"fetch", "--progress", "--no-tags", "origin", o.Ref}}); err != nil {
			return err
		}
		target := "FETCH_HEAD"
		if o.SHA != "" {
			target = o.SHA
		}
		if _, err := c.git(ctx, "reset", "--hard", "--quiet", target); err != nil {
			return err
		}
		return c.unwrap(ctx)
	})
	return Explain(err, "restore "+strings.TrimPrefix(o.Ref, "refs/"))
}

// unwrap takes a snapshot's commit off the branch and leaves its content uncommitted,
// as it was when the snapshot was taken.
func (c *Checkout) unwrap(ctx context.Context) error {
	message, err := c.git(ctx, "log", "-1", "--format=%P%n%B")
	if err != nil {
		return err
	}
	parents, body, _ := strings.Cut(message, "\n")
	if parents == "" || !strings.Contains(body, snapshotMark) {
		return nil
	}
	_, err = c.git(ctx, "reset", "--quiet", "HEAD^")
	return err
}

// MergeBase is the newest commit that two revisions share, "" where they share none.
func (c *Checkout) MergeBase(ctx context.Context, a, b string) (sha string, err error) {
	if err := checkRevision("a", a); err != nil {
		return "", err
	}
	if err := checkRevision("b", b); err != nil {
		return "", err
	}
	err = c.do(ctx, "", func(*operation) error {
		res, err := c.r.Run(ctx, Call{Dir: c.dir, Args: []string{"merge-base", a, b}, Accept: []int{1}})
		sha = strings.TrimSpace(string(res.Stdout))
		return err
	})
	return sha, Explain(err, "compare")
}
