package forge

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// maxHook bounds a delivery; GitHub sends 25 MB at most.
const maxHook = 25 << 20

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
	hook, err := parseHook(r.Header.Get("X-Github-Event"), payload(r, body))
	if err != nil {
		return http.StatusBadRequest, "delivery is not JSON"
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
	// A forge waits some seconds only, and does not send again by itself: what was
	// begun is brought to its end though nobody listens.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handleTimeout)
	defer cancel()
	if err := h.handle(ctx, repo, hook); err != nil {
		log.WarnContext(ctx, "handle webhook", "repository_id", repo.ID, "kind", hook.Kind, "error", err)
		err := h.service.cfg.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.UnseeWebhook(ctx, repo.ID, delivery) })
		if err != nil {
			log.ErrorContext(ctx, "forget webhook", "repository_id", repo.ID, "error", err)
		}
		return http.StatusServiceUnavailable, "could not be handled now; send it again"
	}
	return http.StatusOK, "handled"
}

// handleTimeout bounds what one delivery may cause.
const handleTimeout = time.Minute

// payload is the JSON of a delivery, which GitHub sends in a form unless told
// otherwise. The signature is over the body as it came.
func payload(r *http.Request, body []byte) []byte {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
		return body
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil
	}
	return []byte(form.Get("payload"))
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
	skip := map[string]bool{} // repositories that are local, or whose forge wants us to wait
	var errs []error
	for _, p := range open {
		if _, known := skip[p.RepositoryID]; !known {
			repo, err := s.cfg.Store.Repository(ctx, p.RepositoryID)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			skip[p.RepositoryID] = repo.Forge == squad.ForgeLocal
		}
		if skip[p.RepositoryID] {
			continue
		}
		if _, err := s.Refresh(ctx, squad.System(), p.ID); err != nil {
			errs = append(errs, err)
			skip[p.RepositoryID] = squad.CodeOf(err) == squad.CodeQuota
		}
	}
	return errors.Join(errs...)
}
