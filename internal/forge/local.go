package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// local is the built-in forge: a bare repository on this machine's disk, with
// pull requests, remarks and checks in our own database. It does not write pull
// requests itself: what it returns, [Service] stores, as it does for the others.
type local struct {
	repo  squad.Repository
	dir   string
	git   *git.Runner
	store *store.Store
}

// LocalDir is where the local forge keeps a repository.
func LocalDir(reposDir, repositoryID string) string {
	return filepath.Join(reposDir, repositoryID+".git")
}

func (l *local) Info(ctx context.Context) (Info, error) {
	info := Info{FullName: l.repo.Name, DefaultBranch: l.repo.DefaultBranch, Private: true, RateRemaining: -1}
	branches, err := l.Branches(ctx)
	if err != nil {
		return info, err
	}
	info.Empty = len(branches) == 0
	return info, nil
}

func (l *local) Branches(ctx context.Context) ([]string, error) {
	return listBranches(ctx, l.git, l.dir)
}

func (l *local) CreatePull(ctx context.Context, p NewPull) (squad.PullRequest, error) {
	if p.Head == p.Base {
		return squad.PullRequest{}, squad.Errorf(squad.CodeRule, "a pull request needs two different branches, not %s twice", p.Head)
	}
	pull := squad.PullRequest{
		RepositoryID: l.repo.ID, Title: p.Title, Body: p.Body, State: squad.PullOpen, Draft: p.Draft,
		Head: p.Head, Base: p.Base, Reviewers: p.Reviewers, Labels: p.Labels, Review: "none",
	}
	if old, err := l.store.PullRequestByBranch(ctx, l.repo.ID, p.Head); err == nil && old.State == squad.PullOpen && old.Base == p.Base {
		return old, squad.Errorf(squad.CodeConflict, "pull request #%d is open for %s already", old.Number, p.Head)
	}
	return pull, l.observe(ctx, &pull)
}

func (l *local) Pull(ctx context.Context, number int64) (squad.PullRequest, error) {
	pull, err := l.store.PullRequestByNumber(ctx, l.repo.ID, number)
	if err != nil {
		return squad.PullRequest{}, err
	}
	if pull.State != squad.PullOpen {
		return pull, nil
	}
	return pull, l.observe(ctx, &pull)
}

// observe fills in what git and the checks say now.
func (l *local) observe(ctx context.Context, pull *squad.PullRequest) error {
	head, err := l.git.Resolve(ctx, l.dir, "refs/heads/"+pull.Head)
	if err != nil {
		return squad.Wrap(squad.CodeNotFound, err, "branch %s is not in %s", pull.Head, l.repo.Name)
	}
	base, err := l.git.Resolve(ctx, l.dir, "refs/heads/"+pull.Base)
	if err != nil {
		return squad.Wrap(squad.CodeNotFound, err, "branch %s is not in %s", pull.Base, l.repo.Name)
	}
	if pull.HeadSHA != "" && pull.HeadSHA != head && pull.Review != "none" {
		pull.Review = "pending" // a verdict was on other commits
	}
	pull.HeadSHA, pull.Mergeable = head, "clean"
	scratch, err := git.NewScratch(l.dir)
	if err != nil {
		return fmt.Errorf("make scratch objects: %w", err)
	}
	defer scratch.Close()
	merged, err := git.MergeTree(ctx, l.git, l.dir, scratch.Env(), []git.Pair{{Ours: base, Theirs: head}})
	if err != nil {
		return fmt.Errorf("try merge of %s: %w", pull.Head, err)
	}
	checks, err := l.Checks(ctx, head)
	if err != nil {
		return err
	}
	pull.Checks = Summary(checks)
	switch {
	case !merged[0].Clean:
		pull.Mergeable = "conflict"
	case pull.Draft || pull.Checks == "failure" || pull.Review == "changes_requested":
		pull.Mergeable = "blocked"
	}
	return nil
}

func (l *local) Pulls(ctx context.Context, f PullFilter) ([]squad.PullRequest, error) {
	if f.State == "" {
		f.State = squad.PullOpen
	}
	return l.store.PullRequests(ctx, store.PullRequestFilter{
		RepositoryID: l.repo.ID, Head: f.Head, States: []squad.PullState{f.State}, Limit: orLimit(f.Limit), Newest: true,
	})
}

func (l *local) UpdatePull(ctx context.Context, number int64, u PullUpdate) (squad.PullRequest, error) {
	pull, err := l.Pull(ctx, number)
	if err != nil {
		return pull, err
	}
	if u.Title != nil {
		pull.Title = *u.Title
	}
	if u.Body != nil {
		pull.Body = *u.Body
	}
	if u.Draft != nil && pull.State == squad.PullOpen {
		pull.Draft = *u.Draft
		if err := l.observe(ctx, &pull); err != nil {
			return pull, err
		}
	}
	if u.Closed != nil {
		switch {
		case pull.State == squad.PullMerged:
			return pull, squad.Errorf(squad.CodeConflict, "pull request #%d is merged", number)
		case *u.Closed:
			pull.State = squad.PullClosed
		default:
			pull.State = squad.PullOpen
		}
	}
	pull.Reviewers = union(pull.Reviewers, u.Reviewers)
	pull.Labels = union(pull.Labels, u.Labels)
	return pull, nil
}

