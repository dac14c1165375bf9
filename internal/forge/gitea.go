package forge

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	squad "agentsquad"
)

// giteaForge is one repository on a Gitea server.
type giteaForge struct {
	api         *gitea.Client
	owner, name string
}

// draftPrefix is how Gitea marks a draft.
const draftPrefix = "WIP: "

func newGitea(ctx context.Context, repo squad.Repository, token string, transport http.RoundTripper) (Forge, error) {
	owner, name, err := ownerAndName(repo.Name)
	if err != nil {
		return nil, err
	}
	base := orElse(repo.APIURL, strings.TrimSuffix(strings.TrimSuffix(repo.URL, ".git"), "/"+repo.Name))
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/api/v1")
	opts := []gitea.ClientOption{
		gitea.SetContext(ctx), gitea.SetHTTPClient(&http.Client{Timeout: 60 * time.Second, Transport: transport}),
		gitea.SetGiteaVersion(""), // saves a request for each client; we use nothing that depends on it
	}
	if token != "" {
		opts = append(opts, gitea.SetToken(token))
	}
	api, err := gitea.NewClient(base, opts...)
	if err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "the address %q of %s cannot be used", base, repo.Name)
	}
	return &giteaForge{api: api, owner: owner, name: name}, nil
}

// as binds the client to the context of one call. The SDK keeps the context in the
// client, and a client serves one call at a time here: [Service.For] makes one.
func (g *giteaForge) as(ctx context.Context) *gitea.Client {
	g.api.SetContext(ctx)
	return g.api
}

func (g *giteaForge) Info(ctx context.Context) (Info, error) {
	r, resp, err := g.as(ctx).GetRepo(g.owner, g.name)
	if err != nil {
		return Info{}, giteaError(resp, err, "read repository "+g.owner+"/"+g.name)
	}
	info := Info{FullName: r.FullName, DefaultBranch: r.DefaultBranch, Private: r.Private, Empty: r.Empty, RateRemaining: -1}
	if r.Permissions != nil && !r.Permissions.Push {
		info.Missing = append(info.Missing, "repository: read and write")
	}
	return info, nil
}

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

func (g *giteaForge) dress(ctx context.Context, pr *gitea.PullRequest, reviewers, labels []string) (squad.PullRequest, error) {
	reviewers = slices.DeleteFunc(slices.Clone(reviewers), func(r string) bool { return pr.Poster != nil && strings.EqualFold(r, pr.Poster.UserName) })
	if len(reviewers) > 0 {
		resp, err := g.as(ctx).CreateReviewRequests(g.owner, g.name, pr.Index, gitea.PullReviewRequestOptions{Reviewers: reviewers})
		if err != nil && !giteaRefused(resp) {
			return squad.PullRequest{}, giteaError(resp, err, "ask for reviews")
		}
	}
	if len(labels) > 0 {
		ids, err := g.labelIDs(ctx, labels)
		if err != nil {
			return squad.PullRequest{}, err
		}
		if _, resp, err := g.as(ctx).AddIssueLabels(g.owner, g.name, pr.Index, gitea.IssueLabelsOption{Labels: ids}); err != nil && !giteaRefused(resp) {
			return squad.PullRequest{}, giteaError(resp, err, "add labels")
		}
	}
	return g.Pull(ctx, pr.Index)
}

// labelIDs finds labels by name and makes those that are not there: Gitea, unlike
// GitHub, takes numbers.
func (g *giteaForge) labelIDs(ctx context.Context, names []string) ([]int64, error) {
	known, resp, err := g.as(ctx).ListRepoLabels(g.owner, g.name, gitea.ListLabelsOptions{ListOptions: gitea.ListOptions{PageSize: 100}})
	if err != nil {
		return nil, giteaError(resp, err, "list labels")
	}
	var ids []int64
	for _, name := range names {
		i := slices.IndexFunc(known, func(l *gitea.Label) bool { return strings.EqualFold(l.Name, name) })
		if i >= 0 {
			ids = append(ids, known[i].ID)
			continue
		}
		made, resp, err := g.as(ctx).CreateLabel(g.owner, g.name, gitea.CreateLabelOption{Name: name, Color: "#6b7280"})
		if err != nil {
			return nil, giteaError(resp, err, "make label "+name)
		}
		ids = append(ids, made.ID)
	}
	return ids, nil
}

