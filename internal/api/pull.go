package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) pullRoutes(api huma.API) {
	const tag = "Pull requests"
	huma.Register(api, get("list-pulls", "/pulls", tag, "List pull requests"), s.listPulls)
	huma.Register(api, get("get-pull", "/pulls/{id}", tag, "Read a pull request"), s.getPull)
	huma.Register(api, get("diff-pull", "/pulls/{id}/diff", tag, "Changes of a pull request"), s.diffPull)
	huma.Register(api, get("list-reviews", "/pulls/{id}/reviews", tag, "List remarks and verdicts"), s.listReviews)
	huma.Register(api, post("review-pull", "/pulls/{id}/reviews", tag, "Remark, approve or ask for changes", http.StatusCreated), s.reviewPull)
	huma.Register(api, verb("merge-pull", "/pulls/{id}/merge", tag, "Merge"), s.mergePull)
	huma.Register(api, verb("close-pull", "/pulls/{id}/close", tag, "Close without merging"), s.closePull)
	huma.Register(api, verb("ready-pull", "/pulls/{id}/ready", tag, "Mark a draft as ready"), s.readyPull)
	huma.Register(api, verb("refresh-pull", "/pulls/{id}/refresh", tag, "Read it from its forge anew"), s.refreshPull)
}

func (s *Server) listPulls(ctx context.Context, in *struct {
	Paging
	SquadID      string            `query:"squad_id" maxLength:"100"`
	RepositoryID string            `query:"repository_id" maxLength:"100"`
	TaskID       string            `query:"task_id" maxLength:"100"`
	State        []squad.PullState `query:"state" enum:"open,merged,closed"`
},
) (*List[squad.PullRequest], error) {
	page, err := across(ctx, in.SquadID, in.Paging, func(p squad.PullRequest) string { return p.ID }, func(ctx context.Context, p span) ([]squad.PullRequest, error) {
		return s.store.PullRequests(ctx, store.PullRequestFilter{
			SquadID: p.SquadID, RepositoryID: in.RepositoryID, TaskID: in.TaskID, States: in.State,
			Limit: p.Limit, After: p.After, Newest: p.Newest,
		})
	})
	if err != nil {
		return nil, err
	}
	a := actorOf(ctx)
	return &List[squad.PullRequest]{keep(page, func(p squad.PullRequest) bool {
		return !a.IsAgent() || manages(a, a.SquadID) || p.TaskID != "" && p.TaskID == a.TaskID
	})}, nil
}

// pull reads a pull request that the actor may see, with its squad.
func (s *Server) pull(ctx context.Context, id string) (squad.PullRequest, string, error) {
	p, err := s.store.PullRequest(ctx, id)
	if err != nil {
		return p, "", err
	}
	r, err := s.store.Repository(ctx, p.RepositoryID)
	if err != nil {
		return p, "", err
	}
	if !seesTask(actorOf(ctx), r.SquadID, p.TaskID) {
		return p, "", squad.NotFound("pull request", id)
	}
	return p, r.SquadID, nil
}

func (s *Server) getPull(ctx context.Context, in *ByID) (*One[squad.PullRequest], error) {
	p, _, err := s.pull(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(p), nil
}

func (s *Server) diffPull(ctx context.Context, in *ByID) (*One[squad.Diff], error) {
	if _, _, err := s.pull(ctx, in.ID); err != nil {
		return nil, err
	}
	if s.ports.Forges == nil {
		return nil, unavailable("the forge")
	}
	d, err := s.ports.Forges.Diff(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return answer(d), nil
}

func (s *Server) listReviews(ctx context.Context, in *struct {
	ByID
	Paging
},
) (*List[squad.ReviewComment], error) {
	after, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.pull(ctx, in.ID); err != nil {
		return nil, err
	}
	rows, err := s.store.ReviewComments(ctx, store.ReviewCommentFilter{PullID: in.ID, Limit: in.Limit + 1, After: after, Newest: in.Newest})
	if err != nil {
		return nil, err
	}
	return &List[squad.ReviewComment]{paged(rows, in.Limit, func(c squad.ReviewComment) string { return c.ID })}, nil
}

// judge finds a pull request to act on and the forge to do it.
func (s *Server) judge(ctx context.Context, id, action string) (Forges, error) {
	p, squadID, err := s.pull(ctx, id)
	if err != nil {
		return nil, err
	}
	a := actorOf(ctx)
	if a.IsAgent() {
		// No agent judges work: not its own, and not by way of its token.
		return nil, squad.Errorf(squad.CodeForbidden, "a member may not review or merge; ask a person")
	}
	if err := mayInSquad(a, squadID, squad.RoleMember, "pull request", id); err != nil {
		return nil, err
	}
	if s.ports.Forges == nil {
		return nil, unavailable("the forge")
	}
	return s.ports.Forges, s.note(ctx, action, p.ID)
}

func (s *Server) reviewPull(ctx context.Context, in *struct {
	ByID
	Body squad.NewReview
},
) (*One[squad.ReviewComment], error) {
	b := in.Body
	if b.Body == "" && b.Verdict != "approve" {
		return nil, squad.Invalid("body", "write what should change")
	}
	forges, err := s.judge(ctx, in.ID, "pull.review")
	if err != nil {
		return nil, err
	}
	c, err := forges.Review(ctx, actorOf(ctx), in.ID, b)
	if err != nil {
		return nil, err
	}
	return answer(c), nil
}

func (s *Server) mergePull(ctx context.Context, in *struct {
	ByID
	Body squad.MergeOptions
},
) (*One[squad.PullRequest], error) {
	forges, err := s.judge(ctx, in.ID, "pull.merge")
	if err != nil {
		return nil, err
	}
	p, err := forges.Merge(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	return answer(p), nil
}

func (s *Server) closePull(ctx context.Context, in *ByID) (*One[squad.PullRequest], error) {
	forges, err := s.judge(ctx, in.ID, "pull.close")
	if err != nil {
		return nil, err
	}
	p, err := forges.Close(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return answer(p), nil
}

func (s *Server) readyPull(ctx context.Context, in *ByID) (*One[squad.PullRequest], error) {
	forges, err := s.judge(ctx, in.ID, "pull.ready")
	if err != nil {
		return nil, err
	}
	p, err := forges.Ready(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return answer(p), nil
}

func (s *Server) refreshPull(ctx context.Context, in *ByID) (*One[squad.PullRequest], error) {
	forges, err := s.judge(ctx, in.ID, "pull.refresh")
	if err != nil {
		return nil, err
	}
	p, err := forges.Refresh(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return answer(p), nil
}
