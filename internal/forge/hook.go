package forge

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// Hook is what a delivery says, in our words.
type Hook struct {
	Kind   string // pull, issue, push, checks or ""
	Number int64  // of the pull request or issue
	Action string
	Title  string
	Body   string
	Author string
	Branch string // that was pushed
	SHA    string // that was checked
}

// squadLabel on an issue makes a task of it.
const squadLabel = "squad"

type hookLabel struct {
	Name string `json:"name"`
}

// hookPayload are the parts of GitHub's and Gitea's payloads that we read.
type hookPayload struct {
	Action  string `json:"action"`
	Ref     string `json:"ref"`
	Deleted bool   `json:"deleted"`
	SHA     string `json:"sha"`
	Pull    *struct {
		Number int64 `json:"number"`
	} `json:"pull_request"`
	Issue *struct {
		Number int64            `json:"number"`
		Title  string           `json:"title"`
		Body   string           `json:"body"`
		State  string           `json:"state"`
		Pull   *json.RawMessage `json:"pull_request"`
		Labels []hookLabel      `json:"labels"`
		User   struct {
			Login string `json:"login"`
		} `json:"user"`
	} `json:"issue"`
	Label      hookLabel `json:"label"`
	CheckRun   headed    `json:"check_run"`
	CheckSuite headed    `json:"check_suite"`
}

type headed struct {
	HeadSHA string `json:"head_sha"`
}

// parseHook understands a delivery. What does not concern us has no kind.
func parseHook(event string, body []byte) (Hook, error) {
	var p hookPayload
	if err := json.Unmarshal(body, &p); err != nil {
		return Hook{}, err
	}
	h := Hook{Action: p.Action}
	switch {
	case p.Pull != nil: // reviews and remarks on lines too, whatever they are called
		h.Kind, h.Number = "pull", p.Pull.Number
	case p.Issue != nil && p.Issue.Pull != nil: // a remark on a pull request
		h.Kind, h.Number = "pull", p.Issue.Number
	case event == "issues" && p.Issue != nil && p.asksForUs():
		h.Kind, h.Number, h.Title, h.Body, h.Author = "issue", p.Issue.Number, p.Issue.Title, p.Issue.Body, p.Issue.User.Login
	case event == "push" && !p.Deleted && strings.HasPrefix(p.Ref, "refs/heads/"):
		h.Kind, h.Branch = "push", strings.TrimPrefix(p.Ref, "refs/heads/")
	case event == "status" || event == "check_run" || event == "check_suite":
		h.Kind, h.SHA = "checks", orElse(p.SHA, orElse(p.CheckRun.HeadSHA, p.CheckSuite.HeadSHA))
	}
	return h, nil
}

// asksForUs says whether an open issue has just got our label. GitHub names the
// label that was set, Gitea tells them all.
func (p *hookPayload) asksForUs() bool {
	isOurs := func(l hookLabel) bool { return strings.EqualFold(l.Name, squadLabel) }
	if p.Issue.State == "closed" || !slices.ContainsFunc(p.Issue.Labels, isOurs) {
		return false
	}
	switch p.Action {
	case "labeled":
		return isOurs(p.Label)
	case "label_updated", "opened", "reopened":
		return true
	}
	return false
}

func (h *Webhooks) handle(ctx context.Context, repo squad.Repository, hook Hook) error {
	switch hook.Kind {
	case "pull":
		return h.service.Sync(ctx, repo, hook.Number)
	case "issue":
		if h.OnIssue != nil {
			return h.OnIssue(ctx, repo, hook)
		}
	case "push":
		if h.OnPush != nil {
			h.OnPush(ctx, repo, hook.Branch)
		}
		return h.service.syncOpen(ctx, repo, func(p squad.PullRequest) bool { return p.Head == hook.Branch })
	case "checks":
		return h.service.syncOpen(ctx, repo, func(p squad.PullRequest) bool { return p.HeadSHA == hook.SHA })
	}
	return nil
}

// syncOpen reads those of our open pull requests that something happened to.
func (s *Service) syncOpen(ctx context.Context, repo squad.Repository, concerns func(squad.PullRequest) bool) error {
	open, err := s.cfg.Store.PullRequests(ctx, store.PullRequestFilter{RepositoryID: repo.ID, States: []squad.PullState{squad.PullOpen}})
	if err != nil {
		return err
	}
	for _, p := range open {
		if !concerns(p) {
			continue
		}
		if _, err := s.Refresh(ctx, squad.System(), p.ID); err != nil {
			return err
		}
	}
	return nil
}
