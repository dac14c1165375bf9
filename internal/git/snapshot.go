package git

import (
	"context"
	"fmt"
	"strings"

	squad "agentsquad"
)

// snapshotTree writes the working tree as it is and returns the tree's name. Call it
// in the checkout's turn.
func (c *Checkout) snapshotTree(ctx context.Context) (string, error) {
	res, err := c.r.script(ctx, "snapshot", snapshotScript+`echo "$tree"`, Call{Dir: c.dir})
	return strings.TrimSpace(string(res.Stdout)), err
}

func (c *Checkout) snapshotCommit(ctx context.Context, message string, who Identity) (string, error) {
	res, err := c.r.script(ctx, "snapshot", snapshotCommitScript, Call{Dir: c.dir, Args: []string{message + "\n\n" + snapshotMark}, Env: who.env()})
	return strings.TrimSpace(string(res.Stdout)), err
}

// snapshotMark tells a snapshot of uncommitted work from a commit that was meant.
const snapshotMark = "Squad-Snapshot: yes"

// CheckpointOptions says where a checkpoint goes.
type CheckpointOptions struct {
	Ref     string // refs/squad/checkpoints/<execution>/<name>
	Message string
	Author  Identity
	Auth    Auth
	Via     *Via // see [PushOptions]
	Base    string
}

// Checkpoint stores the working tree as it is outside the sandbox: as a commit on
// top of HEAD, pushed to a hidden ref. Branch, index and files stay as they are;
// where nothing is uncommitted HEAD itself is stored. It returns the commit, "" in
// an empty checkout.
func (c *Checkout) Checkpoint(ctx context.Context, o CheckpointOptions) (sha string, err error) {
	if !ValidRef(o.Ref) || !strings.HasPrefix(o.Ref, "refs/squad/checkpoints/") {
		return "", squad.Invalid("ref", "%q is not a checkpoint ref", o.Ref)
	}
	if err := o.Author.check(); err != nil {
		return "", err
	}
	err = c.do(ctx, "checkpoint", func(op *operation) error {
		if sha, err = c.snapshotCommit(ctx, o.Message, o.Author); err != nil {
			return fmt.Errorf("take snapshot: %w", err)
		}
		if o.Via != nil {
			return c.carry(ctx, op, o.Via, cargo{ref: o.Ref, sha: sha, base: o.Base, force: true})
		}
		_, err = op.net(ctx, Call{Dir: c.dir, Auth: o.Auth, Args: []string{"push", "--progress", "--no-verify", "origin", "+" + sha + ":" + o.Ref}})
		return err
	})
	return sha, Explain(err, "checkpoint")
}

// DiffOptions says which states to compare.
type DiffOptions struct {
	From string // default HEAD
	// To is a revision; empty means the working tree with its untracked files.
	To       string
	Paths    []string
	Context  int // lines around a change; 0 means 3
	MaxBytes int // of patch text; default 2 MiB
}

// Diff compares two states of the checkout.
func (c *Checkout) Diff(ctx context.Context, o DiffOptions) (d Diff, err error) {
	if o.From == "" {
		o.From = "HEAD"
	}
	if err := checkRevision("from", o.From); err != nil {
		return d, err
	}
	if o.To != "" {
		if err := checkRevision("to", o.To); err != nil {
			return d, err
		}
	}
	err = c.do(ctx, "", func(*operation) error {
		if o.From == "HEAD" {
			head, err := c.Head(ctx)
			if err != nil {
				return err
			}
			if head == "" {
				// The name of the empty tree, which git knows without having it.
				o.From = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
			}
		}
		if o.To == "" {
			if o.To, err = c.snapshotTree(ctx); err != nil {
				return err
			}
		}
		d, err = DiffTrees(ctx, c.r, c.dir, o)
		return err
	})
	return d, Explain(err, "diff")
}

// DiffTrees compares two revisions of any repository, bare or not.
func DiffTrees(ctx context.Context, r *Runner, dir string, o DiffOptions) (Diff, error) {
	if err := checkRevision("from", o.From); err != nil {
		return Diff{}, err
	}
	if err := checkRevision("to", o.To); err != nil {
		return Diff{}, err
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 2 << 20
	}
	if o.Context == 0 {
		o.Context = 3
	}
	args := append([]string{"diff", fmt.Sprintf("--unified=%d", o.Context)}, diffArgs...)
	args = append(args, o.From, o.To, "--")
	res, err := r.Run(ctx, Call{Dir: dir, Args: append(args, literal(o.Paths)...), MaxOutput: 256 << 20})
	if err != nil {
		return Diff{}, err
	}
	return ParseDiff(res.Stdout, o.MaxBytes)
}
