package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	squad "agentsquad"
)

// Signer signs a commit outside the place where it is made, so that the key never
// enters a sandbox. It returns the armoured signature of the payload.
type Signer func(ctx context.Context, payload []byte) (string, error)

// CommitOptions says what to commit.
type CommitOptions struct {
	Message string // a conventional commit message
	Author  Identity
	Paths   []string // only these; empty means everything that changed
	Sign    Signer   // nil means unsigned
}

// Commit checks the message, stages and commits. CodeRule: the message; CodeConflict:
// nothing to commit, or conflicts are open.
func (c *Checkout) Commit(ctx context.Context, o CommitOptions) (squad.Commit, error) {
	var done squad.Commit
	if _, err := ParseConventional(o.Message); err != nil {
		return done, err
	}
	if err := o.Author.check(); err != nil {
		return done, err
	}
	err := c.do(ctx, "commit", func(*operation) error {
		if err := c.stage(ctx, o.Paths); err != nil {
			return err
		}
		same, err := c.ok(ctx, "diff", "--cached", "--quiet", "--no-ext-diff")
		if err != nil {
			return err
		}
		if same && !c.merging(ctx) {
			return squad.Wrap(squad.CodeConflict, errNothing, "there is nothing to commit")
		}
		if o.Sign != nil {
			err = c.commitSigned(ctx, o)
		} else {
			_, err = c.r.Run(ctx, Call{
				Dir: c.dir, Args: []string{"commit", "--quiet", "--no-verify", "--cleanup=whitespace", "-F", "-"},
				Stdin: strings.NewReader(o.Message), Env: o.Author.env(),
			})
		}
		if err != nil {
			return err
		}
		list, err := c.r.log(ctx, c.dir, "-1", "HEAD")
		if err == nil && len(list) == 1 {
			done = list[0]
		}
		return err
	})
	return done, Explain(err, "commit")
}

// Recorded is what a turn of work left on a branch.
type Recorded struct {
	Head string // "" before the first commit
	Made bool   // something was uncommitted and is a commit now
}

// Record commits whatever is uncommitted, if anything, and tells where the branch is
// then, in one run.
func (c *Checkout) Record(ctx context.Context, o CommitOptions) (done Recorded, err error) {
	if _, err := ParseConventional(o.Message); err != nil {
		return done, err
	}
	if err := o.Author.check(); err != nil {
		return done, err
	}
	if o.Sign != nil || len(o.Paths) > 0 {
		return c.recordSlowly(ctx, o)
	}
	unmerged := false
	err = c.do(ctx, "", func(op *operation) error {
		res, err := c.r.script(ctx, "commit", recordScript, Call{Dir: c.dir, Args: []string{o.Message}, Env: o.Author.env(), Accept: []int{exitUnmerged}})
		if err != nil {
			op.entry.Kind = "commit"
			return err
		}
		if unmerged = res.ExitCode == exitUnmerged; unmerged {
			return nil
		}
		if done, err = readRecord(string(res.Stdout)); err == nil && done.Made {
			op.entry.Kind = "commit" // worth a row after all
		}
		return err
	})
	if unmerged {
		return c.recordSlowly(ctx, o)
	}
	return done, Explain(err, "commit")
}

// readRecord reads what the script printed: whether a commit was made, and HEAD.
func readRecord(out string) (done Recorded, err error) {
	made, head, _ := strings.Cut(out, "\n")
	done.Made, done.Head = made == "made", strings.TrimSpace(head)
	if done.Head != "" && !ValidSHA(done.Head) {
		return done, fmt.Errorf("read commit: unexpected answer %.80q", done.Head)
	}
	return done, nil
}

// recordSlowly is Record for what needs a look in between: open conflicts,
// signatures, some files only.
func (c *Checkout) recordSlowly(ctx context.Context, o CommitOptions) (done Recorded, err error) {
	switch _, err = c.Commit(ctx, o); {
	case err == nil:
		done.Made = true
	case !errors.Is(err, errNothing):
		return done, err
	}
	done.Head, err = c.Head(ctx)
	return done, err
}

// errNothing is the cause of a commit that has nothing in it.
var errNothing = errors.New("nothing to commit")

