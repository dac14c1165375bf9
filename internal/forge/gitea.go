package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	squad "agentsquad"
)

// giteaForge is one repository on a Gitea server.
type giteaForge struct {
	base, token string
	http        *http.Client
	owner, name string
}

func newGitea(repo squad.Repository, token string, transport http.RoundTripper) (Forge, error) {
	owner, name, err := ownerAndName(repo.Name)
	if err != nil {
		return nil, err
	}
	base := repo.APIURL
	if base == "" { // two names below the server, which itself may stand below a path
		base = path.Dir(path.Dir(strings.TrimRight(repo.URL, "/")))
		base = strings.Replace(base, ":/", "://", 1) // path.Dir takes one
	}
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/api/v1")
	if base == "" || base == "." {
		return nil, squad.Invalid("url", "give the address of %s on its Gitea server", repo.Name)
	}
	g := &giteaForge{base: base, token: token, http: &http.Client{Timeout: 60 * time.Second, Transport: transport}, owner: owner, name: name}
	if _, err := g.client(context.Background()); err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "the address %q of %s cannot be used", base, repo.Name)
	}
	return g, nil
}

// as is a client bound to the context of one call: the SDK keeps the context in the
// client, so calls that share one would end with each other. Making one costs nothing.
func (g *giteaForge) as(ctx context.Context) *gitea.Client {
	c, _ := g.client(ctx) // was made before with the same options
	return c
}

func (g *giteaForge) client(ctx context.Context) (*gitea.Client, error) {
	opts := []gitea.ClientOption{
		gitea.SetContext(ctx), gitea.SetHTTPClient(g.http),
		gitea.SetGiteaVersion(""), // saves a request for each client; we use nothing that depends on it
	}
	if g.token != "" {
		opts = append(opts, gitea.SetToken(g.token))
	}
	return gitea.NewClient(g.base, opts...)
}

// ask calls the API where the SDK cannot: it drops the reason of a refused merge and
// reads one page of statuses only.
//
// total, where not nil, is filled with the length of the whole list.
func (g *giteaForge) ask(ctx context.Context, method, path string, in, out any, total ...*int) (int, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, g.base+"/api/v1/repos/"+g.owner+"/"+g.name+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if g.token != "" {
		req.Header.Set("Authorization", "token "+g.token)
	}
	resp, err := g.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return resp.StatusCode, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		var refusal struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(text, &refusal) // else the status has to do
		return resp.StatusCode, errors.New(orElse(refusal.Message, resp.Status))
	}
	for _, n := range total {
		*n, _ = strconv.Atoi(resp.Header.Get("X-Total-Count"))
	}
	if out != nil {
		err = json.Unmarshal(text, out)
	}
	return resp.StatusCode, err
}

func (g *giteaForge) Info(ctx context.Context) (Info, error) {
	r, resp, err := g.as(ctx).GetRepo(g.owner, g.name)
	if err != nil {
		return Info{}, giteaError(resp, err, "read repository "+g.owner+"/"+g.name)
	}
	info := Info{
		FullName: r.FullName, CloneURL: r.CloneURL, DefaultBranch: r.DefaultBranch, Private: r.Private, Empty: r.Empty, RateRemaining: -1,
	}
	if info.Empty { // what Gitea keeps of a repository follows a first push by a moment; git itself does not
		refs, resp, err := g.as(ctx).GetRepoRefs(g.owner, g.name, "heads")
		if err != nil && (resp == nil || resp.StatusCode != http.StatusNotFound) {
			return Info{}, giteaError(resp, err, "read branches of "+g.owner+"/"+g.name)
		}
		info.Empty = len(refs) == 0
	}
	if r.Permissions != nil && !r.Permissions.Push {
		info.Missing = append(info.Missing, "write access to "+r.FullName)
	}
	return info, g.probe(ctx, &info)
}

var scopesForm = regexp.MustCompile(`required=\[([a-z:, ]+)\]`)

// probe finds scopes that the token lacks. Gitea does not list them, but names the
// one that a call misses before it looks at the call: each of these is refused, and
// changes nothing, whatever the scopes are.
func (g *giteaForge) probe(ctx context.Context, info *Info) error {
	tries := map[string]any{
		"/pulls":             map[string]string{"head": info.DefaultBranch, "base": info.DefaultBranch, "title": "probe"},
		"/issues/0/comments": map[string]string{"body": "probe"},
	}
	for _, path := range []string{"/pulls", "/issues/0/comments"} {
		status, err := g.ask(ctx, http.MethodPost, path, tries[path], nil)
		if status == 0 {
			return giteaError(nil, err, "read permissions")
		}
		if status != http.StatusForbidden || err == nil {
			continue
		}
		if m := scopesForm.FindStringSubmatch(err.Error()); m != nil {
			info.Missing = append(info.Missing, "token scope "+strings.TrimSpace(m[1]))
		}
	}
	return nil
}

