package runner

import (
	"context"
	"path/filepath"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/git"
)

// Lend implements [Gateway]. What is lent is what git would read through the gateway:
// the objects of a repository of the sandbox's own squad.
func (o *Outward) Lend(ctx context.Context, sb *e2b.Sandbox, row squad.Sandbox, repo squad.Repository) (*git.Borrow, error) {
	if row.Provider != "local" || row.SquadID != repo.SquadID {
		return nil, nil
	}
	m, err := o.Gateway.Mirror(repo)
	if err != nil {
		return nil, err
	}
	if err := m.Fetch(ctx, nil); err != nil && (!m.Exists() || git.KindOf(err) != git.KindNetwork) {
		return nil, git.Explain(err, "fetch "+repo.Name)
	}
	b, err := m.Borrow(ctx) // its refs before its objects: all that they need is lent
	if err != nil {
		return nil, err
	}
	var lent struct {
		Path string `json:"path"`
	}
	err = sb.Client().Extend(ctx, sb.ID, "squad-lend", map[string]string{"name": repo.ID, "dir": filepath.Join(m.Dir(), "objects")}, &lent)
	if err != nil {
		// Another machine, another file system: it is cloned as everywhere else.
		if o.Log != nil {
			o.Log.DebugContext(ctx, "objects are not lent", "sandbox_id", row.ID, "repository_id", repo.ID, "error", err)
		}
		return nil, ctx.Err()
	}
	b.Objects = lent.Path
	return b, nil
}

// cloneInto makes or refreshes a checkout in a sandbox that runs.
func (r *Runner) cloneInto(ctx context.Context, row squad.Sandbox, repo squad.Repository, c *git.Checkout, branch string) error {
	url, auth, err := r.cfg.Gateway.Remote(ctx, row, repo)
	if err != nil {
		return err
	}
	sb, err := r.cfg.Sandboxes.Open(ctx, squad.System(), row.ID)
	if err != nil {
		return explain(err)
	}
	lent, err := r.cfg.Gateway.Lend(ctx, sb, row, repo)
	if err != nil {
		return err
	}
	_, err = c.Clone(ctx, git.CloneOptions{URL: url, Auth: auth, Branch: branch, Borrow: lent})
	return err
}
