package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"

	squad "agentsquad"
)

// gitHub is one repository on github.com or a GitHub Enterprise server.
type gitHub struct {
	api         *github.Client
	owner, name string
}

func newGitHub(repo squad.Repository, token string, transport http.RoundTripper) (Forge, error) {
	owner, name, err := ownerAndName(repo.Name)
	if err != nil {
		return nil, err
	}
	opts := []github.ClientOptionsFunc{github.WithHTTPClient(&http.Client{Timeout: 60 * time.Second, Transport: transport})}
	if token != "" {
		opts = append(opts, github.WithAuthToken(token))
	}
	if repo.APIURL != "" {
		base := strings.TrimRight(repo.APIURL, "/") + "/"
		opts = append(opts, github.WithURLs(&base, &base))
	}
	api, err := github.NewClient(opts...)
	if err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "the API address %q of %s cannot be used", repo.APIURL, repo.Name)
	}
	return &gitHub{api: api, owner: owner, name: name}, nil
}

func ownerAndName(full string) (owner, name string, err error) {
	owner, name, ok := strings.Cut(full, "/")
	if !ok || owner == "" || name == "" || strings.ContainsAny(name, "/?#") {
		return "", "", squad.Invalid("name", "%q is not of the form owner/name", full)
	}
	return owner, name, nil
}

func (g *gitHub) Info(ctx context.Context) (Info, error) {
	r, resp, err := g.api.Repositories.Get(ctx, g.owner, g.name)
	if err != nil {
		return Info{}, gitHubError(err, "read repository "+g.owner+"/"+g.name)
	}
	info := Info{
		FullName: r.GetFullName(), DefaultBranch: r.GetDefaultBranch(), Private: r.GetPrivate(), Empty: r.GetSize() == 0,
		RateRemaining: resp.Rate.Remaining, RateReset: resp.Rate.Reset.Time,
	}
	if p := r.Permissions; p != nil && !p.GetPush() {
		info.Missing = append(info.Missing, "Contents: read and write")
	}
	// A fine-grained token does not list its own permissions: ask for what we need
	// and see what is refused. Neither call changes anything.
	if _, _, err := g.api.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{ListOptions: github.ListOptions{PerPage: 1}}); isForbidden(err) {
		info.Missing = append(info.Missing, "Pull requests: read and write")
	}
	if _, _, err := g.api.Repositories.GetCombinedStatus(ctx, g.owner, g.name, r.GetDefaultBranch(), &github.ListOptions{PerPage: 1}); isForbidden(err) {
		info.Missing = append(info.Missing, "Commit statuses: read")
	}
	return info, nil
}

func (g *gitHub) CreatePull(ctx context.Context, p NewPull) (squad.PullRequest, error) {
	made, _, err := g.api.PullRequests.Create(ctx, g.owner, g.name, github.CreatePullRequest{
		Title: &p.Title, Body: &p.Body, Head: p.Head, Base: p.Base, Draft: &p.Draft,
	})
	if err != nil {
		return squad.PullRequest{}, gitHubError(err, "open pull request for "+p.Head)
	}
	return g.dress(ctx, made, p.Reviewers, p.Labels)
}

// dress adds reviewers and labels. One that the forge refuses (a reviewer who left,
// the author itself) does not undo the pull request.
func (g *gitHub) dress(ctx context.Context, pr *github.PullRequest, reviewers, labels []string) (squad.PullRequest, error) {
	number := pr.GetNumber()
	reviewers = slices.DeleteFunc(slices.Clone(reviewers), func(r string) bool { return strings.EqualFold(r, pr.GetUser().GetLogin()) })
	if len(reviewers) > 0 {
		var r github.ReviewersRequest
		for _, name := range reviewers {
			if team, ok := strings.CutPrefix(name, "team:"); ok {
				r.TeamReviewers = append(r.TeamReviewers, team)
			} else {
				r.Reviewers = append(r.Reviewers, name)
			}
		}
		if _, _, err := g.api.PullRequests.RequestReviewers(ctx, g.owner, g.name, number, r); err != nil && !isRefused(err) {
			return squad.PullRequest{}, gitHubError(err, "ask for reviews")
		}
	}
	if len(labels) > 0 {
		if _, _, err := g.api.Issues.AddLabelsToIssue(ctx, g.owner, g.name, number, labels); err != nil && !isRefused(err) {
			return squad.PullRequest{}, gitHubError(err, "add labels")
		}
	}
	return g.Pull(ctx, int64(number))
}

func (g *gitHub) Pull(ctx context.Context, number int64) (squad.PullRequest, error) {
	pr, _, err := g.api.PullRequests.Get(ctx, g.owner, g.name, int(number))
	if err != nil {
		return squad.PullRequest{}, gitHubError(err, fmt.Sprintf("read pull request #%d", number))
	}
	pull := fromGitHub(pr)
	if pull.State != squad.PullOpen {
		return pull, nil
	}
	checks, err := g.Checks(ctx, pull.HeadSHA)
	if err != nil {
		return pull, err
	}
	pull.Checks = Summary(checks)
	reviews, _, err := g.api.PullRequests.ListReviews(ctx, g.owner, g.name, int(number), &github.ListOptions{PerPage: 100})
	if err != nil {
		return pull, gitHubError(err, "read reviews")
	}
	pull.Review = gitHubReview(reviews, pull.Reviewers)
	return pull, nil
}

