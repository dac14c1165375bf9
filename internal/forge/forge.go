package forge

import (
	"context"
	"time"

	squad "agentsquad"
)

// Forge is one repository on a forge. All methods are safe for concurrent use,
// honour their context, and return *squad.Error: CodeNotFound for what is not
// there, CodeConflict for a wrong state (merged already, cannot be merged),
// CodeRule for what the forge's own rules refuse, CodeUnauthorized for a bad
// token, CodeForbidden for missing permissions (the message lists them),
// CodeQuota with RetryAfter at a rate limit, CodeProvider for the rest.
type Forge interface {
	// Info reads the repository and what our credential may do with it.
	Info(ctx context.Context) (Info, error)
	// Branches lists the names of all branches.
	Branches(ctx context.Context) ([]string, error)

	// CreatePull opens a pull request. One that is open for the same branches
	// already is CodeConflict.
	CreatePull(ctx context.Context, p NewPull) (squad.PullRequest, error)
	// Pull reads one, with mergeability, checks and review state.
	Pull(ctx context.Context, number int64) (squad.PullRequest, error)
	// Pulls lists newest first.
	Pulls(ctx context.Context, f PullFilter) ([]squad.PullRequest, error)
	// UpdatePull changes what is given and leaves the rest.
	UpdatePull(ctx context.Context, number int64, u PullUpdate) (squad.PullRequest, error)
	// Merge merges with the given method and returns the merge commit. It reads
	// the branch protection first where the forge has one.
	Merge(ctx context.Context, number int64, m MergeOptions) (sha string, err error)
	// DeleteBranch removes a branch; one that is gone already is no error.
	DeleteBranch(ctx context.Context, branch string) error
	// Diff returns the unified diff of a pull request.
	Diff(ctx context.Context, number int64) (string, error)

	// Comments lists remarks and reviews, oldest first.
	Comments(ctx context.Context, number int64) ([]squad.ReviewComment, error)
	// Comment adds a remark, or a review where Verdict is set.
	Comment(ctx context.Context, number int64, c squad.ReviewComment) (squad.ReviewComment, error)

	// Checks lists what tools say of a commit.
	Checks(ctx context.Context, sha string) ([]Check, error)
	// SetCheck reports the state of one check of ours.
	SetCheck(ctx context.Context, sha string, c Check) error

	// Issue verbs. The local forge has no issues: tasks are its issues.
	CreateIssue(ctx context.Context, title, body string) (Issue, error)
	Issue(ctx context.Context, number int64) (Issue, error)
	CommentIssue(ctx context.Context, number int64, body string) error
}

// Info is a repository as its forge knows it.
type Info struct {
	FullName      string
	CloneURL      string // without credentials; "" on the local forge
	DefaultBranch string
	Private       bool
	Empty         bool
	// Missing lists permissions that our work needs and the credential lacks,
	// in the forge's own words.
	Missing []string
	// RateRemaining is how many API calls are left; -1 is unknown or unlimited.
	RateRemaining int
	RateReset     time.Time
}

// NewPull is a pull request to open.
type NewPull struct {
	Title, Body string
	Head, Base  string
	Draft       bool
	Reviewers   []string
	Labels      []string
}

// PullFilter selects pull requests; the zero value selects the open ones.
type PullFilter struct {
	State squad.PullState // "" is open
	Head  string          // branch
	Limit int             // 0 is 50
}

func (f PullFilter) fits(p squad.PullRequest) bool {
	return (f.State == "" || p.State == f.State) && (f.Head == "" || p.Head == f.Head)
}

func orLimit(limit int) int {
	if limit <= 0 {
		return 50
	}
	return limit
}

// PullUpdate changes a pull request; nil leaves a field alone.
type PullUpdate struct {
	Title, Body *string
	Draft       *bool
	Closed      *bool
	Reviewers   []string // added
	Labels      []string // added
}

// MergeOptions says how to merge.
type MergeOptions struct {
	Method  string // merge, squash or rebase; "" is merge
	Message string // of the merge or squash commit; "" is made from the title
	HeadSHA string // refuse when the branch is no longer there; "" does not check
	// Author of the merge commit on the local forge.
	Author, AuthorMail string
}

// Check is what one tool says of a commit.
type Check struct {
	Name   string
	Status string // pending, success or failure
	URL    string
	Detail string
}

// Issue is a forge's issue.
type Issue struct {
	Number int64
	URL    string
	Title  string
	Body   string
	State  string
	Labels []string
}

// settled reads an open pull request again for a moment while it says the word by
// which a forge means "not tried yet".
func settled(ctx context.Context, unsure string, read func() (squad.PullRequest, error)) (squad.PullRequest, error) {
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		pull, err := read()
		if err != nil || pull.State != squad.PullOpen || pull.Mergeable != unsure || wait > time.Second {
			return pull, err
		}
		select {
		case <-ctx.Done():
			return pull, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// Summary folds checks into one word: none, pending, success or failure.
func Summary(checks []Check) string {
	state := "none"
	for _, c := range checks {
		switch {
		case c.Status == "failure":
			return "failure"
		case c.Status == "pending":
			state = "pending"
		case state == "none":
			state = "success"
		}
	}
	return state
}
