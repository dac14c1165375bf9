package runner

import (
	"context"
	"errors"

	squad "agentsquad"
	"agentsquad/internal/sandbox"
)

// Furnished are the verbs on sandboxes, of which those that are made for a repository
// have its checkout. It implements the port Sandboxes of package api.
type Furnished struct {
	*sandbox.Service
	Runner *Runner
}

// Create makes a sandbox outside an execution. With a repository it has a checkout of
// it: as a prepared tree where the provider takes one, else as a clone.
func (f Furnished) Create(ctx context.Context, actor squad.Actor, req squad.SandboxRequest) (squad.Sandbox, error) {
	if req.RepositoryID == "" || !actor.May(req.SquadID, squad.RoleMember) {
		return f.Service.Create(ctx, actor, req)
	}
	s := scene{}
	var err error
	if s.squad, err = f.Runner.cfg.Store.Squad(ctx, req.SquadID); err != nil {
		return squad.Sandbox{}, err
	}
	if s.repo, err = f.Runner.cfg.Store.Repository(ctx, req.RepositoryID); err != nil || s.repo.SquadID != req.SquadID {
		return squad.Sandbox{}, squad.NotFound("repository", req.RepositoryID)
	}
	tree, err := f.Runner.cfg.Gateway.Prepare(ctx, orElse(req.Provider, s.provider()), s.repo, s.base())
	if err != nil {
		return squad.Sandbox{}, err
	}
	row, err := f.CreateWith(ctx, actor, req, tree.Mounts)
	if squad.CodeOf(err) == squad.CodeInvalid && len(tree.Mounts) > 0 { // a template that takes no mounts
		tree.Mounts = nil
		row, err = f.Service.Create(ctx, actor, req)
	}
	if err != nil || len(tree.Mounts) > 0 {
		return row, err
	}
	if _, err := f.Runner.Checkouts().Clone(ctx, actor, row.ID, squad.GitRequest{RepositoryID: s.repo.ID}); err != nil {
		return row, errors.Join(err, f.Destroy(context.WithoutCancel(ctx), actor, row.ID))
	}
	return row, nil
}
