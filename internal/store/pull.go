package store

import (
	"context"
	"strconv"

	squad "agentsquad"
)

var pullRequests = newTable("pull request", "pull_requests", func(p *squad.PullRequest) []field {
	return []field{
		{name: "id", at: &p.ID},
		{name: "repository_id", at: &p.RepositoryID, fixed: true},
		{name: "task_id", at: ref{&p.TaskID}},
		{name: "number", at: &p.Number, fixed: true},
		{name: "url", at: &p.URL},
		{name: "title", at: &p.Title},
		{name: "body", at: &p.Body},
		{name: "state", at: wordOf(&p.State)},
		{name: "draft", at: &p.Draft},
		{name: "head", at: &p.Head},
		{name: "base", at: &p.Base},
		{name: "head_sha", at: &p.HeadSHA},
		{name: "merge_sha", at: &p.MergeSHA},
		{name: "mergeable", at: &p.Mergeable},
		{name: "checks", at: &p.Checks},
		{name: "review", at: &p.Review},
		{name: "author", at: &p.Author},
		{name: "labels", at: object{&p.Labels}},
		{name: "reviewers", at: object{&p.Reviewers}},
		{name: "created_at", at: moment{&p.CreatedAt}, fixed: true},
		{name: "updated_at", at: moment{&p.UpdatedAt}},
		{name: "merged_at", at: moment{&p.MergedAt}},
	}
})

// PullRequestFilter narrows a list of pull requests.
type PullRequestFilter struct {
	RepositoryID string
	TaskID       string
	SquadID      string
	Head         string
	Base         string
	States       []squad.PullState

	Limit  int
	After  string
	Newest bool
}

// PullRequest reads one pull request.
func (q *Query) PullRequest(ctx context.Context, id string) (squad.PullRequest, error) {
	return pullRequests.get(ctx, q, "id", id)
}

// PullRequestByBranch reads the pull request of a branch: the open one, else
// the newest.
func (q *Query) PullRequestByBranch(ctx context.Context, repositoryID, branch string) (squad.PullRequest, error) {
	w := &where{}
	w.text("repository_id", repositoryID)
	w.text("head", branch)
	w.order = "CASE WHEN state = 'open' THEN 0 ELSE 1 END, id DESC"
	return pullRequests.one(ctx, q, w, branch)
}

// PullRequestByNumber reads a pull request by its number in the repository.
func (q *Query) PullRequestByNumber(ctx context.Context, repositoryID string, number int64) (squad.PullRequest, error) {
	w := &where{}
	w.text("repository_id", repositoryID)
	w.add("number = ?", number)
	return pullRequests.one(ctx, q, w, strconv.FormatInt(number, 10))
}

// PullRequests lists pull requests.
func (q *Query) PullRequests(ctx context.Context, f PullRequestFilter) ([]squad.PullRequest, error) {
	w := &where{}
	w.eq("repository_id", f.RepositoryID)
	w.eq("task_id", f.TaskID)
	if f.SquadID != "" {
		w.add("repository_id IN (SELECT id FROM repositories WHERE squad_id = ?)", clean(f.SquadID))
	}
	w.eq("head", f.Head)
	w.eq("base", f.Base)
	in(w, "state", f.States)
	w.page("id", f.After, f.Limit, f.Newest)
	return pullRequests.list(ctx, q, w)
}

// CreatePullRequest writes a new pull request. A branch has at most one that is
// open: a second is CodeConflict.
func (tx *Tx) CreatePullRequest(ctx context.Context, p *squad.PullRequest) error {
	tx.stamp(&p.ID, &p.CreatedAt, &p.UpdatedAt)
	fillPull(p)
	return pullRequests.create(ctx, tx, p)
}

// UpdatePullRequest writes a changed pull request.
func (tx *Tx) UpdatePullRequest(ctx context.Context, p *squad.PullRequest) error {
	p.UpdatedAt = tx.Now
	fillPull(p)
	return pullRequests.change(ctx, tx, p)
}

// fillPull names what is not known yet.
func fillPull(p *squad.PullRequest) {
	if p.State == "" {
		p.State = squad.PullOpen
	}
	for _, f := range []struct {
		at   *string
		word string
	}{{&p.Mergeable, "unknown"}, {&p.Checks, "none"}, {&p.Review, "none"}} {
		if *f.at == "" {
			*f.at = f.word
		}
	}
}

// DeletePullRequest removes a pull request with its comments.
func (tx *Tx) DeletePullRequest(ctx context.Context, id string) error {
	return pullRequests.remove(ctx, tx, id)
}

var reviewComments = newTable("review comment", "review_comments", func(c *squad.ReviewComment) []field {
	return []field{
		{name: "id", at: &c.ID},
		{name: "pull_id", at: &c.PullID, fixed: true},
		{name: "remote_id", at: ref{&c.RemoteID}},
		{name: "author", at: &c.Author},
		{name: "path", at: &c.Path},
		{name: "line", at: &c.Line},
		{name: "side", at: &c.Side},
		{name: "verdict", at: &c.Verdict},
		{name: "body", at: &c.Body},
		{name: "created_at", at: moment{&c.CreatedAt}, fixed: true},
	}
})

// ReviewCommentFilter narrows a list of review comments.
type ReviewCommentFilter struct {
	PullID   string
	RemoteID string
	Author   string

	Limit  int
	After  string
	Newest bool
}

// ReviewComment reads one review comment.
func (q *Query) ReviewComment(ctx context.Context, id string) (squad.ReviewComment, error) {
	return reviewComments.get(ctx, q, "id", id)
}

// ReviewComments lists review comments.
func (q *Query) ReviewComments(ctx context.Context, f ReviewCommentFilter) ([]squad.ReviewComment, error) {
	w := &where{}
	w.eq("pull_id", f.PullID)
	w.eq("remote_id", f.RemoteID)
	w.eq("author", f.Author)
	w.page("id", f.After, f.Limit, f.Newest)
	return reviewComments.list(ctx, q, w)
}

// CreateReviewComment writes a new review comment; one with the same RemoteID
// on the same pull request is CodeConflict.
func (tx *Tx) CreateReviewComment(ctx context.Context, c *squad.ReviewComment) error {
	tx.stamp(&c.ID, &c.CreatedAt)
	return reviewComments.create(ctx, tx, c)
}

// UpdateReviewComment writes a changed review comment.
func (tx *Tx) UpdateReviewComment(ctx context.Context, c *squad.ReviewComment) error {
	return reviewComments.change(ctx, tx, c)
}

// DeleteReviewComment removes a review comment.
func (tx *Tx) DeleteReviewComment(ctx context.Context, id string) error {
	return reviewComments.remove(ctx, tx, id)
}
