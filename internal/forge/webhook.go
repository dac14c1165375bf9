package forge

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// maxHook bounds a delivery; GitHub sends 25 MB at most.
const maxHook = 25 << 20

// Hook is what a delivery says, in our words.
type Hook struct {
	Kind   string // pull, issue, push or ""
	Number int64  // of the pull request or issue
	Action string
	Label  string // that was set on an issue
	Title  string
	Body   string
	Author string
	Branch string // that was pushed
}

// Webhooks receives what forges tell us. Each delivery's signature is checked
// against the repository's shared secret, and each is handled once. A delivery is a
// hint: what is true now is read from the forge, so that deliveries may come late,
// twice or in any order.
type Webhooks struct {
	service *Service
	// OnIssue is told of an issue that was labelled for the squad. May be nil.
	OnIssue func(ctx context.Context, repo squad.Repository, h Hook) error
	// OnPush is told of a branch that moved. May be nil.
	OnPush func(ctx context.Context, repo squad.Repository, branch string)
}

// Webhooks returns the receiver.
func (s *Service) Webhooks() *Webhooks { return &Webhooks{service: s} }

// ServeHTTP answers POST …/webhooks/{forge}/{repository}.
func (h *Webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, text := h.receive(r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

func (h *Webhooks) receive(r *http.Request) (int, string) {
	ctx, log := r.Context(), h.service.cfg.Log
	dir, id := path.Split(strings.TrimSuffix(r.URL.Path, "/"))
	repo, err := h.service.cfg.Store.Repository(ctx, id)
	if err != nil || r.Method != http.MethodPost || repo.Forge == squad.ForgeLocal || string(repo.Forge) != path.Base(dir) {
		return http.StatusNotFound, "no such webhook"
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxHook))
	if err != nil {
		return http.StatusRequestEntityTooLarge, "delivery is too large"
	}
	secret, err := h.service.cfg.Credentials.WebhookSecret(ctx, repo)
	if err != nil || secret == "" || !signed(body, secret, r.Header.Get("X-Hub-Signature-256")) {
		return http.StatusNotFound, "no such webhook" // unknown and unsigned look the same
	}
	delivery := r.Header.Get("X-Github-Delivery")
	if delivery == "" {
		return http.StatusBadRequest, "X-GitHub-Delivery is missing"
	}
	fresh := false
	err = h.service.cfg.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		fresh, err = tx.SeeWebhook(ctx, repo.ID, delivery)
		return err
	})
	if err != nil {
		log.ErrorContext(ctx, "note webhook", "repository_id", repo.ID, "error", err)
		return http.StatusInternalServerError, "try again"
	}
	if !fresh {
		return http.StatusOK, "seen before"
	}
	hook, err := parseHook(r.Header.Get("X-Github-Event"), body)
	if err != nil {
		return http.StatusBadRequest, "delivery is not JSON"
	}
	if err := h.handle(ctx, repo, hook); err != nil {
		// The delivery counts as seen: polling brings what it would have brought.
		log.WarnContext(ctx, "handle webhook", "repository_id", repo.ID, "kind", hook.Kind, "error", err)
		return http.StatusAccepted, "noted; it will be read later"
	}
	return http.StatusOK, "handled"
}

func signed(body []byte, secret, header string) bool {
	given, ok := strings.CutPrefix(header, "sha256=")
	if !ok {
		return false
	}
	sum, err := hex.DecodeString(given)
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal(sum, mac.Sum(nil))
}

// parseHook reads the parts that GitHub's and Gitea's payloads share.
func parseHook(event string, body []byte) (Hook, error) {
	var p struct {
		Action string `json:"action"`
		Ref    string `json:"ref"`
		Number int64  `json:"number"`
		Pull   *struct {
			Number int64 `json:"number"`
		} `json:"pull_request"`
		Issue *struct {
			Number int64            `json:"number"`
			Title  string           `json:"title"`
			Body   string           `json:"body"`
			Pull   *json.RawMessage `json:"pull_request"`
			Labels []struct {
				Name string `json:"name"`
			} `json:"labels"`
			User struct {
				Login string `json:"login"`
			} `json:"user"`
		} `json:"issue"`
		Label *struct {
			Name string `json:"name"`
		} `json:"label"`
		CheckRun *struct {
			Pulls []struct {
				Number int64 `json:"number"`
			} `json:"pull_requests"`
		} `json:"check_run"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return Hook{}, err
	}
	h := Hook{Action: p.Action}
	switch {
	case p.Pull != nil:
		h.Kind, h.Number = "pull", max(p.Pull.Number, p.Number)
	case p.CheckRun != nil && len(p.CheckRun.Pulls) > 0:
		h.Kind, h.Number = "pull", p.CheckRun.Pulls[0].Number
	case p.Issue != nil && p.Issue.Pull != nil:
		h.Kind, h.Number = "pull", p.Issue.Number
	case p.Issue != nil:
		h.Kind, h.Number, h.Title, h.Body, h.Author = "issue", p.Issue.Number, p.Issue.Title, p.Issue.Body, p.Issue.User.Login
		if p.Label != nil {
			h.Label = p.Label.Name
		}
		for _, l := range p.Issue.Labels { // Gitea names no single label
			if h.Label == "" || strings.EqualFold(l.Name, squadLabel) {
				h.Label = l.Name
			}
		}
	case event == "push":
		h.Kind, h.Branch = "push", strings.TrimPrefix(p.Ref, "refs/heads/")
	}
	return h, nil
}

// squadLabel on an issue makes a task of it.
const squadLabel = "squad"

func (h *Webhooks) handle(ctx context.Context, repo squad.Repository, hook Hook) error {
	switch hook.Kind {
	case "pull":
		return h.service.Sync(ctx, repo, hook.Number)
	case "issue":
		if strings.EqualFold(hook.Label, squadLabel) && h.OnIssue != nil {
			return h.OnIssue(ctx, repo, hook)
		}
	case "push":
		if h.OnPush != nil {
			h.OnPush(ctx, repo, hook.Branch)
		}
	}
	return nil
}

// Sync reads a pull request of ours from its forge. One that is not ours is left
// alone.
func (s *Service) Sync(ctx context.Context, repo squad.Repository, number int64) error {
	pull, err := s.cfg.Store.PullRequestByNumber(ctx, repo.ID, number)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.Refresh(ctx, squad.System(), pull.ID)
	return err
}

// Poll reads all open pull requests on remote forges, for those whose webhooks do
// not reach us. It goes on after a failure and returns what failed.
func (s *Service) Poll(ctx context.Context) error {
	open, err := s.cfg.Store.PullRequests(ctx, store.PullRequestFilter{States: []squad.PullState{squad.PullOpen}})
	if err != nil {
		return err
	}
	local := map[string]bool{}
	var errs []error
	for _, p := range open {
		isLocal, known := local[p.RepositoryID]
		if !known {
			repo, err := s.cfg.Store.Repository(ctx, p.RepositoryID)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			isLocal = repo.Forge == squad.ForgeLocal
			local[p.RepositoryID] = isLocal
		}
		if isLocal {
			continue
		}
		if _, err := s.Refresh(ctx, squad.System(), p.ID); err != nil {
			errs = append(errs, err)
			if squad.CodeOf(err) == squad.CodeQuota {
				break
			}
		}
	}
	return errors.Join(errs...)
}