// stage adds what changed. A file whose conflict is still marked is refused: git
// would take the markers for its content.
func (c *Checkout) stage(ctx context.Context, paths []string) error {
	st, err := c.status(ctx)
	if err != nil {
		return err
	}
	if open := st.Unmerged(); len(open) > 0 {
		res, err := c.r.Run(ctx, Call{Dir: c.dir, Args: append([]string{"diff", "--check", "--no-ext-diff", "--"}, literal(open)...), Accept: []int{1, 2}})
		if err != nil {
			return err
		}
		if strings.Contains(string(res.Stdout), "conflict marker") {
			return squad.Errorf(squad.CodeConflict, "conflicts are not resolved in %s", strings.Join(open, ", "))
		}
	}
	args := []string{"add", "-A"}
	if len(paths) > 0 {
		args = append(append(args, "--"), literal(paths)...)
	}
	_, err = c.git(ctx, args...)
	return err
}

// merging says whether a merge waits for its commit, which may be empty.
func (c *Checkout) merging(ctx context.Context) bool {
	yes, err := c.ok(ctx, "rev-parse", "--quiet", "--verify", "MERGE_HEAD")
	return err == nil && yes
}

// literal makes pathspecs that mean the names as they are.
func literal(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = ":(top,literal)" + p
	}
	return out
}

// commitSigned writes the commit object itself, with the signature in it.
func (c *Checkout) commitSigned(ctx context.Context, o CommitOptions) error {
	tree, err := c.git(ctx, "write-tree")
	if err != nil {
		return err
	}
	head, err := c.Head(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("tree " + tree + "\n")
	old := ZeroSHA
	if head != "" {
		old = head
		b.WriteString("parent " + head + "\n")
	}
	merging := c.merging(ctx)
	if merging {
		other, err := c.git(ctx, "rev-parse", "--verify", "MERGE_HEAD")
		if err != nil {
			return err
		}
		b.WriteString("parent " + other + "\n")
	}
	who := fmt.Sprintf("%s <%s> %d +0000\n", o.Author.Name, o.Author.Email, time.Now().Unix())
	b.WriteString("author " + who + "committer " + who)
	header, message := b.String(), "\n"+strings.TrimSpace(o.Message)+"\n"
	signature, err := o.Sign(ctx, []byte(header+message))
	if err != nil {
		return fmt.Errorf("sign commit: %w", err)
	}
	signature = strings.ReplaceAll(strings.TrimSpace(signature), "\n", "\n ")
	res, err := c.r.Run(ctx, Call{
		Dir: c.dir, Args: []string{"hash-object", "-t", "commit", "-w", "--stdin"},
		Stdin: strings.NewReader(header + "gpgsig " + signature + "\n" + message),
	})
	if err != nil {
		return err
	}
	if _, err = c.git(ctx, "update-ref", "-m", "commit", "HEAD", strings.TrimSpace(string(res.Stdout)), old); err == nil && merging {
		_, err = c.git(ctx, "merge", "--quit")
	}
	return err
}

// Log lists the commits of to that from has not, newest first; from may be "".
func (r *Runner) Log(ctx context.Context, dir, from, to string, limit int) (list []squad.Commit, err error) {
	span := to
	if from != "" {
		span = from + ".." + to
		err = checkRevision("from", from)
	}
	if err = errors.Join(err, checkRevision("to", to)); err != nil {
		return nil, err
	}
	list, err = r.log(ctx, dir, fmt.Sprintf("--max-count=%d", max(1, limit)), span)
	return list, Explain(err, "log")
}

func (r *Runner) log(ctx context.Context, dir string, args ...string) ([]squad.Commit, error) {
	out, err := r.Line(ctx, dir, append(append([]string{"log", "-z", "--format=" + logFormat}, args...), "--")...)
	if err != nil {
		return nil, err
	}
	return parseLog(out)
}

// logFormat is the form of a commit that parseLog reads.
const logFormat = "%H%x01%s%x01%an%x01%aI"

func parseLog(out string) (list []squad.Commit, err error) {
	for _, entry := range strings.Split(out, "\x00") {
		parts := strings.SplitN(entry, "\x01", 4)
		if len(parts) != 4 {
			continue
		}
		at, err := time.Parse(time.RFC3339, strings.TrimSpace(parts[3]))
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		list = append(list, squad.Commit{SHA: parts[0], Subject: parts[1], Author: parts[2], At: at.UTC()})
	}
	return list, nil
}