func (g *giteaForge) Branches(ctx context.Context) ([]string, error) {
	list, err := pages(func(page int) ([]*gitea.Branch, bool, error) {
		some, resp, err := g.as(ctx).ListRepoBranches(g.owner, g.name, gitea.ListRepoBranchesOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: giteaPage}})
		return some, more(resp), giteaError(resp, err, "list branches")
	})
	var names []string
	for _, b := range list {
		names = append(names, b.Name)
	}
	return names, err
}

// giteaPage is the largest page that a Gitea gives unless told otherwise.
const giteaPage = 50

// more says whether Gitea has another page.
func more(resp *gitea.Response) bool { return resp != nil && resp.NextPage > 0 }

// maxPages bounds a list, however long it is there.
const maxPages = 40

// pages reads a list that a forge gives in pieces.
func pages[T any](read func(page int) (some []T, more bool, err error)) ([]T, error) {
	var all []T
	for page := 1; page <= maxPages; page++ {
		some, more, err := read(page)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); !more {
			break
		}
	}
	return all, nil
}

// dress adds reviewers and labels. One that the forge refuses (a reviewer who left,
// the author itself) does not undo the pull request.
func (g *giteaForge) dress(ctx context.Context, pr *gitea.PullRequest, reviewers, labels []string) (squad.PullRequest, error) {
	reviewers = slices.DeleteFunc(slices.Clone(reviewers), func(r string) bool { return pr.Poster != nil && strings.EqualFold(r, pr.Poster.UserName) })
	err := inOneOrEach(reviewers, func(names []string) (bool, error) {
		ask := gitea.PullReviewRequestOptions{}
		for _, name := range names {
			if team, ok := strings.CutPrefix(name, "team:"); ok {
				ask.TeamReviewers = append(ask.TeamReviewers, team)
			} else {
				ask.Reviewers = append(ask.Reviewers, name)
			}
		}
		resp, err := g.as(ctx).CreateReviewRequests(g.owner, g.name, pr.Index, ask)
		return giteaRefused(resp), giteaError(resp, err, "ask for reviews")
	})
	if err != nil {
		return squad.PullRequest{}, err
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

// inOneOrEach does something for all names at once and, where that is refused, for
// each alone: a forge that refuses one of them refuses all.
func inOneOrEach(names []string, do func(names []string) (refused bool, err error)) error {
	if len(names) == 0 {
		return nil
	}
	refused, err := do(names)
	if err == nil || !refused {
		return err
	}
	for i := range names {
		if len(names) == 1 {
			break
		}
		if refused, err := do(names[i : i+1]); err != nil && !refused {
			return err
		}
	}
	return nil
}

// labelIDs finds labels by name and makes those that are not there: Gitea, unlike
// GitHub, takes numbers.
func (g *giteaForge) labelIDs(ctx context.Context, names []string) ([]int64, error) {
	known, err := pages(func(page int) ([]*gitea.Label, bool, error) {
		some, resp, err := g.as(ctx).ListRepoLabels(g.owner, g.name, gitea.ListLabelsOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: giteaPage}})
		return some, more(resp), giteaError(resp, err, "list labels")
	})
	if err != nil {
		return nil, err
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

func giteaRefused(resp *gitea.Response) bool {
	return resp != nil && resp.Response != nil && slices.Contains([]int{http.StatusUnprocessableEntity, http.StatusNotFound, http.StatusForbidden}, resp.StatusCode)
}

// giteaError translates an answer of Gitea into ours. nil stays nil.
func giteaError(resp *gitea.Response, err error, doing string) error {
	if err == nil {
		return nil
	}
	if resp == nil || resp.Response == nil {
		return remoteError(0, err, "Gitea", doing)
	}
	return remoteError(resp.StatusCode, err, "Gitea", doing)
}

// remoteError is what a forge answered with a status, or that it did not answer.
func remoteError(status int, err error, forge, doing string) error {
	var ours *squad.Error
	if errors.As(err, &ours) { // refused by ourselves, before it was sent
		return err
	}
	if status == 0 {
		return squad.Wrap(squad.CodeProvider, err, "%s: %s did not answer", doing, forge)
	}
	return squad.Wrap(codeOfStatus(status, err.Error()), err, "%s: %s says %q", doing, forge, truncate(err.Error(), 300))
}
