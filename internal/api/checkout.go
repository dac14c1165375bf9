package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
)

// checkoutRoutes are the git verbs in a sandbox.
func (s *Server) checkoutRoutes(api huma.API) {
	const tag = "Sandboxes"
	for _, v := range []struct {
		name, summary string
		do            func(Checkouts) gitVerb
	}{
		{"clone", "Clone or refresh the repository", func(c Checkouts) gitVerb { return c.Clone }},
		{"branch", "Make or continue the task's branch", func(c Checkouts) gitVerb { return c.Branch }},
		{"commit", "Commit changes with a conventional message", func(c Checkouts) gitVerb { return c.Commit }},
		{"push", "Push the task's branch through the gateway", func(c Checkouts) gitVerb { return c.Push }},
		{"pull", "Bring in what moved upstream", func(c Checkouts) gitVerb { return c.Pull }},
	} {
		huma.Register(api, verb("git-"+v.name, "/sandboxes/{id}/"+v.name, tag, v.summary), func(ctx context.Context, in *gitInput) (*One[squad.GitOperation], error) {
			c, err := s.checkouts(ctx, in.ID, "sandbox."+v.name)
			if err != nil {
				return nil, err
			}
			op, err := v.do(c)(ctx, actorOf(ctx), in.ID, in.Body)
			if err != nil {
				return nil, err
			}
			return answer(op), nil
		})
	}
	huma.Register(api, post("git-pr", "/sandboxes/{id}/pr", tag, "Open the pull request of the branch, once", http.StatusCreated), s.openPull)
	huma.Register(api, get("git-status", "/sandboxes/{id}/status", tag, "Where the checkout stands"), s.gitStatus)
	huma.Register(api, get("git-diff", "/sandboxes/{id}/diff", tag, "Uncommitted and committed changes against the base"), s.gitDiff)
}

type gitVerb func(context.Context, squad.Actor, string, squad.GitRequest) (squad.GitOperation, error)

type gitInput struct {
	ByID
	Body squad.GitRequest
}

type gitQuery struct {
	ByID
	RepositoryID string `query:"repository_id" maxLength:"100"`
}

func (s *Server) checkouts(ctx context.Context, id, action string) (Checkouts, error) {
	if _, err := s.ownSandbox(ctx, id); err != nil {
		return nil, err
	}
	if s.ports.Checkouts == nil {
		return nil, unavailable("git in sandboxes")
	}
	if action == "" {
		return s.ports.Checkouts, nil
	}
	return s.ports.Checkouts, s.note(ctx, action, id)
}

func (s *Server) openPull(ctx context.Context, in *gitInput) (*One[squad.PullRequest], error) {
	c, err := s.checkouts(ctx, in.ID, "sandbox.pr")
	if err != nil {
		return nil, err
	}
	p, err := c.OpenPull(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	return answer(p), nil
}

func (s *Server) gitStatus(ctx context.Context, in *gitQuery) (*One[squad.GitStatus], error) {
	c, err := s.checkouts(ctx, in.ID, "")
	if err != nil {
		return nil, err
	}
	st, err := c.Status(ctx, actorOf(ctx), in.ID, squad.GitRequest{RepositoryID: in.RepositoryID})
	if err != nil {
		return nil, err
	}
	return answer(st), nil
}

func (s *Server) gitDiff(ctx context.Context, in *gitQuery) (*One[squad.Diff], error) {
	c, err := s.checkouts(ctx, in.ID, "")
	if err != nil {
		return nil, err
	}
	d, err := c.Diff(ctx, actorOf(ctx), in.ID, squad.GitRequest{RepositoryID: in.RepositoryID})
	if err != nil {
		return nil, err
	}
	return answer(d), nil
}