// gitHubReview folds the last verdict of each reviewer into one word.
func gitHubReview(reviews []*github.PullRequestReview, asked []string) string {
	last := map[string]string{}
	for _, r := range reviews {
		switch state := r.GetState(); state {
		case "APPROVED", "CHANGES_REQUESTED", "DISMISSED":
			last[r.GetUser().GetLogin()] = state
		}
	}
	word := "none"
	if len(asked) > 0 {
		word = "pending"
	}
	for _, state := range last {
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
	opts := &github.PullRequestListOptions{State: "open", ListOptions: github.ListOptions{PerPage: clampPage(f.Limit)}}
	if f.State == squad.PullMerged || f.State == squad.PullClosed {
		opts.State = "closed"
	}
	if f.Head != "" {
		opts.Head = g.owner + ":" + f.Head
	}
	list, _, err := g.api.PullRequests.List(ctx, g.owner, g.name, opts)
	if err != nil {
		return nil, gitHubError(err, "list pull requests")
	}
	var out []squad.PullRequest
	for _, pr := range list {
		if p := fromGitHub(pr); (f.State == "" || p.State == f.State) && (f.Head == "" || p.Head == f.Head) {
			out = append(out, p)
		}
	}
	return out, nil
}

func (g *gitHub) UpdatePull(ctx context.Context, number int64, u PullUpdate) (squad.PullRequest, error) {
	if u.Draft != nil {
		return squad.PullRequest{}, squad.Errorf(squad.CodeRule, "GitHub's REST API cannot change a draft: use its page")
	}
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
	return g.dress(ctx, pr, u.Reviewers, u.Labels)
}

func (g *gitHub) Merge(ctx context.Context, number int64, m MergeOptions) (string, error) {
	pull, err := g.Pull(ctx, number)
	if err != nil {
		return "", err
	}
	if pull.State == squad.PullMerged {
		return pull.MergeSHA, nil
	}
	if err := g.protected(ctx, pull); err != nil {
		return "", err
	}
	title, message, _ := strings.Cut(m.Message, "\n")
	if m.HeadSHA == "" {
		m.HeadSHA = pull.HeadSHA
	}
	done, _, err := g.api.PullRequests.Merge(ctx, g.owner, g.name, int(number), strings.TrimSpace(message), &github.PullRequestOptions{
		CommitTitle: title, SHA: m.HeadSHA, MergeMethod: orElse(m.Method, "merge"),
	})
	if err != nil {
		return "", gitHubError(err, fmt.Sprintf("merge pull request #%d", number))
	}
	return done.GetSHA(), nil
}

// protected reads the base's protection before a merge, so that the user hears
// what is missing and not only "405".
func (g *gitHub) protected(ctx context.Context, pull squad.PullRequest) error {
	p, _, err := g.api.Repositories.GetBranchProtection(ctx, g.owner, g.name, pull.Base)
	if err != nil {
		return nil //nolint:nilerr // not protected, or not ours to read: GitHub itself still decides
	}
	var missing []string
	if need := p.GetRequiredPullRequestReviews(); need != nil && need.RequiredApprovingReviewCount > 0 && pull.Review != "approved" {
		missing = append(missing, fmt.Sprintf("%d approving review(s)", need.RequiredApprovingReviewCount))
	}
	if p.GetRequiredStatusChecks() != nil && pull.Checks != "success" {
		missing = append(missing, "required status checks (now: "+pull.Checks+")")
	}
	if len(missing) > 0 {
		return squad.Errorf(squad.CodeRule, "branch %s is protected and wants: %s", pull.Base, strings.Join(missing, ", "))
	}
	return nil
}

func (g *gitHub) DeleteBranch(ctx context.Context, branch string) error {
	_, err := g.api.Git.DeleteRef(ctx, g.owner, g.name, "heads/"+branch)
	if status(err) == http.StatusNotFound || status(err) == http.StatusUnprocessableEntity {
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
	for _, l := range pr.Labels {
		p.Labels = append(p.Labels, l.GetName())
	}
	switch {
	case pr.GetMerged() || !pr.GetMergedAt().IsZero():
		p.State, p.MergeSHA = squad.PullMerged, pr.GetMergeCommitSHA()
	case pr.GetState() == "closed":
		p.State = squad.PullClosed
	case pr.Mergeable != nil && !*pr.Mergeable:
		p.Mergeable = "conflict"
	case pr.GetMergeableState() == "blocked" || p.Draft:
		p.Mergeable = "blocked"
	case pr.Mergeable != nil:
		p.Mergeable = "clean"
	}
	return p
}

func clampPage(limit int) int {
	if limit <= 0 {
		return 50
	}
	return min(limit, 100)
}

// status is the HTTP status of an answer that refused, 0 for any other error.
func status(err error) int {
	var e *github.ErrorResponse
	if errors.As(err, &e) && e.Response != nil {
		return e.Response.StatusCode
	}
	return 0
}

func isForbidden(err error) bool {
	return status(err) == http.StatusForbidden || status(err) == http.StatusNotFound
}

// isRefused says that a small addition was refused while the rest is well.
func isRefused(err error) bool {
	s := status(err)
	return s == http.StatusUnprocessableEntity || s == http.StatusNotFound || s == http.StatusForbidden
}