func (l *local) Merge(ctx context.Context, number int64, m MergeOptions) (string, error) {
	pull, err := l.Pull(ctx, number)
	if err != nil {
		return "", err
	}
	if pull.State == squad.PullMerged {
		return pull.MergeSHA, nil
	}
	if err := mayMerge(pull, m); err != nil {
		return "", err
	}
	if pull.Checks == "failure" {
		return "", squad.Errorf(squad.CodeRule, "a check of %.10s failed", pull.HeadSHA)
	}
	if m.Message == "" {
		m.Message = fmt.Sprintf("%s (#%d)", pull.Title, number)
	}
	sha, err := git.Merge(ctx, l.git, l.dir, git.MergeRequest{
		Into: pull.Base, Head: "refs/heads/" + pull.Head, Method: git.MergeMethod(m.Method), Message: m.Message,
		Author: git.Identity{Name: m.Author, Email: m.AuthorMail}, ExpectHead: m.HeadSHA,
	})
	if err == nil || squad.CodeOf(err) != squad.CodeConflict {
		return sha, err
	}
	// A crash between git and our row leaves the work merged and the row open:
	// merging again must then be a success and not a riddle.
	if tip, done := l.contains(ctx, pull); done {
		return tip, nil
	}
	return "", err
}

// contains says whether the base has everything of the head already, by whatever
// method it got there.
func (l *local) contains(ctx context.Context, pull squad.PullRequest) (tip string, done bool) {
	tip, err := l.git.Resolve(ctx, l.dir, "refs/heads/"+pull.Base)
	if err != nil {
		return "", false
	}
	if base, err := l.git.Line(ctx, l.dir, "merge-base", tip, pull.HeadSHA); err == nil && base == pull.HeadSHA {
		return tip, true
	}
	merged, err := git.MergeTree(ctx, l.git, l.dir, nil, []git.Pair{{Ours: tip, Theirs: pull.HeadSHA}})
	if err != nil || !merged[0].Clean {
		return "", false
	}
	tree, err := l.git.Line(ctx, l.dir, "rev-parse", "--verify", tip+"^{tree}")
	return tip, err == nil && tree == merged[0].Tree
}

func (l *local) DeleteBranch(ctx context.Context, branch string) error {
	if !git.ValidBranch(branch) || branch == l.repo.DefaultBranch {
		return squad.Errorf(squad.CodeRule, "branch %q cannot be deleted", branch)
	}
	ref := "refs/heads/" + branch
	sha, err := l.git.Resolve(ctx, l.dir, ref)
	if err != nil {
		return nil //nolint:nilerr // gone already is what was asked for
	}
	return git.DeleteRef(ctx, l.git, l.dir, ref, sha)
}

func (l *local) Diff(ctx context.Context, number int64) (string, error) {
	pull, err := l.store.PullRequestByNumber(ctx, l.repo.ID, number)
	if err != nil {
		return "", err
	}
	from, to := "refs/heads/"+pull.Base, pull.HeadSHA
	if pull.State == squad.PullMerged && pull.MergeSHA != "" {
		from = pull.MergeSHA + "^"
	}
	return diffText(ctx, l.git, l.dir, from, to)
}

func (l *local) Comments(ctx context.Context, number int64) ([]squad.ReviewComment, error) {
	pull, err := l.store.PullRequestByNumber(ctx, l.repo.ID, number)
	if err != nil {
		return nil, err
	}
	return l.store.ReviewComments(ctx, store.ReviewCommentFilter{PullID: pull.ID})
}

func (l *local) Comment(_ context.Context, _ int64, c squad.ReviewComment) (squad.ReviewComment, error) {
	if c.Body == "" && c.Verdict != "approve" {
		return c, squad.Invalid("body", "a remark needs text")
	}
	return c, nil
}

func (l *local) checksKey(sha string) string { return "checks:" + l.repo.ID + ":" + sha }

func (l *local) Checks(ctx context.Context, sha string) ([]Check, error) {
	return readChecks(ctx, l.store.Query, l.checksKey(sha))
}

func readChecks(ctx context.Context, q *store.Query, key string) ([]Check, error) {
	text, err := q.Setting(ctx, key)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var checks []Check
	if err := json.Unmarshal([]byte(text), &checks); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return checks, nil
}

func (l *local) SetCheck(ctx context.Context, sha string, c Check) error {
	if !git.ValidSHA(sha) {
		return squad.Invalid("sha", "%q is not a commit", sha)
	}
	return l.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, l.checksKey(sha)); err != nil {
			return err
		}
		checks, err := readChecks(ctx, tx.Query, l.checksKey(sha))
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(checks, func(old Check) bool { return old.Name == c.Name }); i >= 0 {
			checks[i] = c
		} else {
			checks = append(checks, c)
		}
		text, err := json.Marshal(checks)
		if err != nil {
			return fmt.Errorf("encode checks: %w", err)
		}
		return tx.SetSetting(ctx, l.checksKey(sha), string(text))
	})
}

var errNoIssues = squad.Errorf(squad.CodeRule, "the local forge has no issues: tasks are its issues")

func (l *local) CreateIssue(context.Context, string, string) (Issue, error) {
	return Issue{}, errNoIssues
}
func (l *local) Issue(context.Context, int64) (Issue, error)       { return Issue{}, errNoIssues }
func (l *local) CommentIssue(context.Context, int64, string) error { return errNoIssues }

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
