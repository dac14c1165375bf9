package git

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	squad "agentsquad"
)

// Borrow is a repository whose objects lie where a checkout can read them: a clone
// then needs no network and copies none. See [Mirror.Borrow].
type Borrow struct {
	Objects string // folder of the objects, as seen from the checkout
	Head    string // the default branch
	refs    []ref
}

type ref struct{ name, sha, peeled string }

// Borrow reads what the mirror has now: its branches and tags. The caller shows the
// folder of its objects to the checkout afterwards, and says where in Objects.
func (m *Mirror) Borrow(ctx context.Context) (*Borrow, error) {
	head, err := m.DefaultBranch(ctx)
	if err != nil {
		return nil, err
	}
	res, err := m.keeper.cfg.Runner.Run(ctx, Call{
		Dir: m.dir, Args: []string{"for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", "refs/heads/", "refs/tags/"}, MaxOutput: 64 << 20,
	})
	if err != nil {
		return nil, fmt.Errorf("list refs of mirror: %w", err)
	}
	b := &Borrow{Head: head}
	for line := range strings.Lines(string(res.Stdout)) {
		part := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(part) == 3 && ValidSHA(part[1]) && !strings.ContainsAny(part[0], "\n\x00") {
			b.refs = append(b.refs, ref{part[0], part[1], part[2]})
		}
	}
	return b, nil
}

// commit is where a branch is, "" where it is not.
func (b *Borrow) commit(branch string) string {
	for _, r := range b.refs {
		if r.name == "refs/heads/"+branch {
			return r.sha
		}
	}
	return ""
}

// packedRefs is the file of refs that a clone with one branch checked out has.
func (b *Borrow) packedRefs(branch string) string {
	var list []ref
	for _, r := range b.refs {
		if name, ok := strings.CutPrefix(r.name, "refs/heads/"); ok {
			list = append(list, ref{"refs/remotes/origin/" + name, r.sha, ""})
			if name == branch {
				list = append(list, r)
			}
		} else {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(x, y ref) int { return strings.Compare(x.name, y.name) })
	var out strings.Builder
	out.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for _, r := range list {
		fmt.Fprintf(&out, "%s %s\n", r.sha, r.name)
		if r.peeled != "" {
			fmt.Fprintf(&out, "^%s\n", r.peeled)
		}
	}
	return out.String()
}

// cloneBorrowed makes the checkout from borrowed objects, in one run. Where there is a
// checkout already it says so and touches nothing.
func (c *Checkout) cloneBorrowed(ctx context.Context, op *operation, o CloneOptions, res *CloneResult) (existing bool, err error) {
	branch := o.Branch
	if branch == "" {
		branch = o.Borrow.Head
	}
	if err := checkBranch("branch", branch); err != nil {
		return false, err
	}
	if strings.ContainsAny(o.URL+o.Borrow.Objects, "\n\"\\") {
		return false, squad.Invalid("url", "%q cannot be written into a configuration", o.URL)
	}
	commit := o.Borrow.commit(branch)
	if commit == "" && (o.Branch != "" || len(o.Borrow.refs) > 0) {
		return false, squad.Errorf(squad.CodeNotFound, "the repository has no branch %q", branch)
	}
	part := c.dir + ".squad-part"
	made, err := c.r.script(ctx, "clone", borrowScript, Call{
		Dir: "/", Config: []string{"safe.directory=" + part}, Stdin: strings.NewReader(o.Borrow.packedRefs(branch)), Progress: op.progress,
		Timeout: 15 * time.Minute, Accept: []int{exitExists, exitTaken},
		Args: []string{part, c.dir, path.Dir(c.dir), o.Borrow.Objects, branch, commit, checkoutConfig(o.URL, branch, "")},
	})
	switch {
	case err != nil:
		return false, err
	case made.ExitCode == exitTaken:
		return false, squad.Errorf(squad.CodeConflict, "%s exists and is not an empty folder; remove it or configure another path", c.dir)
	}
	res.Head, res.Branch, res.Empty = commit, branch, commit == ""
	return made.ExitCode == exitExists, nil
}

// checkoutConfig is the configuration of a checkout as git clone writes it.
func checkoutConfig(origin, branch, core string) string {
	return fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n%s"+
		"[remote \"origin\"]\n\turl = \"%s\"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"+
		"[branch \"%s\"]\n\tremote = origin\n\tmerge = \"refs/heads/%s\"\n[gc]\n\tauto = 0\n", core, origin, branch, branch)
}
