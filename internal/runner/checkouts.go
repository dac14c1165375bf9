package runner

import (
	"context"
	"fmt"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/git"
)

// Checkouts are the git verbs on sandboxes that people and agents call one by one.
// It implements the port of the same name in package api.
type Checkouts struct{ r *Runner }

// Checkouts returns the git verbs.
func (r *Runner) Checkouts() Checkouts { return Checkouts{r} }

// open finds the checkout that a request means, for an actor who may use it.
func (v Checkouts) open(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (*git.Checkout, scene, place, *recorded, error) {
	var s scene
	row, err := v.r.cfg.Store.Sandbox(ctx, sandboxID)
	if err != nil || !actor.OwnsSandbox(row) {
		return nil, s, place{}, nil, squad.NotFound("sandbox", sandboxID)
	}
	if row.TaskID != "" {
		if s.task, err = v.r.cfg.Store.Task(ctx, row.TaskID); err != nil {
			return nil, s, place{}, nil, err
		}
	}
	id := orElse(req.RepositoryID, s.task.RepositoryID)
	if id == "" {
		return nil, s, place{}, nil, squad.Invalid("repository_id", "name the repository: the sandbox has no task that does")
	}
	if s.repo, err = v.r.cfg.Store.Repository(ctx, id); err != nil || s.repo.SquadID != row.SquadID {
		return nil, s, place{}, nil, squad.NotFound("repository", id)
	}
	s.execution = squad.Execution{ID: row.ExecutionID, SquadID: row.SquadID, TaskID: row.TaskID, SandboxID: row.ID}
	if row.AgentID != "" {
		if s.member, err = v.r.cfg.Store.Member(ctx, row.AgentID); err != nil {
			return nil, s, place{}, nil, err
		}
	} else {
		s.member = squad.Member{Name: "Agent Squad"}
	}
	p := place{SandboxID: row.ID, Dir: s.dir(), Branch: req.Branch, Base: orElse(req.Base, s.base())}
	if p.Branch == "" && s.task.Number > 0 {
		p.Branch = git.TaskBranch(s.task.Number)
	}
	c, _, err := v.r.checkout(ctx, s, p)
	if err != nil {
		return nil, s, p, nil, err
	}
	rec := &recorded{next: c.Observe}
	c.Observe = rec.observe
	if row.RepoURL == s.repo.URL { // it may have come with the sandbox
		c.Remote = func(ctx context.Context, branch string) (string, error) {
			return v.r.cfg.Gateway.Head(ctx, s.repo, branch)
		}
	}
	return c, s, p, rec, nil
}

// recorded keeps the last notice of an operation, to answer with it.
type recorded struct {
	last squad.GitOperation
	next func(squad.GitProgress)
}

func (r *recorded) observe(p squad.GitProgress) {
	r.last = p.GitOperation
	if r.next != nil {
		r.next(p)
	}
}

func (v Checkouts) auth(ctx context.Context, s scene, p place) (string, git.Auth, error) {
	row, err := v.r.cfg.Store.Sandbox(ctx, p.SandboxID)
	if err != nil {
		return "", git.Auth{}, err
	}
	return v.r.cfg.Gateway.Remote(ctx, row, s.repo)
}

// Clone makes or refreshes the checkout.
func (v Checkouts) Clone(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error) {
	c, s, p, rec, err := v.open(ctx, actor, sandboxID, req)
	if err != nil {
		return squad.GitOperation{}, err
	}
	row, err := v.r.cfg.Store.Sandbox(ctx, p.SandboxID)
	if err != nil {
		return squad.GitOperation{}, err
	}
	err = v.r.cloneInto(ctx, row, s.repo, c, req.Branch)
	return rec.last, err
}

// Branch makes or continues a branch.
func (v Checkouts) Branch(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error) {
	c, _, p, rec, err := v.open(ctx, actor, sandboxID, req)
	if err != nil {
		return squad.GitOperation{}, err
	}
	if p.Branch == "" {
		return squad.GitOperation{}, squad.Invalid("branch", "name the branch: the sandbox has no task that does")
	}
	_, err = c.Branch(ctx, p.Branch, p.Base)
	return rec.last, err
}

// Commit commits what changed.
func (v Checkouts) Commit(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error) {
	c, s, _, rec, err := v.open(ctx, actor, sandboxID, req)
	if err != nil {
		return squad.GitOperation{}, err
	}
	sign, err := v.r.signer(ctx, s.repo.SquadID)
	if err != nil {
		return squad.GitOperation{}, err
	}
	_, err = c.Commit(ctx, git.CommitOptions{Message: req.Message, Author: s.author(), Paths: req.Paths, Sign: sign})
	return rec.last, err
}

// Push sends the task's branch out.
func (v Checkouts) Push(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error) {
	c, s, p, rec, err := v.open(ctx, actor, sandboxID, req)
	if err != nil {
		return squad.GitOperation{}, err
	}
	if p.Branch == "" {
		return squad.GitOperation{}, squad.Invalid("branch", "name the branch to push")
	}
	_, auth, err := v.auth(ctx, s, p)
	if err != nil {
		return squad.GitOperation{}, err
	}
	via := v.r.cfg.Gateway.Via(squad.Sandbox{ID: p.SandboxID}, s.repo)
	err = c.Push(ctx, git.PushOptions{Branch: p.Branch, Auth: auth, Rebase: true, Identity: s.author(), Via: via})
	return rec.last, err
}

// Pull brings the current branch up to date.
func (v Checkouts) Pull(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitOperation, error) {
	c, s, p, rec, err := v.open(ctx, actor, sandboxID, req)
	if err != nil {
		return squad.GitOperation{}, err
	}
	_, auth, err := v.auth(ctx, s, p)
	if err != nil {
		return squad.GitOperation{}, err
	}
	err = c.Pull(ctx, git.PullOptions{Auth: auth, Rebase: true, Identity: s.author()})
	return rec.last, err
}

// OpenPull opens the pull request of the branch, or finds it.
func (v Checkouts) OpenPull(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.PullRequest, error) {
	_, s, p, _, err := v.open(ctx, actor, sandboxID, req)
	if err != nil {
		return squad.PullRequest{}, err
	}
	if s.task.ID == "" && req.Title == "" {
		return squad.PullRequest{}, squad.Invalid("title", "a pull request without a task needs a title")
	}
	return v.r.cfg.Forges.Ensure(ctx, forge.EnsureRequest{
		Repository: s.repo, Task: s.task, ExecutionID: s.execution.ID, MemberID: s.member.ID, Head: p.Branch, Base: p.Base,
		Title: req.Title, Body: req.Body, Draft: req.Draft,
	})
}

// Status is where the checkout stands.
func (v Checkouts) Status(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.GitStatus, error) {
	c, _, _, _, err := v.open(ctx, actor, sandboxID, req)
	if err != nil {
		return squad.GitStatus{}, err
	}
	st, err := c.Status(ctx)
	if err != nil {
		return squad.GitStatus{}, err
	}
	out := squad.GitStatus{Branch: st.Branch, Head: st.Head, Ahead: st.Ahead, Behind: st.Behind, Staged: []string{}, Changed: []string{}, Untracked: []string{}}
	for _, f := range st.Files {
		if f.WorkTree == "?" {
			out.Untracked = append(out.Untracked, f.Path)
		} else {
			if f.Index != "." {
				out.Staged = append(out.Staged, f.Path)
			}
			if f.WorkTree != "." {
				out.Changed = append(out.Changed, f.Path)
			}
		}
	}
	return out, nil
}

// Diff is the working tree against where the branch left its base.
func (v Checkouts) Diff(ctx context.Context, actor squad.Actor, sandboxID string, req squad.GitRequest) (squad.Diff, error) {
	c, _, p, _, err := v.open(ctx, actor, sandboxID, req)
	if err != nil {
		return squad.Diff{}, err
	}
	base, err := c.MergeBase(ctx, "HEAD", "refs/remotes/origin/"+p.Base)
	if err != nil {
		return squad.Diff{}, err
	}
	d, err := c.Diff(ctx, git.DiffOptions{From: base})
	return toDiff(base, "", d), err
}

// toDiff writes a structured diff as the API shows it.
func toDiff(base, head string, d git.Diff) squad.Diff {
	out := squad.Diff{Base: base, Head: head, Truncated: d.Truncated}
	for _, f := range d.Files {
		file := squad.FileDiff{Path: f.Path, OldPath: f.OldPath, Status: f.Status, Binary: f.Binary, Additions: f.Added, Deletions: f.Deleted}
		if f.Status == "type_changed" || f.Status == "unmerged" {
			file.Status = "modified"
		}
		var b strings.Builder
		for _, h := range f.Hunks {
			fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
			if h.Section != "" {
				b.WriteString(" " + h.Section)
			}
			b.WriteByte('\n')
			for _, l := range h.Lines {
				b.WriteString(l.Op + l.Text + "\n")
				if l.NoNewline {
					b.WriteString("\\ No newline at end of file\n")
				}
			}
		}
		file.Patch = b.String()
		out.Files = append(out.Files, file)
	}
	return out
}
