package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	squad "agentsquad"
)

// draftPrefix is how Gitea marks a draft.
const draftPrefix = "WIP: "

func (g *giteaForge) CreatePull(ctx context.Context, p NewPull) (squad.PullRequest, error) {
	title := p.Title
	if p.Draft {
		title = draftPrefix + title
	}
	made, resp, err := g.as(ctx).CreatePullRequest(g.owner, g.name, gitea.CreatePullRequestOption{Head: p.Head, Base: p.Base, Title: title, Body: p.Body})
	if err != nil {
		return squad.PullRequest{}, giteaError(resp, err, "open pull request for "+p.Head)
	}
	return g.dress(ctx, made, p.Reviewers, p.Labels)
}

func (g *giteaForge) Pull(ctx context.Context, number int64) (squad.PullRequest, error) {
	// After a push Gitea tries the merge in the background, and until it knows it
	// answers as for a conflict.
	pull, err := settled(ctx, "conflict", func() (squad.PullRequest, error) {
		pr, resp, err := g.as(ctx).GetPullRequest(g.owner, g.name, number)
		if err != nil {
			return squad.PullRequest{}, giteaError(resp, err, fmt.Sprintf("read pull request #%d", number))
		}
		return fromGitea(pr), nil
	})
	if err != nil || pull.State != squad.PullOpen {
		return pull, err
	}
	checks, err := g.Checks(ctx, pull.HeadSHA)
	if err != nil {
		return pull, err
	}
	reviews, err := g.reviews(ctx, number)
	if err != nil {
		return pull, err
	}
	pull.Checks, pull.Review = Summary(checks), giteaReview(reviews, pull.Reviewers)
	return pull, nil
}

func (g *giteaForge) reviews(ctx context.Context, number int64) ([]*gitea.PullReview, error) {
	return pages(func(page int) ([]*gitea.PullReview, bool, error) {
		some, resp, err := g.as(ctx).ListPullReviews(g.owner, g.name, number, gitea.ListPullReviewsOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: giteaPage}})
		return some, more(resp), giteaError(resp, err, "read reviews")
	})
}

// giteaReview folds the last verdict of each reviewer into one word.
func giteaReview(reviews []*gitea.PullReview, asked []string) string {
	last := map[string]gitea.ReviewStateType{}
	for _, r := range reviews {
		if r.Reviewer == nil || r.Dismissed {
			continue
		}
		if r.State == gitea.ReviewStateApproved || r.State == gitea.ReviewStateRequestChanges {
			last[r.Reviewer.UserName] = r.State
		}
	}
	word := "none"
	if len(asked) > 0 {
		word = "pending"
	}
	for _, state := range last {
		if state == gitea.ReviewStateRequestChanges {
			return "changes_requested"
		}
		word = "approved"
	}
	return word
}

func (g *giteaForge) Pulls(ctx context.Context, f PullFilter) ([]squad.PullRequest, error) {
	state := gitea.StateOpen
	if f.State == squad.PullMerged || f.State == squad.PullClosed {
		state = gitea.StateClosed
	}
	limit := orLimit(f.Limit)
	return pages(func(page int) ([]squad.PullRequest, bool, error) {
		list, resp, err := g.as(ctx).ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
			State: state, ListOptions: gitea.ListOptions{Page: page, PageSize: giteaPage},
		})
		var some []squad.PullRequest
		for _, pr := range list {
			if p := fromGitea(pr); f.fits(p) && limit > 0 {
				some = append(some, p)
				limit--
			}
		}
		return some, limit > 0 && more(resp), giteaError(resp, err, "list pull requests")
	})
}

func (g *giteaForge) UpdatePull(ctx context.Context, number int64, u PullUpdate) (squad.PullRequest, error) {
	edit := gitea.EditPullRequestOption{Body: u.Body}
	if u.Title != nil || u.Draft != nil { // the draft is a part of the title
		old, resp, err := g.as(ctx).GetPullRequest(g.owner, g.name, number)
		if err != nil {
			return squad.PullRequest{}, giteaError(resp, err, fmt.Sprintf("read pull request #%d", number))
		}
		pull := fromGitea(old)
		if u.Title != nil {
			pull.Title = *u.Title
		}
		if u.Draft != nil {
			pull.Draft = *u.Draft
		}
		if edit.Title = pull.Title; pull.Draft {
			edit.Title = draftPrefix + edit.Title
		}
	}
	if u.Closed != nil {
		state := gitea.StateOpen
		if *u.Closed {
			state = gitea.StateClosed
		}
		edit.State = &state
	}
	pr, resp, err := g.as(ctx).EditPullRequest(g.owner, g.name, number, edit)
	if err != nil {
		return squad.PullRequest{}, giteaError(resp, err, fmt.Sprintf("change pull request #%d", number))
	}
	return g.dress(ctx, pr, u.Reviewers, u.Labels)
}

