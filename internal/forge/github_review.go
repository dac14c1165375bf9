package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"

	squad "agentsquad"
)

func (g *gitHub) Comments(ctx context.Context, number int64) ([]squad.ReviewComment, error) {
	var out []squad.ReviewComment
	reviews, _, err := g.api.PullRequests.ListReviews(ctx, g.owner, g.name, int(number), &github.ListOptions{PerPage: 100})
	if err != nil {
		return nil, gitHubError(err, "read reviews")
	}
	for _, r := range reviews {
		if verdict := verdictOf(r.GetState()); verdict != "comment" || r.GetBody() != "" {
			out = append(out, squad.ReviewComment{
				RemoteID: "review-" + strconv.FormatInt(r.GetID(), 10), Author: r.GetUser().GetLogin(), Verdict: verdict,
				Body: r.GetBody(), CreatedAt: r.GetSubmittedAt().Time,
			})
		}
	}
	lines, _, err := g.api.PullRequests.ListComments(ctx, g.owner, g.name, int(number), &github.PullRequestListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}})
	if err != nil {
		return nil, gitHubError(err, "read line comments")
	}
	for _, c := range lines {
		line := c.GetLine()
		if line == 0 { // the line is not in the newest version any more
			line = c.GetOriginalLine()
		}
		out = append(out, squad.ReviewComment{
			RemoteID: "line-" + strconv.FormatInt(c.GetID(), 10), Author: c.GetUser().GetLogin(), Path: c.GetPath(), Line: line, Side: sideOf(c.GetSide()), Verdict: "comment", Body: c.GetBody(), CreatedAt: c.GetCreatedAt().Time,
		})
	}
	talk, _, err := g.api.Issues.ListComments(ctx, g.owner, g.name, int(number), &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}})
	if err != nil {
		return nil, gitHubError(err, "read comments")
	}
	for _, c := range talk {
		out = append(out, squad.ReviewComment{
			RemoteID: "issue-" + strconv.FormatInt(c.GetID(), 10), Author: c.GetUser().GetLogin(), Verdict: "comment",
			Body: c.GetBody(), CreatedAt: c.GetCreatedAt().Time,
		})
	}
	slices.SortStableFunc(out, func(a, b squad.ReviewComment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, nil
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
		c.RemoteID = "review-" + strconv.FormatInt(made.GetID(), 10)
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
		c.RemoteID = "line-" + strconv.FormatInt(made.GetID(), 10)
	default:
		made, _, err := g.api.Issues.CreateComment(ctx, g.owner, g.name, int(number), github.IssueCommentRequest{Body: c.Body})
		if err != nil {
			return c, gitHubError(err, "add comment")
		}
		c.RemoteID = "issue-" + strconv.FormatInt(made.GetID(), 10)
	}
	return c, nil
}

func (g *gitHub) Checks(ctx context.Context, sha string) ([]Check, error) {
	var out []Check
	runs, _, err := g.api.Checks.ListCheckRunsForRef(ctx, g.owner, g.name, sha, &github.ListCheckRunsOptions{ListOptions: github.ListOptions{PerPage: 100}})
	if err != nil && !isForbidden(err) {
		return nil, gitHubError(err, "read check runs")
	}
	if runs != nil {
		for _, r := range runs.CheckRuns {
			out = append(out, Check{Name: r.GetName(), Status: checkRunStatus(r), URL: r.GetHTMLURL(), Detail: r.GetOutput().GetTitle()})
		}
	}
	combined, _, err := g.api.Repositories.GetCombinedStatus(ctx, g.owner, g.name, sha, &github.ListOptions{PerPage: 100})
	if err != nil && !isForbidden(err) {
		return nil, gitHubError(err, "read statuses")
	}
	if combined != nil {
		for _, s := range combined.Statuses {
			state := s.GetState()
			if state == "error" {
				state = "failure"
			}
			out = append(out, Check{Name: s.GetContext(), Status: state, URL: s.GetTargetURL(), Detail: s.GetDescription()})
		}
	}
	return out, nil
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

func verdictOf(state string) string {
	switch strings.ToUpper(state) {
	case "APPROVED":
		return "approve"
	case "CHANGES_REQUESTED", "REQUEST_CHANGES":
		return "request_changes"
	}
	return "comment"
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

// gitHubError translates an answer of GitHub into ours. nil stays nil.
func gitHubError(err error, doing string) error {
	if err == nil {
		return nil
	}
	var rate *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	switch {
	case errors.As(err, &rate):
		e := squad.Wrap(squad.CodeQuota, err, "%s: GitHub's rate limit is used up until %s", doing, rate.Rate.Reset.Format(time.TimeOnly))
		e.RetryAfter = time.Until(rate.Rate.Reset.Time)
		return e
	case errors.As(err, &abuse):
		e := squad.Wrap(squad.CodeQuota, err, "%s: GitHub asks us to slow down", doing)
		if e.RetryAfter = time.Minute; abuse.RetryAfter != nil {
			e.RetryAfter = *abuse.RetryAfter
		}
		return e
	}
	var answer *github.ErrorResponse
	if !errors.As(err, &answer) || answer.Response == nil {
		return squad.Wrap(squad.CodeProvider, err, "%s: GitHub did not answer", doing)
	}
	return squad.Wrap(codeOfStatus(answer.Response.StatusCode, answer.Message+fmt.Sprint(answer.Errors)), err, "%s: GitHub says %q", doing, detail(answer))
}

func detail(e *github.ErrorResponse) string {
	text := e.Message
	for _, d := range e.Errors {
		if d.Message != "" {
			text += "; " + d.Message
		}
	}
	return truncate(text, 300)
}

// codeOfStatus maps what a forge answered. 422 says both "exists already" and "no".
func codeOfStatus(status int, text string) squad.Code {
	switch {
	case status == http.StatusUnauthorized:
		return squad.CodeUnauthorized
	case status == http.StatusForbidden:
		return squad.CodeForbidden
	case status == http.StatusNotFound:
		return squad.CodeNotFound
	case status == http.StatusConflict, strings.Contains(text, "already exists"):
		return squad.CodeConflict
	case status == http.StatusTooManyRequests:
		return squad.CodeQuota
	case status == http.StatusUnprocessableEntity, status == http.StatusMethodNotAllowed, status == http.StatusBadRequest:
		return squad.CodeRule
	}
	return squad.CodeProvider
}
