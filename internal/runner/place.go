package runner

import (
	"context"
	"fmt"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

// makeSandbox acquires the sandbox of the execution, with the repository's tree in
// it where the provider can do that.
func (r *Runner) makeSandbox(ctx context.Context, s scene, epoch int64) (place, error) {
	p := place{Dir: s.dir(), Branch: git.TaskBranch(s.task.Number), Base: s.base()}
	tree, err := r.cfg.Gateway.Prepare(r.tellFetch(ctx, s), s.provider(), s.repo, p.Base)
	if err != nil {
		return p, err
	}
	want := sandbox.AcquireRequest{
		SquadID: s.squad.ID, MemberID: s.member.ID, TaskID: s.task.ID, ExecutionID: s.execution.ID, RepositoryID: s.repo.ID,
		Provider: s.provider(), Template: s.template(), Mounts: tree.Mounts, PoolKey: tree.Key, Epoch: epoch,
	}
	row, err := r.cfg.Sandboxes.Acquire(ctx, want)
	if squad.CodeOf(err) == squad.CodeInvalid && len(want.Mounts) > 0 { // a template that takes no mounts: it is cloned
		tree, want.Mounts, want.PoolKey = Tree{}, nil, ""
		row, err = r.cfg.Sandboxes.Acquire(ctx, want)
	}
	if err != nil {
		return p, err
	}
	p.SandboxID, p.Mounted = row.ID, len(tree.Mounts) > 0
	p.BaseSHA = tree.Commit
	before, err := r.cfg.Store.Executions(ctx, store.ExecutionFilter{SandboxID: row.ID, Limit: 1})
	if err != nil {
		return p, err
	}
	p.Fresh = p.Mounted && len(before) == 0
	return p, r.settleIn(ctx, s, p)
}

// settleIn writes down who works where.
func (r *Runner) settleIn(ctx context.Context, s scene, p place) error {
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		_, err := r.cfg.Life.MoveExecution(ctx, tx, s.execution.ID, squad.ExecutionRunning, func(e *squad.Execution) {
			e.SandboxID, e.GitBranch = p.SandboxID, p.Branch
		})
		if err != nil {
			return err
		}
		return r.assign(ctx, tx, s.member.ID, func(m *squad.Member) {
			m.SandboxID, m.CurrentTaskID = p.SandboxID, s.task.ID
			m.GitContext = squad.GitContext{RepositoryID: s.repo.ID, Path: p.Dir, Branch: p.Branch, BaseBranch: p.Base}
		})
	})
}

// assign changes a member's row and says so.
func (r *Runner) assign(ctx context.Context, tx *store.Tx, memberID string, change func(*squad.Member)) error {
	m, err := tx.Member(ctx, memberID)
	if err != nil {
		return err
	}
	change(&m)
	if err := tx.UpdateMember(ctx, &m); err != nil {
		return err
	}
	return tx.Append(ctx, memberEvent(m))
}

// checkout opens the execution's working tree inside its sandbox.
func (r *Runner) checkout(ctx context.Context, s scene, p place) (*git.Checkout, squad.Sandbox, error) {
	row, err := r.cfg.Store.Sandbox(ctx, p.SandboxID)
	if err != nil {
		return nil, row, err
	}
	sb, err := r.cfg.Sandboxes.Open(ctx, squad.System(), p.SandboxID)
	if err != nil {
		return nil, row, explain(err)
	}
	c, err := r.checkouts.Open(git.New(git.Config{Exec: gitExec{sb}, Log: r.cfg.Log}), p.SandboxID, p.Dir)
	if err != nil {
		return nil, row, err
	}
	rec := &gitRecorder{ctx: ctx, runner: r, sandbox: row, executionID: s.execution.ID}
	c.Observe = rec.observe
	return c, row, nil
}

// clone makes the checkout, unless it came with the sandbox.
func (r *Runner) clone(ctx context.Context, s scene, p place) (place, error) {
	if p.Mounted {
		return p, nil
	}
	c, row, err := r.checkout(ctx, s, p)
	if err != nil {
		return p, err
	}
	return p, r.cloneInto(ctx, row, s.repo, c, "")
}

// branch makes the task's branch or continues it: from the remote's, else from the
// last checkpoint of an earlier attempt.
func (r *Runner) branch(ctx context.Context, s scene, p place) (place, error) {
	if err := r.awaitWork(ctx, s); err != nil {
		return p, err
	}
	c, row, err := r.checkout(ctx, s, p)
	if err != nil {
		return p, err
	}
	made, err := r.beginBranch(ctx, s, p, c)
	if err != nil {
		return p, err
	}
	if p.BaseSHA = made.Base; made.Continued {
		if p.BaseSHA, err = c.MergeBase(ctx, "HEAD", "refs/remotes/origin/"+p.Base); err != nil {
			return p, err
		}
	}
	if err := r.restore(ctx, s, c, row, made); err != nil {
		return p, err
	}
	return p, r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		_, err := r.cfg.Life.MoveExecution(ctx, tx, s.execution.ID, squad.ExecutionRunning, func(e *squad.Execution) { e.BaseSHA = p.BaseSHA })
		return err
	})
}