func (g *giteaForge) Pull(ctx context.Context, number int64) (squad.PullRequest, error) {
	pr, resp, err := g.as(ctx).GetPullRequest(g.owner, g.name, number)
	if err != nil {
		return squad.PullRequest{}, giteaError(resp, err, fmt.Sprintf("read pull request #%d", number))
	}
	pull := fromGitea(pr)
	if pull.State != squad.PullOpen {
		return pull, nil
	}
	checks, err := g.Checks(ctx, pull.HeadSHA)
	if err != nil {
		return pull, err
	}
	pull.Checks = Summary(checks)
	reviews, resp, err := g.as(ctx).ListPullReviews(g.owner, g.name, number, gitea.ListPullReviewsOptions{})
	if err != nil {
		return pull, giteaError(resp, err, "read reviews")
	}
	pull.Review = giteaReview(reviews, pull.Reviewers)
	return pull, nil
}

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
	list, resp, err := g.as(ctx).ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
		State: state, ListOptions: gitea.ListOptions{PageSize: clampPage(f.Limit)},
	})
	if err != nil {
		return nil, giteaError(resp, err, "list pull requests")
	}
	var out []squad.PullRequest
	for _, pr := range list {
		if p := fromGitea(pr); (f.State == "" || p.State == f.State) && (f.Head == "" || p.Head == f.Head) {
			out = append(out, p)
		}
	}
	return out, nil
}

func (g *giteaForge) UpdatePull(ctx context.Context, number int64, u PullUpdate) (squad.PullRequest, error) {
	var edit gitea.EditPullRequestOption
	edit.Body = u.Body
	if u.Title != nil {
		edit.Title = *u.Title
	}
	if u.Draft != nil {
		title := edit.Title
		if title == "" {
			old, err := g.Pull(ctx, number)
			if err != nil {
				return old, err
			}
			title = old.Title
		}
		edit.Title = strings.TrimPrefix(title, draftPrefix)
		if *u.Draft {
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
	title, message, _ := strings.Cut(m.Message, "\n")
	_, resp, err := g.as(ctx).MergePullRequest(g.owner, g.name, number, gitea.MergePullRequestOption{
		Style: gitea.MergeStyle(orElse(m.Method, "merge")), Title: title, Message: strings.TrimSpace(message), HeadCommitId: orElse(m.HeadSHA, pull.HeadSHA),
	})
	if err != nil {
		return "", giteaError(resp, err, fmt.Sprintf("merge pull request #%d", number))
	}
	done, err := g.Pull(ctx, number)
	if err == nil && done.State != squad.PullMerged { // the SDK answers a refusal without an error
		err = squad.Errorf(squad.CodeConflict, "Gitea did not merge pull request #%d: it is %s, checks %s", number, done.Mergeable, done.Checks)
	}
	return done.MergeSHA, err
}

func (g *giteaForge) DeleteBranch(ctx context.Context, branch string) error {
	_, resp, err := g.as(ctx).DeleteRepoBranch(g.owner, g.name, branch)
	if err != nil && resp != nil && resp.StatusCode == http.StatusNotFound {
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
	case pr.Mergeable && p.Draft:
		p.Mergeable = "blocked"
	case pr.Mergeable:
		p.Mergeable = "clean"
	}
	return p
}

func giteaRefused(resp *gitea.Response) bool {
	return resp != nil && (resp.StatusCode == http.StatusUnprocessableEntity || resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusForbidden)
}

// giteaError translates an answer of Gitea into ours. nil stays nil.
func giteaError(resp *gitea.Response, err error, doing string) error {
	if err == nil {
		return nil
	}
	if resp == nil || resp.Response == nil {
		return squad.Wrap(squad.CodeProvider, err, "%s: Gitea did not answer", doing)
	}
	return squad.Wrap(codeOfStatus(resp.StatusCode, err.Error()), err, "%s: Gitea says %q", doing, truncate(err.Error(), 300))
}
