package forge

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"

	squad "agentsquad"
)

// gitHub is one repository on github.com or a GitHub Enterprise server.
type gitHub struct {
	api         *github.Client
	hasToken    bool
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
	if base := gitHubAPI(repo); base != "" {
		base += "/"
		opts = append(opts, github.WithURLs(&base, &base))
	}
	api, err := github.NewClient(opts...)
	if err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "the API address %q of %s cannot be used", repo.APIURL, repo.Name)
	}
	return &gitHub{api: api, hasToken: token != "", owner: owner, name: name}, nil
}

// gitHubAPI is the address of the API that serves a repository, without a slash at
// the end, "" for github.com's. Where only the repository's own address is known,
// the rules of GitHub Enterprise tell the API's.
func gitHubAPI(repo squad.Repository) string {
	u, err := url.Parse(orElse(repo.APIURL, repo.URL))
	if err != nil || u.Host == "" {
		return ""
	}
	host := strings.ToLower(u.Host)
	switch {
	case repo.APIURL == "" && (host == "github.com" || host == "www.github.com"):
		return ""
	case repo.APIURL == "" && strings.HasSuffix(host, ".ghe.com"):
		return u.Scheme + "://api." + host
	case repo.APIURL == "":
		return u.Scheme + "://" + host + "/api/v3"
	case strings.HasPrefix(host, "api.") || strings.Contains(u.Path, "/api/"):
		return strings.TrimRight(repo.APIURL, "/")
	}
	return strings.TrimRight(repo.APIURL, "/") + "/api/v3"
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
		FullName: r.GetFullName(), CloneURL: r.GetCloneURL(), DefaultBranch: r.GetDefaultBranch(), Private: r.GetPrivate(), Empty: r.GetSize() == 0,
		RateRemaining: resp.Rate.Remaining, RateReset: resp.Rate.Reset.Time,
	}
	if resp.Rate.Limit == 0 { // an Enterprise server may have none
		info.RateRemaining = -1
	}
	if info.Empty { // or smaller than a kilobyte
		branches, err := g.Branches(ctx)
		info.Empty = err == nil && len(branches) == 0
	}
	scopes, classic := resp.Header["X-Oauth-Scopes"]
	switch {
	case r.GetArchived():
		info.Missing = []string{"a repository that is not archived"}
	case !g.hasToken:
		info.Missing = []string{"a token"}
	case classic && !hasScope(scopes, "repo") && (r.GetPrivate() || !hasScope(scopes, "public_repo")):
		info.Missing = []string{"token scope repo"}
	case r.Permissions != nil && !r.Permissions.GetPush():
		info.Missing = []string{"write access to " + r.GetFullName()}
	default:
		return info, g.probe(ctx, &info)
	}
	return info, nil
}

func hasScope(header []string, want string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(header, ","), ","), func(s string) bool { return strings.TrimSpace(s) == want })
}

const noCommit = "0000000000000000000000000000000000000000"

// probe finds permissions that the token lacks. A fine-grained token does not list
// its own, but GitHub looks at them before it looks at the call: each of these is
// refused as senseless, and changes nothing, where the permission is there.
func (g *gitHub) probe(ctx context.Context, info *Info) error {
	branch, title := info.DefaultBranch, "probe"
	tries := []struct {
		missing string
		call    func() error
	}{
		{"Contents: read and write", func() error {
			_, _, err := g.api.Git.CreateRef(ctx, g.owner, g.name, github.CreateRef{Ref: "refs/heads/" + branch, SHA: noCommit})
			return err
		}},
		{"Pull requests: read and write", func() error {
			_, _, err := g.api.PullRequests.Create(ctx, g.owner, g.name, github.CreatePullRequest{Title: &title, Head: branch, Base: branch})
			return err
		}},
		{"Commit statuses: read and write", func() error {
			state := "pending"
			_, _, err := g.api.Repositories.CreateStatus(ctx, g.owner, g.name, noCommit, github.RepoStatus{State: &state, Context: &title})
			return err
		}},
		{"Checks: read", func() error {
			_, _, err := g.api.Checks.ListCheckRunsForRef(ctx, g.owner, g.name, branch, &github.ListCheckRunsOptions{ListOptions: github.ListOptions{PerPage: 1}})
			return err
		}},
	}
	for _, try := range tries {
		err := try.call()
		if isForbidden(err) {
			info.Missing = append(info.Missing, try.missing)
		} else if status(err) == 0 && err != nil {
			return gitHubError(err, "read permissions")
		}
	}
	return nil
}

func (g *gitHub) Branches(ctx context.Context) ([]string, error) {
	list, err := pages(func(page int) ([]*github.Branch, bool, error) {
		some, resp, err := g.api.Repositories.ListBranches(ctx, g.owner, g.name, &github.BranchListOptions{ListOptions: onPage(page)})
		return some, moreOf(resp), gitHubError(err, "list branches")
	})
	var names []string
	for _, b := range list {
		names = append(names, b.GetName())
	}
	return names, err
}

func onPage(page int) github.ListOptions { return github.ListOptions{Page: page, PerPage: 100} }

func moreOf(resp *github.Response) bool { return resp != nil && resp.NextPage > 0 }

// dress adds reviewers and labels. One that the forge refuses (a reviewer who left,
// the author itself) does not undo the pull request.
func (g *gitHub) dress(ctx context.Context, pr *github.PullRequest, reviewers, labels []string) (squad.PullRequest, error) {
	number := pr.GetNumber()
	reviewers = slices.DeleteFunc(slices.Clone(reviewers), func(r string) bool { return strings.EqualFold(r, pr.GetUser().GetLogin()) })
	err := inOneOrEach(reviewers, func(names []string) (bool, error) {
		var r github.ReviewersRequest
		for _, name := range names {
			if team, ok := strings.CutPrefix(name, "team:"); ok {
				r.TeamReviewers = append(r.TeamReviewers, team)
			} else {
				r.Reviewers = append(r.Reviewers, name)
			}
		}
		_, _, err := g.api.PullRequests.RequestReviewers(ctx, g.owner, g.name, number, r)
		return isRefused(err), gitHubError(err, "ask for reviews")
	})
	if err != nil {
		return squad.PullRequest{}, err
	}
	if len(labels) > 0 {
		if _, _, err := g.api.Issues.AddLabelsToIssue(ctx, g.owner, g.name, number, labels); err != nil && !isRefused(err) {
			return squad.PullRequest{}, gitHubError(err, "add labels")
		}
	}
	return g.Pull(ctx, int64(number))
}
