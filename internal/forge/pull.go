package forge

import (
	"context"
	"fmt"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// lookup reads a pull request with its repository and forge.
func (s *Service) lookup(ctx context.Context, pullID string) (squad.PullRequest, squad.Repository, Forge, error) {
	pull, err := s.cfg.Store.PullRequest(ctx, pullID)
	if err != nil {
		return pull, squad.Repository{}, nil, err
	}
	repo, err := s.cfg.Store.Repository(ctx, pull.RepositoryID)
	if err != nil {
		return pull, repo, nil, err
	}
	f, err := s.For(ctx, repo)
	return pull, repo, f, err
}

// Diff returns the changes of a pull request.
func (s *Service) Diff(ctx context.Context, _ squad.Actor, pullID string) (squad.Diff, error) {
	pull, _, f, err := s.lookup(ctx, pullID)
	if err != nil {
		return squad.Diff{}, err
	}
	text, err := f.Diff(ctx, pull.Number)
	if err != nil {
		return squad.Diff{}, err
	}
	diff := parsePatch(text)
	diff.Base, diff.Head = pull.Base, pull.HeadSHA
	return diff, nil
}

// Review adds a remark or a verdict.
func (s *Service) Review(ctx context.Context, actor squad.Actor, pullID string, req squad.NewReview) (squad.ReviewComment, error) {
	pull, repo, f, err := s.lookup(ctx, pullID)
	if err != nil {
		return squad.ReviewComment{}, err
	}
	if pull.State != squad.PullOpen {
		return squad.ReviewComment{}, squad.Errorf(squad.CodeConflict, "pull request #%d is %s", pull.Number, pull.State)
	}
	c := squad.ReviewComment{
		PullID: pull.ID, Author: s.name(ctx, actor), Path: req.Path, Line: req.Line, Side: req.Side, Verdict: req.Verdict, Body: req.Body,
	}
	made, err := f.Comment(ctx, pull.Number, c)
	if _, isVerdict := reviewState(c.Verdict); isVerdict && repo.Forge != squad.ForgeLocal && squad.CodeOf(err) == squad.CodeRule {
		made, err = s.asRemark(ctx, f, pull, c)
	}
	if err != nil {
		return c, err
	}
	if c, err = s.saveComment(ctx, repo, pull, made); err != nil || repo.Forge == squad.ForgeLocal {
		return c, err
	}
	fresh, err := f.Pull(ctx, pull.Number)
	if err == nil {
		_, err = s.save(ctx, repo, fresh, squad.Event{})
	}
	return c, err
}

// asRemark gives a verdict as a plain remark. A forge takes no verdict from the
// author of a pull request, and the author is the server's own credential: what a
// person says on our page still counts here, and is told there.
func (s *Service) asRemark(ctx context.Context, f Forge, pull squad.PullRequest, c squad.ReviewComment) (squad.ReviewComment, error) {
	said := c
	said.Verdict = "comment"
	said.Body = strings.TrimSpace(map[string]string{"approve": "Approved by ", "request_changes": "Changes requested by "}[c.Verdict] + c.Author + ".\n\n" + c.Body)
	made, err := f.Comment(ctx, pull.Number, said)
	c.RemoteID = made.RemoteID
	return c, err
}

// name is how an actor is shown beside a remark.
func (s *Service) name(ctx context.Context, actor squad.Actor) string {
	if m, err := s.cfg.Store.Member(ctx, actor.MemberID); actor.MemberID != "" && err == nil {
		return m.Name
	}
	if u, err := s.cfg.Store.User(ctx, actor.UserID); actor.UserID != "" && err == nil {
		return u.Name
	}
	return actor.String()
}

// saveComment writes a remark that is new to us, with its event, and what it does
// to the state of the review. A remark that is known is returned as stored.
func (s *Service) saveComment(ctx context.Context, repo squad.Repository, pull squad.PullRequest, c squad.ReviewComment) (squad.ReviewComment, error) {
	one := []squad.ReviewComment{c}
	err := s.saveComments(ctx, repo, pull, one)
	return one[0], err
}

// saveComments writes remarks together: an agent that is woken by a review finds all
// that was said in it, and needs no second turn for the rest.
func (s *Service) saveComments(ctx context.Context, repo squad.Repository, pull squad.PullRequest, comments []squad.ReviewComment) error {
	return s.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, "pulls:"+repo.ID); err != nil {
			return err
		}
		for i := range comments {
			if err := writeComment(ctx, tx, repo, pull, &comments[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeComment(ctx context.Context, tx *store.Tx, repo squad.Repository, pull squad.PullRequest, c *squad.ReviewComment) error {
	c.PullID = pull.ID
	if c.RemoteID != "" {
		known, err := tx.ReviewComments(ctx, store.ReviewCommentFilter{PullID: pull.ID, RemoteID: c.RemoteID, Limit: 1})
		if err != nil || len(known) > 0 {
			if len(known) > 0 {
				*c = known[0]
			}
			return err
		}
	}
	if err := tx.CreateReviewComment(ctx, c); err != nil {
		return err
	}
	keys := squad.Event{SquadID: repo.SquadID, RepositoryID: repo.ID, TaskID: pull.TaskID}
	events := []squad.Event{withPayload(keys, squad.EventReviewReceived, *c)}
	// What a remote forge makes of all verdicts together, it says itself.
	if review, changes := reviewState(c.Verdict); changes && repo.Forge == squad.ForgeLocal {
		fresh, err := tx.PullRequest(ctx, pull.ID)
		if err != nil {
			return err
		}
		if review == "approved" && fresh.Review == "changes_requested" {
			if review, err = standing(ctx, tx, pull.ID); err != nil {
				return err
			}
		}
		if fresh.Review = review; review == "approved" && fresh.Mergeable == "blocked" && fresh.Checks != "failure" && !fresh.Draft {
			fresh.Mergeable = "clean"
		}
		if err := tx.UpdatePullRequest(ctx, &fresh); err != nil {
			return err
		}
		events = append(events, withPayload(keys, squad.EventPRUpdated, fresh))
	}
	return tx.Append(ctx, events...)
}

// standing is what the last verdicts of all reviewers come to: an approval takes back
// its author's request for changes and nobody else's.
func standing(ctx context.Context, tx *store.Tx, pullID string) (string, error) {
	said, err := tx.ReviewComments(ctx, store.ReviewCommentFilter{PullID: pullID})
	if err != nil {
		return "", err
	}
	last := map[string]string{}
	for _, c := range said {
		if state, ok := reviewState(c.Verdict); ok {
			last[c.Author] = state
		}
	}
	for _, state := range last {
		if state == "changes_requested" {
			return state, nil
		}
	}
	return "approved", nil
}

func reviewState(verdict string) (string, bool) {
	switch verdict {
	case "approve":
		return "approved", true
	case "request_changes":
		return "changes_requested", true
	}
	return "", false
}

func withPayload(keys squad.Event, t squad.EventType, payload any) squad.Event {
	keys.Type, keys.Payload = t, event.Payload(payload)
	return keys
}

// Merge merges a pull request by the repository's policy unless told otherwise.
func (s *Service) Merge(ctx context.Context, actor squad.Actor, pullID string, opts squad.MergeOptions) (squad.PullRequest, error) {
	pull, repo, f, err := s.lookup(ctx, pullID)
	if err != nil || pull.State == squad.PullMerged {
		return pull, err
	}
	method := orElse(orElse(opts.Method, repo.Policy.MergeMethod), "merge")
	sha, err := f.Merge(ctx, pull.Number, MergeOptions{
		Method: method, Message: opts.Message, Author: s.name(ctx, actor), AuthorMail: "squad@localhost",
	})
	if err != nil {
		return pull, err
	}
	pull.State, pull.MergeSHA, pull.MergedAt, pull.Mergeable = squad.PullMerged, sha, time.Now().UTC(), "unknown"
	return s.save(ctx, repo, pull, squad.Event{})
}

// Close closes a pull request without merging it.
func (s *Service) Close(ctx context.Context, _ squad.Actor, pullID string) (squad.PullRequest, error) {
	closed := true
	return s.update(ctx, pullID, PullUpdate{Closed: &closed}, func(p squad.PullRequest) bool { return p.State == squad.PullClosed })
}

// Ready makes a draft one that may be merged.
func (s *Service) Ready(ctx context.Context, _ squad.Actor, pullID string) (squad.PullRequest, error) {
	draft := false
	return s.update(ctx, pullID, PullUpdate{Draft: &draft}, func(p squad.PullRequest) bool { return !p.Draft })
}

// update changes a pull request on its forge and here, unless it is so already.
func (s *Service) update(ctx context.Context, pullID string, u PullUpdate, is func(squad.PullRequest) bool) (squad.PullRequest, error) {
	pull, repo, f, err := s.lookup(ctx, pullID)
	if err != nil || is(pull) {
		return pull, err
	}
	fresh, err := f.UpdatePull(ctx, pull.Number, u)
	if err != nil {
		return pull, err
	}
	return s.save(ctx, repo, fresh, squad.Event{})
}

// Refresh reads a pull request and its remarks from the forge anew.
func (s *Service) Refresh(ctx context.Context, _ squad.Actor, pullID string) (squad.PullRequest, error) {
	pull, repo, f, err := s.lookup(ctx, pullID)
	if err != nil {
		return pull, err
	}
	fresh, err := f.Pull(ctx, pull.Number)
	if err != nil {
		return pull, err
	}
	if fresh, err = s.save(ctx, repo, fresh, squad.Event{}); err != nil || repo.Forge == squad.ForgeLocal {
		return fresh, err
	}
	comments, err := f.Comments(ctx, pull.Number)
	if err != nil {
		return fresh, err
	}
	if err := s.saveComments(ctx, repo, fresh, comments); err != nil {
		return fresh, err
	}
	return s.cfg.Store.PullRequest(ctx, pullID)
}

// DeleteBranch removes a branch on the forge of a repository.
func (s *Service) DeleteBranch(ctx context.Context, repo squad.Repository, branch string) error {
	f, err := s.For(ctx, repo)
	if err != nil {
		return err
	}
	return f.DeleteBranch(ctx, branch)
}

// Branches lists the branches of a repository.
func (s *Service) Branches(ctx context.Context, repositoryID string) ([]string, error) {
	repo, err := s.cfg.Store.Repository(ctx, repositoryID)
	if err != nil {
		return nil, err
	}
	f, err := s.For(ctx, repo)
	if err != nil {
		return nil, err
	}
	return f.Branches(ctx)
}

// Check says whether a repository can be worked on with its credential, and what
// the credential lacks.
func (s *Service) Check(ctx context.Context, repositoryID string) []squad.Check {
	repo, err := s.cfg.Store.Repository(ctx, repositoryID)
	if err != nil {
		return []squad.Check{{Name: "repository", Status: "failed", Detail: err.Error()}}
	}
	check := squad.Check{Name: "repository " + repo.Name, Status: "ok"}
	info, err := s.info(ctx, repo)
	if err != nil {
		check.Status, check.Detail, check.Remedy = "failed", err.Error(), "check the repository's address and credential"
		return []squad.Check{check}
	}
	check.Detail = fmt.Sprintf("%s on %s, default branch %s", info.FullName, repo.Forge, info.DefaultBranch)
	if info.RateRemaining >= 0 {
		check.Detail += fmt.Sprintf(", %d API calls left until %s", info.RateRemaining, info.RateReset.UTC().Format("15:04 MST"))
	}
	if len(info.Missing) > 0 {
		check.Status, check.Remedy = "failed", "the credential lacks: "+strings.Join(info.Missing, ", ")
	}
	return []squad.Check{check}
}

func (s *Service) info(ctx context.Context, repo squad.Repository) (Info, error) {
	f, err := s.For(ctx, repo)
	if err != nil {
		return Info{}, err
	}
	return f.Info(ctx)
}

func listBranches(ctx context.Context, r *git.Runner, dir string) ([]string, error) {
	out, err := r.Line(ctx, dir, "for-each-ref", "--format=%(refname:short)", "refs/heads")
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// diffText is what head has that base does not, from where they parted.
func diffText(ctx context.Context, r *git.Runner, dir, base, head string) (string, error) {
	res, err := r.Run(ctx, git.Call{
		Dir: dir, Args: []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M", "--src-prefix=a/", "--dst-prefix=b/", base + "..." + head, "--"},
		MaxOutput: 64 << 20,
	})
	if err != nil {
		return "", err
	}
	return string(res.Stdout), nil
}
