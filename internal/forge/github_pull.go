package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v92/github"

	squad "agentsquad"
)

func (g *gitHub) CreatePull(ctx context.Context, p NewPull) (squad.PullRequest, error) {
	made, _, err := g.api.PullRequests.Create(ctx, g.owner, g.name, github.CreatePullRequest{
		Title: &p.Title, Body: &p.Body, Head: p.Head, Base: p.Base, Draft: &p.Draft,
	})
	if err != nil {
		return squad.PullRequest{}, gitHubError(err, "open pull request for "+p.Head)
	}
	return g.dress(ctx, made, p.Reviewers, p.Labels)
}

func (g *gitHub) Pull(ctx context.Context, number int64) (squad.PullRequest, error) {
	// GitHub tries the merge when it is first asked, and does not know until then.
	pull, err := settled(ctx, "unknown", func() (squad.PullRequest, error) {
		pr, _, err := g.api.PullRequests.Get(ctx, g.owner, g.name, int(number))
		if err != nil {
			return squad.PullRequest{}, gitHubError(err, fmt.Sprintf("read pull request #%d", number))
		}
		return fromGitHub(pr), nil
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
	pull.Checks, pull.Review = Summary(checks), gitHubReview(reviews, pull.Reviewers)
	return pull, nil
}

func (g *gitHub) reviews(ctx context.Context, number int64) ([]*github.PullRequestReview, error) {
	return pages(func(page int) ([]*github.PullRequestReview, bool, error) {
		opts := onPage(page)
		some, resp, err := g.api.PullRequests.ListReviews(ctx, g.owner, g.name, int(number), &opts)
		return some, moreOf(resp), gitHubError(err, "read reviews")
	})
}

// verdicts is the last verdict of each reviewer.
func verdicts(reviews []*github.PullRequestReview) map[string]string {
	last := map[string]string{}
	for _, r := range reviews {
		switch state := r.GetState(); state {
		case "APPROVED", "CHANGES_REQUESTED", "DISMISSED":
			last[r.GetUser().GetLogin()] = state
		}
	}
	return last
}

// gitHubReview folds the verdicts into one word.
func gitHubReview(reviews []*github.PullRequestReview, asked []string) string {
	word := "none"
	if len(asked) > 0 {
		word = "pending"
	}
	for _, state := range verdicts(reviews) {
		if state == "CHANGES_REQUESTED" {
			return "changes_requested"
		}
		if state == "APPROVED" {
			word = "approved"
		}
	}
	return word
}

func (g *gitHub) Pulls(ctx context.Context, f PullFilter) ([]squad.PullRequest, error) {
	opts := &github.PullRequestListOptions{State: "open"}
	if f.State == squad.PullMerged || f.State == squad.PullClosed {
		opts.State = "closed"
	}
	if f.Head != "" {
		opts.Head = g.owner + ":" + f.Head
	}
	limit := orLimit(f.Limit)
	return pages(func(page int) ([]squad.PullRequest, bool, error) {
		opts.ListOptions = onPage(page)
		list, resp, err := g.api.PullRequests.List(ctx, g.owner, g.name, opts)
		var some []squad.PullRequest
		for _, pr := range list {
			if p := fromGitHub(pr); f.fits(p) && limit > 0 {
				some = append(some, p)
				limit--
			}
		}
		return some, limit > 0 && moreOf(resp), gitHubError(err, "list pull requests")
	})
}

func (g *gitHub) UpdatePull(ctx context.Context, number int64, u PullUpdate) (squad.PullRequest, error) {
	edit := &github.PullRequest{Title: u.Title, Body: u.Body}
	if u.Closed != nil {
		state := "open"
		if *u.Closed {
			state = "closed"
		}
		edit.State = &state
	}
	pr, _, err := g.api.PullRequests.Edit(ctx, g.owner, g.name, int(number), edit)
	if err != nil {
		return squad.PullRequest{}, gitHubError(err, fmt.Sprintf("change pull request #%d", number))
	}
	if u.Draft != nil && *u.Draft != pr.GetDraft() {
		if err := g.setDraft(ctx, pr, *u.Draft); err != nil {
			return squad.PullRequest{}, err
		}
	}
	return g.dress(ctx, pr, u.Reviewers, u.Labels)
}

// setDraft marks a pull request as a draft or as ready. GitHub's REST API cannot: it
// is the one thing that we ask its GraphQL API for.
func (g *gitHub) setDraft(ctx context.Context, pr *github.PullRequest, draft bool) error {
	verb := "markPullRequestReadyForReview"
	if draft {
		verb = "convertPullRequestToDraft"
	}
	// github.com: https://api.github.com/graphql; Enterprise: https://HOST/api/graphql beside /api/v3/.
	address := strings.TrimSuffix(g.api.BaseURL(), "v3/") + "graphql"
	req, err := g.api.NewRequest(ctx, http.MethodPost, address, map[string]any{
		"query":     "mutation($id: ID!) { " + verb + "(input: {pullRequestId: $id}) { pullRequest { isDraft } } }",
		"variables": map[string]string{"id": pr.GetNodeID()},
	})
	if err != nil {
		return gitHubError(err, "change draft")
	}
	var answer struct {
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if _, err := g.api.Do(req, &answer); err != nil {
		return gitHubError(err, "change draft")
	}
	if len(answer.Errors) > 0 { // GraphQL refuses with status 200
		return squad.Errorf(squad.CodeRule, "change draft: GitHub says %q", truncate(answer.Errors[0].Message, 300))
	}
	return nil
}

func (g *gitHub) Merge(ctx context.Context, number int64, m MergeOptions) (string, error) {
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
	done, _, err := g.api.PullRequests.Merge(ctx, g.owner, g.name, int(number), strings.TrimSpace(message), &github.PullRequestOptions{
		CommitTitle: title, SHA: orElse(m.HeadSHA, pull.HeadSHA), MergeMethod: orElse(m.Method, "merge"),
	})
	if err != nil {
		return "", gitHubError(err, fmt.Sprintf("merge pull request #%d", number))
	}
	return done.GetSHA(), nil
}

// protected reads what the base wants before a merge, so that the user hears what is
// missing and not only "405". Rules may be read by everybody, the older kind of
// protection by admins only: what is not ours to read, GitHub itself still decides.
func (g *gitHub) protected(ctx context.Context, pull squad.PullRequest) error {
	want := protection{branch: pull.Base}
	rules, _, err := g.api.Repositories.ListRulesForBranch(ctx, g.owner, g.name, pull.Base, nil)
	if err != nil && !isForbidden(err) {
		return gitHubError(err, "read rules of "+pull.Base)
	}
	if rules != nil {
		for _, r := range rules.PullRequest {
			want.approvals = max(want.approvals, r.Parameters.RequiredApprovingReviewCount)
		}
		for _, r := range rules.RequiredStatusChecks {
			for _, c := range r.Parameters.RequiredStatusChecks {
				want.checks = append(want.checks, c.Context)
			}
		}
	}
	older, _, err := g.api.Repositories.GetBranchProtection(ctx, g.owner, g.name, pull.Base)
	if err != nil && !isForbidden(err) && !isNotProtected(err) {
		return gitHubError(err, "read protection of "+pull.Base)
	}
	if need := older.GetRequiredPullRequestReviews(); need != nil {
		want.approvals = max(want.approvals, need.RequiredApprovingReviewCount)
	}
	if need := older.GetRequiredStatusChecks(); need != nil && need.Contexts != nil {
		want.checks = append(want.checks, *need.Contexts...)
	}
	if want.approvals == 0 && len(want.checks) == 0 {
		return nil
	}
	reviews, err := g.reviews(ctx, pull.Number)
	if err != nil {
		return err
	}
	approvals := 0
	for _, state := range verdicts(reviews) {
		if state == "APPROVED" {
			approvals++
		}
	}
	checks, err := g.Checks(ctx, pull.HeadSHA)
	if err != nil {
		return err
	}
	return want.refuse(approvals, checks)
}

func (g *gitHub) DeleteBranch(ctx context.Context, branch string) error {
	_, err := g.api.Git.DeleteRef(ctx, g.owner, g.name, "heads/"+branch)
	if status(err) == http.StatusNotFound || status(err) == http.StatusUnprocessableEntity && strings.Contains(err.Error(), "does not exist") {
		return nil
	}
	return gitHubError(err, "delete branch "+branch)
}

func (g *gitHub) Diff(ctx context.Context, number int64) (string, error) {
	text, _, err := g.api.PullRequests.GetRaw(ctx, g.owner, g.name, int(number), github.RawOptions{Type: github.Diff})
	return text, gitHubError(err, fmt.Sprintf("read diff of pull request #%d", number))
}

func fromGitHub(pr *github.PullRequest) squad.PullRequest {
	p := squad.PullRequest{
		Number: int64(pr.GetNumber()), URL: pr.GetHTMLURL(), Title: pr.GetTitle(), Body: pr.GetBody(), State: squad.PullOpen, Draft: pr.GetDraft(),
		Head: pr.GetHead().GetRef(), Base: pr.GetBase().GetRef(), HeadSHA: pr.GetHead().GetSHA(), Mergeable: "unknown", Checks: "none", Review: "none",
		Author: pr.GetUser().GetLogin(), MergedAt: pr.GetMergedAt().Time,
	}
	for _, u := range pr.RequestedReviewers {
		p.Reviewers = append(p.Reviewers, u.GetLogin())
	}
	for _, t := range pr.RequestedTeams {
		p.Reviewers = append(p.Reviewers, "team:"+t.GetSlug())
	}
	for _, l := range pr.Labels {
		p.Labels = append(p.Labels, l.GetName())
	}
	switch state := pr.GetMergeableState(); {
	case pr.GetMerged() || !pr.GetMergedAt().IsZero():
		p.State, p.MergeSHA = squad.PullMerged, pr.GetMergeCommitSHA()
	case pr.GetState() == "closed":
		p.State = squad.PullClosed
	case pr.Mergeable != nil && !*pr.Mergeable:
		p.Mergeable = "conflict"
	case p.Draft || state == "blocked" || state == "behind":
		p.Mergeable = "blocked"
	case pr.Mergeable != nil:
		p.Mergeable = "clean"
	}
	return p
}