func (g *giteaForge) Merge(ctx context.Context, number int64, m MergeOptions) (string, error) {
	pull, err := g.Pull(ctx, number)
	if err != nil {
		return "", err
	}
	if pull.State == squad.PullMerged {
		return pull.MergeSHA, nil
	}
	if err := mayMerge(pull, m); err != nil {
		return "", err
	}
	if err := g.protected(ctx, pull); err != nil {
		return "", err
	}
	title, message, _ := strings.Cut(m.Message, "\n")
	err = g.merge(ctx, number, gitea.MergePullRequestOption{
		Style: gitea.MergeStyle(orElse(m.Method, "merge")), Title: title, Message: strings.TrimSpace(message), HeadCommitId: orElse(m.HeadSHA, pull.HeadSHA),
	})
	if err != nil {
		return "", err
	}
	done, err := g.Pull(ctx, number)
	if err == nil && done.State != squad.PullMerged { // closed by somebody at the same moment
		err = squad.Errorf(squad.CodeConflict, "Gitea says that pull request #%d is %s, not merged", number, done.State)
	}
	return done.MergeSHA, err
}

// merge asks for the merge. While Gitea tries it in the background, after a push to
// either branch, it wants to be asked again later.
func (g *giteaForge) merge(ctx context.Context, number int64, m gitea.MergePullRequestOption) error {
	doing := fmt.Sprintf("merge pull request #%d", number)
	for wait := 200 * time.Millisecond; ; wait *= 2 {
		status, err := g.ask(ctx, http.MethodPost, fmt.Sprintf("/pulls/%d/merge", number), m, nil)
		if err == nil {
			return nil
		}
		if status != http.StatusMethodNotAllowed || !strings.Contains(err.Error(), "try again later") {
			return remoteError(status, err, "Gitea", doing)
		}
		if pull, e := g.Pull(ctx, number); e != nil || pull.Mergeable == "conflict" || wait > 5*time.Second {
			return errors.Join(e, squad.Wrap(squad.CodeConflict, err, "%s: Gitea cannot merge it into %s", doing, pull.Base))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// protected reads the base's protection before a merge, so that the user hears what
// is missing. Gitea lets an admin merge all the same; we do not.
func (g *giteaForge) protected(ctx context.Context, pull squad.PullRequest) error {
	b, resp, err := g.as(ctx).GetRepoBranch(g.owner, g.name, pull.Base)
	if err != nil {
		return giteaError(resp, err, "read protection of "+pull.Base)
	}
	if !b.Protected {
		return nil
	}
	rule := protection{branch: pull.Base, approvals: int(b.RequiredApprovals)}
	if b.EnableStatusCheck {
		rule.checks = b.StatusCheckContexts
	}
	reviews, err := g.reviews(ctx, pull.Number)
	if err != nil {
		return err
	}
	approvals := 0
	for _, r := range reviews {
		if r.State == gitea.ReviewStateApproved && r.Official && !r.Dismissed {
			approvals++
		}
	}
	checks, err := g.Checks(ctx, pull.HeadSHA)
	if err != nil {
		return err
	}
	return rule.refuse(approvals, checks)
}

func (g *giteaForge) DeleteBranch(ctx context.Context, branch string) error {
	_, resp, err := g.as(ctx).DeleteRepoBranch(g.owner, g.name, branch)
	if resp != nil && resp.Response != nil && resp.StatusCode == http.StatusNotFound {
		return nil
	}
	return giteaError(resp, err, "delete branch "+branch)
}

func (g *giteaForge) Diff(ctx context.Context, number int64) (string, error) {
	text, resp, err := g.as(ctx).GetPullRequestDiff(g.owner, g.name, number, gitea.PullRequestDiffOptions{})
	return string(text), giteaError(resp, err, fmt.Sprintf("read diff of pull request #%d", number))
}

func fromGitea(pr *gitea.PullRequest) squad.PullRequest {
	p := squad.PullRequest{
		Number: pr.Index, URL: pr.HTMLURL, Title: strings.TrimPrefix(pr.Title, draftPrefix), Body: pr.Body, State: squad.PullOpen,
		Draft: pr.Draft || strings.HasPrefix(pr.Title, draftPrefix), Mergeable: "conflict", Checks: "none", Review: "none",
	}
	if pr.Head != nil {
		p.Head, p.HeadSHA = pr.Head.Ref, pr.Head.Sha
	}
	if pr.Base != nil {
		p.Base = pr.Base.Ref
	}
	if pr.Poster != nil {
		p.Author = pr.Poster.UserName
	}
	for _, u := range pr.RequestedReviewers {
		p.Reviewers = append(p.Reviewers, u.UserName)
	}
	for _, l := range pr.Labels {
		p.Labels = append(p.Labels, l.Name)
	}
	switch {
	case pr.HasMerged:
		p.State, p.Mergeable = squad.PullMerged, "unknown"
		if pr.MergedCommitID != nil {
			p.MergeSHA = *pr.MergedCommitID
		}
		if pr.Merged != nil {
			p.MergedAt = *pr.Merged
		}
	case pr.State == gitea.StateClosed:
		p.State, p.Mergeable = squad.PullClosed, "unknown"
	case p.Draft: // Gitea calls no draft mergeable, conflict or not
		p.Mergeable = "blocked"
	case pr.Mergeable:
		p.Mergeable = "clean"
	}
	return p
}
