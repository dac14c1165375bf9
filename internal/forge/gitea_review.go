package forge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"code.gitea.io/sdk/gitea"

	squad "agentsquad"
)

func (g *giteaForge) Comments(ctx context.Context, number int64) ([]squad.ReviewComment, error) {
	var out []squad.ReviewComment
	reviews, resp, err := g.as(ctx).ListPullReviews(g.owner, g.name, number, gitea.ListPullReviewsOptions{})
	if err != nil {
		return nil, giteaError(resp, err, "read reviews")
	}
	for _, r := range reviews {
		if r.Reviewer == nil {
			continue
		}
		if verdict := verdictOf(string(r.State)); verdict != "comment" || r.Body != "" {
			out = append(out, squad.ReviewComment{
				RemoteID: "review-" + strconv.FormatInt(r.ID, 10), Author: r.Reviewer.UserName, Verdict: verdict, Body: r.Body, CreatedAt: r.Submitted,
			})
		}
		if r.CodeCommentsCount == 0 {
			continue
		}
		lines, resp, err := g.as(ctx).ListPullReviewComments(g.owner, g.name, number, r.ID)
		if err != nil {
			return nil, giteaError(resp, err, "read line comments")
		}
		for _, c := range lines {
			line, side := c.LineNum, "new"
			if line == 0 {
				line, side = c.OldLineNum, "old"
			}
			out = append(out, squad.ReviewComment{
				RemoteID: "line-" + strconv.FormatInt(c.ID, 10), Author: r.Reviewer.UserName, Path: c.Path, Line: int(line), Side: side,
				Verdict: "comment", Body: c.Body, CreatedAt: c.Created,
			})
		}
	}
	talk, resp, err := g.as(ctx).ListIssueComments(g.owner, g.name, number, gitea.ListIssueCommentOptions{})
	if err != nil {
		return nil, giteaError(resp, err, "read comments")
	}
	for _, c := range talk {
		author := ""
		if c.Poster != nil {
			author = c.Poster.UserName
		}
		out = append(out, squad.ReviewComment{RemoteID: "issue-" + strconv.FormatInt(c.ID, 10), Author: author, Verdict: "comment", Body: c.Body, CreatedAt: c.Created})
	}
	slices.SortStableFunc(out, func(a, b squad.ReviewComment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, nil
}

func (g *giteaForge) Comment(ctx context.Context, number int64, c squad.ReviewComment) (squad.ReviewComment, error) {
	if c.Verdict == "" || c.Verdict == "comment" {
		if c.Path == "" {
			made, resp, err := g.as(ctx).CreateIssueComment(g.owner, g.name, number, gitea.CreateIssueCommentOption{Body: c.Body})
			if err != nil {
				return c, giteaError(resp, err, "add comment")
			}
			c.RemoteID = "issue-" + strconv.FormatInt(made.ID, 10)
			return c, nil
		}
	}
	review := gitea.CreatePullReviewOptions{State: gitea.ReviewStateComment, Body: c.Body}
	switch c.Verdict {
	case "approve":
		review.State, review.Body = gitea.ReviewStateApproved, orElse(c.Body, "Approved.")
	case "request_changes":
		review.State = gitea.ReviewStateRequestChanges
	}
	if c.Path != "" && c.Line > 0 {
		line := gitea.CreatePullReviewComment{Path: c.Path, Body: c.Body, NewLineNum: int64(c.Line)}
		if c.Side == "old" {
			line.OldLineNum, line.NewLineNum = int64(c.Line), 0
		}
		review.Comments = []gitea.CreatePullReviewComment{line}
	}
	made, resp, err := g.as(ctx).CreatePullReview(g.owner, g.name, number, review)
	if err != nil {
		return c, giteaError(resp, err, "add review")
	}
	c.RemoteID = "review-" + strconv.FormatInt(made.ID, 10)
	return c, nil
}

func (g *giteaForge) Checks(ctx context.Context, sha string) ([]Check, error) {
	combined, resp, err := g.as(ctx).GetCombinedStatus(g.owner, g.name, sha)
	if err != nil {
		if resp != nil && resp.StatusCode == http.StatusNotFound {
			return nil, nil
		}
		return nil, giteaError(resp, err, "read statuses")
	}
	var out []Check
	for _, s := range combined.Statuses {
		state := string(s.State)
		switch s.State {
		case gitea.StatusError, gitea.StatusFailure:
			state = "failure"
		case gitea.StatusWarning:
			state = "success"
		}
		out = append(out, Check{Name: s.Context, Status: state, URL: s.TargetURL, Detail: s.Description})
	}
	return out, nil
}

func (g *giteaForge) SetCheck(ctx context.Context, sha string, c Check) error {
	_, resp, err := g.as(ctx).CreateStatus(g.owner, g.name, sha, gitea.CreateStatusOption{
		State: gitea.StatusState(c.Status), TargetURL: c.URL, Description: c.Detail, Context: c.Name,
	})
	return giteaError(resp, err, "set status "+c.Name)
}

func (g *giteaForge) CreateIssue(ctx context.Context, title, body string) (Issue, error) {
	made, resp, err := g.as(ctx).CreateIssue(g.owner, g.name, gitea.CreateIssueOption{Title: title, Body: body})
	if err != nil {
		return Issue{}, giteaError(resp, err, "open issue")
	}
	return issueFromGitea(made), nil
}

func (g *giteaForge) Issue(ctx context.Context, number int64) (Issue, error) {
	found, resp, err := g.as(ctx).GetIssue(g.owner, g.name, number)
	if err != nil {
		return Issue{}, giteaError(resp, err, fmt.Sprintf("read issue #%d", number))
	}
	return issueFromGitea(found), nil
}

func (g *giteaForge) CommentIssue(ctx context.Context, number int64, body string) error {
	_, resp, err := g.as(ctx).CreateIssueComment(g.owner, g.name, number, gitea.CreateIssueCommentOption{Body: body})
	return giteaError(resp, err, fmt.Sprintf("comment on issue #%d", number))
}

func issueFromGitea(i *gitea.Issue) Issue {
	out := Issue{Number: i.Index, URL: i.HTMLURL, Title: i.Title, Body: i.Body, State: string(i.State)}
	for _, l := range i.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	return out
}
