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
		list, err := c.log(ctx, []string{"-1", "HEAD"})
		if err == nil && len(list) == 1 {
			done = list[0]
		}
		return err
	})
	return done, Explain(err, "commit")
}

// Recorded is what a turn of work left on a branch.
type Recorded struct {
	Head    string         // "" before the first commit
	Commits []squad.Commit // those on top of since, newest first, 100 at most
	Made    bool           // something was uncommitted and is a commit now
}

// Record commits whatever is uncommitted, if anything, and reads what the branch has
// on top of the commit since. It is [Checkout.Commit] and [Checkout.Log] in one run.
func (c *Checkout) Record(ctx context.Context, o CommitOptions, since string) (done Recorded, err error) {
	if _, err := ParseConventional(o.Message); err != nil {
		return done, err
	}
	if err := o.Author.check(); err != nil {
		return done, err
	}
	if since != "" && !ValidSHA(since) {
		return done, squad.Invalid("since", "%q is not a commit", since)
	}
	if o.Sign != nil || len(o.Paths) > 0 {
		return c.recordSlowly(ctx, o, since)
	}
	unmerged := false
	err = c.do(ctx, "", func(op *operation) error {
		res, err := c.r.script(ctx, "commit", recordScript, Call{Dir: c.dir, Args: []string{o.Message, since}, Env: o.Author.env(), Accept: []int{exitUnmerged}})
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
		return c.recordSlowly(ctx, o, since)
	}
	return done, Explain(err, "commit")
}

// readRecord reads what the script printed: whether a commit was made, HEAD, the log.
func readRecord(out string) (done Recorded, err error) {
	made, out, _ := strings.Cut(out, "\n")
	done.Made = made == "made"
	done.Head, out, _ = strings.Cut(out, "\n")
	if done.Head != "" && !ValidSHA(done.Head) {
		return done, fmt.Errorf("read commit: unexpected answer %.80q", done.Head)
	}
	done.Commits, err = parseLog(out)
	return done, err
}

// recordSlowly is Record for what needs a look in between: open conflicts,
// signatures, some files only.
func (c *Checkout) recordSlowly(ctx context.Context, o CommitOptions, since string) (done Recorded, err error) {
	switch _, err = c.Commit(ctx, o); {
	case err == nil:
		done.Made = true
	case !errors.Is(err, errNothing):
		return done, err
	}
	if done.Head, err = c.Head(ctx); err != nil || done.Head == "" {
		return done, err
	}
	done.Commits, err = c.Log(ctx, since, "HEAD", 100)
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

// Log returns the commits of from..to, newest first; from may be empty.
func (c *Checkout) Log(ctx context.Context, from, to string, limit int) (list []squad.Commit, err error) {
	span := to
	if from != "" {
		span = from + ".." + to
		err = checkRevision("from", from)
	}
	if err = errors.Join(err, checkRevision("to", to)); err != nil {
		return nil, err
	}
	err = c.do(ctx, "", func(*operation) error {
		list, err = c.log(ctx, []string{fmt.Sprintf("--max-count=%d", max(1, limit)), span})
		return err
	})
	return list, Explain(err, "log")
}

func (c *Checkout) log(ctx context.Context, args []string) ([]squad.Commit, error) {
	args = append([]string{"log", "-z", "--format=" + logFormat}, args...)
	out, err := c.git(ctx, append(args, "--")...)
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