// restore brings back what an earlier turn or attempt left beyond the branch.
func (r *Runner) restore(ctx context.Context, s scene, c *git.Checkout, row squad.Sandbox, made git.BranchResult) error {
	ref, sha, err := r.lastCheckpoint(ctx, s)
	if err != nil || ref == "" || sha == made.Head {
		return err
	}
	if made.Continued { // it was pushed; what was left before that is in it already
		dir, err := r.cfg.Gateway.Dir(ctx, s.repo)
		if err != nil {
			return err
		}
		res, err := r.cfg.Git.Run(ctx, git.Call{Dir: dir, Args: []string{"merge-base", made.Head, sha}, Accept: []int{1, 128}}) // 128: the mirror lacks one
		if err != nil {
			return git.Explain(err, "compare checkpoint")
		}
		if strings.TrimSpace(string(res.Stdout)) != made.Head {
			return nil
		}
	}
	_, auth, err := r.cfg.Gateway.Remote(ctx, row, s.repo)
	if err != nil {
		return err
	}
	return c.Restore(ctx, git.RestoreOptions{Ref: ref, SHA: sha, Auth: auth})
}

// beginBranch makes the branch. In a tree that came with the sandbox, of a task whose
// branch is nowhere yet, nothing has to be fetched; where no execution used it before,
// no program has to run.
func (r *Runner) beginBranch(ctx context.Context, s scene, p place, c *git.Checkout) (git.BranchResult, error) {
	if p.Mounted && p.BaseSHA != "" {
		remote, err := r.cfg.Gateway.Head(ctx, s.repo, p.Branch)
		if err != nil {
			return git.BranchResult{}, err
		}
		if remote == "" && p.Fresh {
			return git.BranchResult{Name: p.Branch, Head: p.BaseSHA, Base: p.BaseSHA}, c.Start(ctx, p.Branch, p.BaseSHA)
		}
		if remote == "" {
			err := c.Begin(ctx, p.Branch, p.BaseSHA)
			if squad.CodeOf(err) != squad.CodeConflict {
				return git.BranchResult{Name: p.Branch, Head: p.BaseSHA, Base: p.BaseSHA}, err
			}
		}
	}
	return c.Branch(ctx, p.Branch, p.Base)
}

// checkpointRef is where a turn of an execution is kept outside its sandbox.
func checkpointRef(executionID string, turn int) string {
	return fmt.Sprintf("refs/squad/checkpoints/%s/%d", executionID, turn)
}

// lastCheckpoint finds what an earlier turn of this attempt at the task, or an
// earlier attempt, left, "" where nothing.
func (r *Runner) lastCheckpoint(ctx context.Context, s scene) (ref, sha string, err error) {
	past, err := r.cfg.Store.Executions(ctx, store.ExecutionFilter{TaskID: s.task.ID, Newest: true, Limit: 20})
	if err != nil {
		return "", "", err
	}
	for _, e := range past {
		if e.HeadSHA == "" {
			continue
		}
		// Of the last turn, or of one before where that turn was lost.
		for turn := e.Turn; turn > 0; turn-- {
			ref := checkpointRef(e.ID, turn)
			if sha, err := r.cfg.Gateway.Stored(ctx, s.repo, ref); sha != "" || err != nil {
				return ref, sha, err
			}
		}
	}
	return "", "", nil
}

// resume wakes the sandbox for another turn. One that is gone is replaced, and the
// work comes back from the branch.
func (r *Runner) resume(ctx context.Context, s scene, p place, epoch int64) (place, error) {
	row, err := r.cfg.Store.Sandbox(ctx, p.SandboxID)
	if err != nil {
		return p, err
	}
	if !row.Status.Final() {
		if _, err = r.cfg.Sandboxes.Resume(ctx, squad.System(), p.SandboxID); err == nil {
			return p, nil
		}
		if fresh, readErr := r.cfg.Store.Sandbox(ctx, p.SandboxID); readErr != nil || !fresh.Status.Final() {
			return p, err
		}
	}
	if p, err = r.makeSandbox(ctx, s, epoch); err != nil {
		return p, err
	}
	if p, err = r.clone(ctx, s, p); err != nil {
		return p, err
	}
	return r.branch(ctx, s, p)
}

// pause puts the sandbox's memory to disk while the execution waits. It is a saving
// and no part of the work, which is stored outside by now: a sandbox that cannot be
// paused stays, and one that is gone is replaced when it is needed.
func (r *Runner) pause(ctx context.Context, p place) error {
	row, err := r.cfg.Store.Sandbox(ctx, p.SandboxID)
	if err != nil || row.Status != squad.SandboxRunning {
		return ignoreNotFound(err)
	}
	if _, err = r.cfg.Sandboxes.Pause(ctx, squad.System(), p.SandboxID); err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.cfg.Log.WarnContext(ctx, "sandbox was not paused", "sandbox_id", p.SandboxID, "error", err)
	}
	return nil
}
