package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"code.gitea.io/sdk/gitea"

	squad "agentsquad"
)

func (g *giteaForge) Comments(ctx context.Context, number int64) ([]squad.ReviewComment, error) {
	reviews, err := g.reviews(ctx, number)
	if err != nil {
		return nil, err
	}
	var out []squad.ReviewComment
	for _, r := range reviews {
		if r.Reviewer == nil || r.State == gitea.ReviewStatePending || r.State == gitea.ReviewStateRequestReview {
			continue // a team that is asked, a draft of a review, a person who is asked
		}
		said, err := g.said(ctx, number, r)
		if err != nil {
			return nil, err
		}
		out = append(out, said...)
	}
	talk, resp, err := g.as(ctx).ListIssueComments(g.owner, g.name, number, gitea.ListIssueCommentOptions{}) // all: this list has no pages
	if err != nil {
		return nil, giteaError(resp, err, "read comments")
	}
	for _, c := range talk {
		author := ""
		if c.Poster != nil {
			author = c.Poster.UserName
		}
		out = append(out, squad.ReviewComment{RemoteID: remoteID("issue", c.ID), Author: author, Verdict: "comment", Body: c.Body, CreatedAt: c.Created})
	}
	slices.SortStableFunc(out, func(a, b squad.ReviewComment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, nil
}

// said is what one review says: its own words and those on lines.
func (g *giteaForge) said(ctx context.Context, number int64, r *gitea.PullReview) ([]squad.ReviewComment, error) {
	whole := squad.ReviewComment{RemoteID: remoteID("review", r.ID), Author: r.Reviewer.UserName, Verdict: verdictOf(string(r.State)), Body: r.Body, CreatedAt: r.Submitted}
	if r.Dismissed {
		whole.Verdict = "comment"
	}
	var lines []squad.ReviewComment
	if r.CodeCommentsCount > 0 {
		list, resp, err := g.as(ctx).ListPullReviewComments(g.owner, g.name, number, r.ID)
		if err != nil {
			return nil, giteaError(resp, err, "read line comments")
		}
		for _, c := range list {
			line, side := c.LineNum, "new"
			if line == 0 {
				line, side = c.OldLineNum, "old"
			}
			lines = append(lines, squad.ReviewComment{
				RemoteID: remoteID("line", c.ID), Author: r.Reviewer.UserName, Path: c.Path, Line: int(line), Side: side,
				Verdict: "comment", Body: c.Body, CreatedAt: c.Created,
			})
		}
	}
	return joinReview(whole, lines), nil
}

func (g *giteaForge) Comment(ctx context.Context, number int64, c squad.ReviewComment) (squad.ReviewComment, error) {
	onLine := c.Path != "" && c.Line > 0
	review := gitea.CreatePullReviewOptions{Body: c.Body}
	switch c.Verdict {
	case "approve":
		review.State, review.Body = gitea.ReviewStateApproved, orElse(c.Body, "Approved.") // Gitea wants words
	case "request_changes":
		review.State = gitea.ReviewStateRequestChanges
	default:
		if !onLine {
			made, resp, err := g.as(ctx).CreateIssueComment(g.owner, g.name, number, gitea.CreateIssueCommentOption{Body: c.Body})
			if err != nil {
				return c, giteaError(resp, err, "add comment")
			}
			c.RemoteID = remoteID("issue", made.ID)
			return c, nil
		}
		review.State, review.Body = gitea.ReviewStateComment, ""
	}
	if onLine {
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
	// As it will be listed later, so that it is known then.
	said, err := g.said(ctx, number, made)
	if err != nil || len(said) == 0 {
		return c, err
	}
	c.RemoteID, c.Body = said[0].RemoteID, said[0].Body
	return c, nil
}

func (g *giteaForge) Checks(ctx context.Context, sha string) ([]Check, error) {
	seen, total := 0, 0
	return pages(func(page int) ([]Check, bool, error) {
		var combined gitea.CombinedStatus
		status, err := g.ask(ctx, http.MethodGet, fmt.Sprintf("/commits/%s/status?page=%d&limit=%d", url.PathEscape(sha), page, giteaPage), nil, &combined, &total)
		if err != nil {
			return nil, false, remoteError(status, err, "Gitea", "read statuses")
		}
		var out []Check
		for _, s := range combined.Statuses {
			state := string(s.State)
			switch s.State {
			case gitea.StatusError, gitea.StatusFailure:
				state = "failure"
			case gitea.StatusWarning, "skipped":
				state = "success"
			}
			out = append(out, Check{Name: s.Context, Status: state, URL: s.TargetURL, Detail: s.Description})
		}
		seen += len(out)
		return out, len(out) > 0 && seen < total, nil
	})
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
