package git

import (
	"context"
	"strings"

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
	err := c.do(ctx, "branch", func(op *operation) error { return c.branch(ctx, op, base, &res) })
	return res, Explain(err, "branch "+name)
}

func (c *Checkout) branch(ctx context.Context, op *operation, base string, res *BranchResult) error {
	local, remote := "refs/heads/"+res.Name, "refs/remotes/origin/"+res.Name
	starts := []string{"refs/remotes/origin/" + base, "refs/heads/" + base}
	var there string
	if c.Remote != nil {
		var err error
		if there, err = c.Remote(ctx, res.Name); err != nil {
			return err
		}
	}
	refs, err := c.begin(ctx, res.Name, base, c.Remote != nil && there == "")
	if err != nil {
		return err
	}
	if made := refs["made"]; made != "" {
		res.Base, res.Head = made, made
		return nil
	}
	// A tree that came with the sandbox knows only its base.
	fetch := refs[local] == "" && refs[remote] == "" && refs[preparedRef] != "" &&
		(c.Remote == nil || there != "" || refs[starts[0]] == "" && refs[starts[1]] == "")
	if fetch {
		if err := c.fetch(ctx, op, Auth{}); err != nil {
			return err
		}
		if refs, err = c.refs(ctx, local, remote, starts[0], starts[1]); err != nil {
			return err
		}
	}
	res.Continued = refs[local] != "" || refs[remote] != ""
	switch {
	case refs[local] != "":
		if _, err = c.git(ctx, "checkout", "--quiet", res.Name, "--"); err == nil && refs[remote] != "" && refs[remote] != refs[local] {
			err = c.forward(ctx, refs[local], res.Name, &CloneResult{})
		}
	case refs[remote] != "":
		_, err = c.git(ctx, "checkout", "--quiet", "-b", res.Name, "--track", remote, "--")
	default:
		start := refs[starts[0]]
		if start == "" {
			start = refs[starts[1]]
		}
		res.Base, res.Head = start, start
		return c.branchFrom(ctx, res.Name, base, start, start != "" && start == refs["HEAD"])
	}
	if err != nil {
		return err
	}
	res.Head, err = c.Head(ctx)
	return err
}

// begin reads the refs that matter for a branch. Where it exists nowhere and HEAD is at
// its base, it is made in the same run, and "made" is its commit.
func (c *Checkout) begin(ctx context.Context, name, base string, absent bool) (map[string]string, error) {
	args := []string{name, base, preparedRef}
	if absent {
		args = append(args, "absent")
	}
	out, err := c.r.script(ctx, "checkout", branchScript, Call{Dir: c.dir, Args: args})
	return parseRefs(string(out.Stdout)), err
}

// refs reads several refs at once; those that do not exist are left out. Where HEAD is
// on one of them, it is there too.
func (c *Checkout) refs(ctx context.Context, names ...string) (map[string]string, error) {
	out, err := c.git(ctx, append([]string{"for-each-ref", refFormat, "--"}, names...)...)
	return parseRefs(out), err
}

func parseRefs(out string) map[string]string {
	found := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		sha, ref, ok := strings.Cut(line, " ")
		if at, here := strings.CutSuffix(ref, "*"); here {
			ref, found["HEAD"] = at, sha
		}
		if ok {
			found[strings.TrimSuffix(ref, " ")] = sha
		}
	}
	return found
}

func (c *Checkout) has(ctx context.Context, ref string) (bool, error) {
	_, err := c.r.Resolve(ctx, c.dir, ref)
	if KindOf(err) == KindNotFound {
		return false, nil
	}
	return err == nil, err
}

// branchFrom makes a new branch at a commit. In a repository without one it is the
// branch that the first commit will be on.
func (c *Checkout) branchFrom(ctx context.Context, name, base, start string, here bool) error {
	if start != "" {
		args := []string{name, start}
		if here {
			args = append(args, "here")
		}
		_, err := c.r.script(ctx, "checkout", beginScript, Call{Dir: c.dir, Args: args})
		return err
	}
	head, err := c.Head(ctx)
	if err != nil {
		return err
	}
	if head != "" {
		return squad.Errorf(squad.CodeNotFound, "the base branch %q does not exist", base)
	}
	_, err = c.git(ctx, "symbolic-ref", "HEAD", "refs/heads/"+name)
	return err
}

// Begin makes a branch at a commit that the checkout has, and checks it out: one run,
// for a fresh checkout whose remote is known not to have the branch. One that exists
// is CodeConflict; use [Checkout.Branch] then.
func (c *Checkout) Begin(ctx context.Context, name, sha string) error {
	if err := checkBranch("branch", name); err != nil {
		return err
	}
	if !ValidSHA(sha) {
		return squad.Invalid("sha", "%q is not a commit", sha)
	}
	err := c.do(ctx, "branch", func(*operation) error {
		_, err := c.r.script(ctx, "checkout", beginScript, Call{Dir: c.dir, Args: []string{name, sha}})
		if err != nil && strings.Contains(err.Error(), "already exists") {
			return squad.Wrap(squad.CodeConflict, err, "branch %s exists", name)
		}
		return err
	})
	return Explain(err, "branch "+name)
}

// Start is [Checkout.Begin] for a prepared checkout, see [CheckoutTree], whose HEAD is
// at the commit and in which nothing was done yet: branch and HEAD are two small files,
// and where the place lets us write them no program has to run there.
func (c *Checkout) Start(ctx context.Context, name, sha string) error {
	place, ok := c.r.cfg.Exec.(Writer)
	if !ok {
		return c.Begin(ctx, name, sha)
	}
	if err := checkBranch("branch", name); err != nil {
		return err
	}
	if !ValidSHA(sha) {
		return squad.Invalid("sha", "%q is not a commit", sha)
	}
	ref := "refs/heads/" + name
	return c.do(ctx, "branch", func(*operation) error {
		return place.WriteFiles(ctx, []File{{c.dir + "/.git/" + ref, []byte(sha + "\n")}, {c.dir + "/.git/HEAD", []byte("ref: " + ref + "\n")}})
	})
}
