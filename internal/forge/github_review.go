package forge

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-github/v92/github"

	squad "agentsquad"
)

func (g *gitHub) Comments(ctx context.Context, number int64) ([]squad.ReviewComment, error) {
	reviews, err := g.reviews(ctx, number)
	if err != nil {
		return nil, err
	}
	lines, err := g.lines(ctx, number)
	if err != nil {
		return nil, err
	}
	var out []squad.ReviewComment
	for _, r := range reviews {
		if r.GetState() == "PENDING" { // a draft of our own
			continue
		}
		out = append(out, joinReview(squad.ReviewComment{
			RemoteID: remoteID("review", r.GetID()), Author: r.GetUser().GetLogin(), Verdict: verdictOf(r.GetState()),
			Body: r.GetBody(), CreatedAt: r.GetSubmittedAt().Time,
		}, lines[r.GetID()])...)
	}
	talk, err := pages(func(page int) ([]*github.IssueComment, bool, error) {
		some, resp, err := g.api.Issues.ListComments(ctx, g.owner, g.name, int(number), &github.IssueListCommentsOptions{ListOptions: onPage(page)})
		return some, moreOf(resp), gitHubError(err, "read comments")
	})
	if err != nil {
		return nil, err
	}
	for _, c := range talk {
		out = append(out, squad.ReviewComment{
			RemoteID: remoteID("issue", c.GetID()), Author: c.GetUser().GetLogin(), Verdict: "comment", Body: c.GetBody(), CreatedAt: c.GetCreatedAt().Time,
		})
	}
	slices.SortStableFunc(out, func(a, b squad.ReviewComment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, nil
}

// lines are the remarks on lines, by their review.
func (g *gitHub) lines(ctx context.Context, number int64) (map[int64][]squad.ReviewComment, error) {
	list, err := pages(func(page int) ([]*github.PullRequestComment, bool, error) {
		some, resp, err := g.api.PullRequests.ListComments(ctx, g.owner, g.name, int(number), &github.PullRequestListCommentsOptions{ListOptions: onPage(page)})
		return some, moreOf(resp), gitHubError(err, "read line comments")
	})
	out := map[int64][]squad.ReviewComment{}
	for _, c := range list {
		line := c.GetLine()
		if line == 0 { // the line is not in the newest version any more
			line = c.GetOriginalLine()
		}
		review := c.GetPullRequestReviewID()
		out[review] = append(out[review], squad.ReviewComment{
			RemoteID: remoteID("line", c.GetID()), Author: c.GetUser().GetLogin(), Path: c.GetPath(), Line: line, Side: sideOf(c.GetSide()),
			Verdict: "comment", Body: c.GetBody(), CreatedAt: c.GetCreatedAt().Time,
		})
	}
	return out, err
}

func (g *gitHub) Comment(ctx context.Context, number int64, c squad.ReviewComment) (squad.ReviewComment, error) {
	switch {
	case c.Verdict == "approve" || c.Verdict == "request_changes":
		event := map[string]string{"approve": "APPROVE", "request_changes": "REQUEST_CHANGES"}[c.Verdict]
		r := &github.PullRequestReviewRequest{Event: &event, Body: &c.Body}
		if c.Path != "" && c.Line > 0 {
			r.Comments = []*github.DraftReviewComment{{Path: &c.Path, Line: &c.Line, Side: new(gitHubSide(c.Side)), Body: &c.Body}}
		}
		made, _, err := g.api.PullRequests.CreateReview(ctx, g.owner, g.name, int(number), r)
		if err != nil {
			return c, gitHubError(err, "add review")
		}
		c.RemoteID = remoteID("review", made.GetID())
	case c.Path != "" && c.Line > 0:
		pr, _, err := g.api.PullRequests.Get(ctx, g.owner, g.name, int(number))
		if err != nil {
			return c, gitHubError(err, "read pull request")
		}
		made, _, err := g.api.PullRequests.CreateComment(ctx, g.owner, g.name, int(number), github.CreatePullRequestCommentRequest{
			Body: c.Body, CommitID: pr.GetHead().GetSHA(), Path: c.Path, Line: &c.Line, Side: new(gitHubSide(c.Side)),
		})
		if err != nil {
			return c, gitHubError(err, "add line comment")
		}
		c.RemoteID = remoteID("line", made.GetID())
	default:
		made, _, err := g.api.Issues.CreateComment(ctx, g.owner, g.name, int(number), github.IssueCommentRequest{Body: c.Body})
		if err != nil {
			return c, gitHubError(err, "add comment")
		}
		c.RemoteID = remoteID("issue", made.GetID())
	}
	return c, nil
}

func (g *gitHub) Checks(ctx context.Context, sha string) ([]Check, error) {
	out, err := pages(func(page int) ([]Check, bool, error) {
		runs, resp, err := g.api.Checks.ListCheckRunsForRef(ctx, g.owner, g.name, sha, &github.ListCheckRunsOptions{ListOptions: onPage(page)})
		if err != nil {
			if isForbidden(err) { // the doctor tells; statuses may still be read
				err = nil
			}
			return nil, false, gitHubError(err, "read check runs")
		}
		var some []Check
		for _, r := range runs.CheckRuns {
			some = append(some, Check{Name: r.GetName(), Status: checkRunStatus(r), URL: r.GetHTMLURL(), Detail: r.GetOutput().GetTitle()})
		}
		return some, moreOf(resp), nil
	})
	if err != nil {
		return nil, err
	}
	statuses, err := pages(func(page int) ([]Check, bool, error) {
		opts := onPage(page)
		combined, resp, err := g.api.Repositories.GetCombinedStatus(ctx, g.owner, g.name, sha, &opts)
		if err != nil {
			if isForbidden(err) {
				err = nil
			}
			return nil, false, gitHubError(err, "read statuses")
		}
		var some []Check
		for _, s := range combined.Statuses {
			state := s.GetState()
			if state == "error" {
				state = "failure"
			}
			some = append(some, Check{Name: s.GetContext(), Status: state, URL: s.GetTargetURL(), Detail: s.GetDescription()})
		}
		return some, moreOf(resp), nil
	})
	return append(out, statuses...), err
}

func checkRunStatus(r *github.CheckRun) string {
	if r.GetStatus() != "completed" {
		return "pending"
	}
	switch r.GetConclusion() {
	case "success", "neutral", "skipped":
		return "success"
	}
	return "failure"
}

func (g *gitHub) SetCheck(ctx context.Context, sha string, c Check) error {
	// A commit status works with any token; check runs need a GitHub App.
	s := github.RepoStatus{State: &c.Status, Context: &c.Name}
	if c.URL != "" {
		s.TargetURL = &c.URL
	}
	if c.Detail != "" {
		s.Description = new(truncate(c.Detail, 140))
	}
	_, _, err := g.api.Repositories.CreateStatus(ctx, g.owner, g.name, sha, s)
	return gitHubError(err, "set status "+c.Name)
}

func (g *gitHub) CreateIssue(ctx context.Context, title, body string) (Issue, error) {
	made, _, err := g.api.Issues.Create(ctx, g.owner, g.name, github.CreateIssueRequest{Title: title, Body: &body})
	if err != nil {
		return Issue{}, gitHubError(err, "open issue")
	}
	return issueFromGitHub(made), nil
}

func (g *gitHub) Issue(ctx context.Context, number int64) (Issue, error) {
	found, _, err := g.api.Issues.Get(ctx, g.owner, g.name, int(number))
	if err != nil {
		return Issue{}, gitHubError(err, fmt.Sprintf("read issue #%d", number))
	}
	return issueFromGitHub(found), nil
}

func (g *gitHub) CommentIssue(ctx context.Context, number int64, body string) error {
	_, _, err := g.api.Issues.CreateComment(ctx, g.owner, g.name, int(number), github.IssueCommentRequest{Body: body})
	return gitHubError(err, fmt.Sprintf("comment on issue #%d", number))
}

func issueFromGitHub(i *github.Issue) Issue {
	out := Issue{Number: int64(i.GetNumber()), URL: i.GetHTMLURL(), Title: i.GetTitle(), Body: i.GetBody(), State: i.GetState()}
	for _, l := range i.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	return out
}

func sideOf(side string) string {
	if side == "LEFT" {
		return "old"
	}
	return "new"
}

func gitHubSide(side string) string {
	if side == "old" {
		return "LEFT"
	}
	return "RIGHT"
}
