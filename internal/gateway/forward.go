package gateway

import (
	"context"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// accept lets a checked push in: objects first, then the refs, then upstream. It
// returns why a ref was refused after all, and what the books should add.
func (p *push) accept(ctx context.Context) (map[string]string, func(*store.Tx) error, error) {
	if err := p.g.addMade(ctx, p.t.caller.task.ID, p.commits); err != nil {
		return nil, nil, err
	}
	// Not while the mirror is rebuilt. The lock is not held while upstream is
	// awaited: others read meanwhile.
	release := p.t.mirror.HoldRefs()
	err := p.scratch.Keep(ctx)
	release()
	if err != nil {
		return nil, nil, err
	}
	refusals := map[string]string{}
	var stored, branch string
	for _, u := range p.req.updates {
		var err error
		if strings.HasPrefix(u.ref, "refs/heads/") {
			branch = strings.TrimPrefix(u.ref, "refs/heads/")
			err = p.acceptBranch(ctx, u, branch)
		} else {
			err = p.g.setCheckpoint(ctx, p.t.mirror.Dir(), u)
		}
		switch {
		case err == nil:
			stored = u.sha
		case squad.CodeOf(err) == squad.CodeInternal:
			return nil, nil, err
		default:
			refusals[u.ref] = message(err)
		}
	}
	add := func(tx *store.Tx) error {
		if stored == "" {
			return nil
		}
		return p.t.caller.stored(ctx, tx, stored, branch, p.commits)
	}
	return refusals, add, nil
}

func (p *push) acceptBranch(ctx context.Context, u update, branch string) error {
	if p.t.mirror.Local() {
		return git.UpdateRef(ctx, p.g.runner, p.t.mirror.Dir(), u.ref, u.sha, u.old)
	}
	p.out.say("forwarding to %s", p.t.repo.URL)
	err := p.g.forward(ctx, p.t.mirror, branch, u.old, u.sha, func(pr git.Progress) { p.entry.progress(ctx, pr) })
	if err == nil {
		return nil
	}
	switch git.KindOf(err) {
	case git.KindRejected, git.KindRefused:
		return git.Explain(err, "forward "+branch)
	}
	p.g.later(p.t.mirror, p.t.caller, branch, u.sha)
	p.g.cfg.Log.WarnContext(ctx, "upstream did not take a push", "repository_id", p.t.repo.ID, "branch", branch, "error", err)
	why := git.Explain(err, "forward "+branch)
	return squad.Wrap(squad.CodeUnavailable, why, "%s. The commits are kept on the server, which tries again by itself", message(why))
}

// setCheckpoint moves a checkpoint ref. One that is not moved forward keeps its
// former commit under another name: checkpoints are there so that nothing is lost.
func (g *Gateway) setCheckpoint(ctx context.Context, dir string, u update) error {
	if !git.IsZero(u.old) && u.old != u.sha {
		res, err := g.runner.Run(ctx, git.Call{Dir: dir, Args: []string{"merge-base", "--is-ancestor", u.old, u.sha}, Accept: []int{1}})
		if err != nil {
			return err
		}
		if res.ExitCode == 1 {
			if _, err := g.runner.Line(ctx, dir, "update-ref", u.ref+".was-"+u.old[:12], u.old); err != nil {
				return err
			}
		}
	}
	return git.UpdateRef(ctx, g.runner, dir, u.ref, u.sha, u.old)
}

func pendingRef(branch string) string { return "refs/squad/pending/" + branch }

// forward sends a branch upstream, from where upstream was last seen. The commits
// are held by a pending ref until upstream has them; where upstream's own rules
// refuse them the ref goes, since only the client can help then.
func (g *Gateway) forward(ctx context.Context, m *git.Mirror, branch, old, sha string, progress func(git.Progress)) error {
	ref := "refs/heads/" + branch
	if _, err := g.runner.Line(ctx, m.Dir(), "update-ref", pendingRef(branch), sha); err != nil {
		return err
	}
	auth, err := m.Auth(ctx)
	if err != nil {
		return squad.Wrap(squad.CodeProvider, err, "the credential of the repository cannot be read")
	}
	lease := old
	if git.IsZero(old) {
		lease = ""
	}
	_, _, err = g.runner.RunRetry(ctx, git.Call{
		Dir: m.Dir(), Auth: auth, Progress: progress, Timeout: 5 * time.Minute,
		Args: []string{"push", "--progress", "--no-verify", "--force-with-lease=" + ref + ":" + lease, "--", m.URL(), sha + ":" + ref},
	})
	ctx = context.WithoutCancel(ctx) // what upstream has taken is noted in any case
	kind := git.KindOf(err)
	if err != nil && kind != git.KindRejected && kind != git.KindRefused {
		return err
	}
	// A fetch that listed upstream's refs before the push must not prune the branch
	// after it: it is over before the lock is had, or begins later and sees it.
	defer m.HoldRefs()()
	if derr := git.DeleteRef(ctx, g.runner, m.Dir(), pendingRef(branch), sha); derr != nil {
		g.cfg.Log.WarnContext(ctx, "pending ref stays", "branch", branch, "error", derr)
	}
	if err != nil {
		return err
	}
	_, err = g.runner.Line(ctx, m.Dir(), "update-ref", ref, sha)
	return err
}

// pendingPush waits for upstream.
type pendingPush struct {
	mirror *git.Mirror
	caller *caller
	branch string
	sha    string
	next   time.Time
	wait   time.Duration
}

func (g *Gateway) later(m *git.Mirror, c *caller, branch, sha string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending[m.Dir()+"\x00"+branch] = &pendingPush{
		mirror: m, caller: c, branch: branch, sha: sha, wait: g.cfg.RetryPending, next: g.cfg.Now().Add(g.cfg.RetryPending),
	}
}

// findPending looks for pushes that an earlier run of the server left.
func (g *Gateway) findPending(ctx context.Context) error {
	repos, err := g.cfg.Store.Repositories(ctx, store.RepositoryFilter{Forges: []squad.ForgeKind{squad.ForgeGitHub, squad.ForgeGitea}})
	if err != nil {
		return err
	}
	for _, repo := range repos {
		m, err := g.Mirror(repo)
		if err != nil || !m.Exists() {
			continue
		}
		if err := git.ClearScratch(m.Dir(), time.Hour); err != nil {
			return err
		}
		out, err := g.runner.Line(ctx, m.Dir(), "for-each-ref", "--format=%(objectname) %(refname)", "refs/squad/pending/")
		if err != nil {
			return err
		}
		for _, line := range strings.Split(out, "\n") {
			sha, ref, ok := strings.Cut(line, " ")
			branch := strings.TrimPrefix(ref, "refs/squad/pending/")
			number, isTask := git.TaskNumber(branch)
			if !ok || !isTask {
				continue
			}
			task, err := g.cfg.Store.TaskByNumber(ctx, repo.SquadID, number)
			if err != nil {
				continue // the task is gone, and so is who wanted the push
			}
			g.later(m, &caller{task: task, squad: squad.Squad{ID: repo.SquadID}}, branch, sha)
		}
	}
	return nil
}

// retryPending tries the pushes whose time has come.
func (g *Gateway) retryPending(ctx context.Context) {
	now := g.cfg.Now()
	var due []*pendingPush
	g.mu.Lock()
	for _, p := range g.pending {
		if !p.next.After(now) {
			due = append(due, p)
		}
	}
	g.mu.Unlock()
	for _, p := range due {
		if ctx.Err() != nil {
			return
		}
		err := g.retryOne(ctx, p)
		g.mu.Lock()
		key := p.mirror.Dir() + "\x00" + p.branch
		switch kind := git.KindOf(err); {
		case g.pending[key] != p: // a newer push took its place
		case err == nil || kind == git.KindRejected || kind == git.KindRefused || squad.CodeOf(err) == squad.CodeRule:
			delete(g.pending, key)
		default:
			p.wait = min(2*p.wait, 10*time.Minute)
			p.next = g.cfg.Now().Add(p.wait)
		}
		g.mu.Unlock()
	}
}

// retryOne sends a waiting push upstream, if upstream has not moved to where the
// push would undo something.
func (g *Gateway) retryOne(ctx context.Context, p *pendingPush) error {
	if err := p.mirror.Fetch(ctx, nil); err != nil {
		return err
	}
	now, err := g.refValue(ctx, p.mirror.Dir(), pendingRef(p.branch))
	if err != nil || now != p.sha {
		return err // it was pushed by other means
	}
	old, err := g.refValue(ctx, p.mirror.Dir(), "refs/heads/"+p.branch)
	if err != nil {
		return err
	}
	e, err := g.begin(ctx, p.caller, "push")
	if err != nil {
		return err
	}
	err = g.mayReplace(ctx, p, old)
	if err == nil {
		err = g.forward(ctx, p.mirror, p.branch, old, p.sha, nil)
	}
	var add func(*store.Tx) error
	if err == nil {
		add = func(tx *store.Tx) error { return p.caller.stored(ctx, tx, p.sha, p.branch, nil) }
	}
	if ferr := e.finish(ctx, git.Explain(err, "forward "+p.branch), add); ferr != nil {
		g.cfg.Log.ErrorContext(ctx, "push is not in the books", "branch", p.branch, "error", ferr)
	}
	return err
}

func (g *Gateway) mayReplace(ctx context.Context, p *pendingPush, old string) error {
	if git.IsZero(old) {
		return nil
	}
	lost, err := g.runner.Line(ctx, p.mirror.Dir(), "rev-list", old, "--not", p.sha, "--exclude="+p.branch, "--branches", "--tags", "--")
	if err != nil || lost == "" {
		return err
	}
	m, err := readMade(ctx, g.cfg.Store.Query, p.caller.task.ID)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, sha := range m.Commits {
		known[sha] = true
	}
	for _, sha := range strings.Fields(lost) {
		if !known[sha] {
			return squad.Errorf(squad.CodeRule, "%s has commits upstream that this task did not make; push again from the sandbox", p.branch)
		}
	}
	return nil
}
