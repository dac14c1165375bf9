package forge_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/forge/githubtest"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

const hookSecret = "a shared secret of the hook"

func hookHouse(t *testing.T) (*forge.Webhooks, squad.Repository) {
	t.Helper()
	ctx, data := t.Context(), t.TempDir()
	db, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(data, "squad.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	vault, err := forge.OpenVault(filepath.Join(data, "key"))
	if err != nil {
		t.Fatal(err)
	}
	sq := squad.Squad{Name: "Crew", Status: squad.SquadActive}
	repo := squad.Repository{Name: "acme/hello", Forge: squad.ForgeGitHub, URL: "https://github.com/acme/hello.git", DefaultBranch: "main"}
	err = db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.CreateSquad(ctx, &sq); err != nil {
			return err
		}
		repo.SquadID = sq.ID
		return tx.CreateRepository(ctx, &repo)
	})
	if err != nil {
		t.Fatal(err)
	}
	s := forge.NewService(forge.Config{
		Store: db, Credentials: forge.NewCredentials(db, vault, map[string]string{"webhook": hookSecret}), Git: git.New(git.Config{}), Dir: data,
	})
	return s.Webhooks(), repo
}

func deliver(h http.Handler, path, id, event, body, secret string) int {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewBufferString(body))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	r.Header.Set("X-GitHub-Delivery", id)
	r.Header.Set("X-GitHub-Event", event)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestWebhooks_EachDeliveryIsHandledOnce(t *testing.T) {
	t.Parallel()
	h, repo := hookHouse(t)
	pushed := []string{}
	h.OnPush = func(_ context.Context, _ squad.Repository, branch string) { pushed = append(pushed, branch) }
	path := "/api/v1/webhooks/github/" + repo.ID
	for range 3 {
		if code := deliver(h, path, "d-1", "push", `{"ref":"refs/heads/main"}`, hookSecret); code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	if len(pushed) != 1 || pushed[0] != "main" {
		t.Errorf("handled %v", pushed)
	}
}

func TestWebhooks_StrangersLearnNothing(t *testing.T) {
	t.Parallel()
	h, repo := hookHouse(t)
	good := "/api/v1/webhooks/github/" + repo.ID
	for name, try := range map[string]struct{ path, secret string }{
		"wrong secret":  {good, "guess"},
		"unknown":       {"/api/v1/webhooks/github/" + squad.NewID(), hookSecret},
		"another forge": {"/api/v1/webhooks/gitea/" + repo.ID, hookSecret},
		"no repository": {"/api/v1/webhooks/github/", hookSecret},
	} {
		if code := deliver(h, try.path, "d-1", "push", `{}`, try.secret); code != http.StatusNotFound {
			t.Errorf("%s: status %d", name, code)
		}
	}
	if code := deliver(h, good, "d-2", "push", `not json`, hookSecret); code != http.StatusBadRequest {
		t.Errorf("bad body: status %d", code)
	}
}

func TestWebhooks_LabelledIssueBecomesATask(t *testing.T) {
	t.Parallel()
	h, repo := hookHouse(t)
	var got forge.Hook
	h.OnIssue = func(_ context.Context, _ squad.Repository, hook forge.Hook) error { got = hook; return nil }
	path := "/api/v1/webhooks/github/" + repo.ID
	deliver(h, path, "d-1", "issues", `{"action":"labeled","issue":{"number":4,"title":"no","labels":[{"name":"bug"}]},"label":{"name":"bug"}}`, hookSecret)
	if got.Number != 0 {
		t.Errorf("another label was taken: %+v", got)
	}
	deliver(h, path, "d-3", "issues", `{"action":"unlabeled","issue":{"number":4,"title":"no","labels":[]},"label":{"name":"squad"}}`, hookSecret)
	deliver(h, path, "d-4", "issues", `{"action":"labeled","issue":{"number":4,"title":"no","labels":[{"name":"squad"},{"name":"bug"}]},"label":{"name":"bug"}}`, hookSecret)
	deliver(h, path, "d-5", "issue_comment", `{"action":"created","issue":{"number":4,"title":"no","labels":[{"name":"squad"}]}}`, hookSecret)
	if got.Number != 0 {
		t.Errorf("taken though the label was not just set: %+v", got)
	}
	deliver(h, path, "d-2", "issues", `{"action":"labeled","issue":{"number":5,"title":"Fix it","body":"please","labels":[{"name":"squad"}]},"label":{"name":"squad"}}`, hookSecret)
	if got.Number != 5 || got.Title != "Fix it" {
		t.Errorf("hook %+v", got)
	}
}

// A delivery that could not be handled counts when it is sent again.
func TestWebhooks_FailedDeliveryMayBeSentAgain(t *testing.T) {
	t.Parallel()
	h, repo := hookHouse(t)
	tries := 0
	h.OnIssue = func(context.Context, squad.Repository, forge.Hook) error {
		if tries++; tries == 1 {
			return errors.New("the database is away")
		}
		return nil
	}
	path, body := "/api/v1/webhooks/github/"+repo.ID, `{"action":"opened","issue":{"number":5,"title":"Fix it","labels":[{"name":"Squad"}]}}`
	for i, want := range []int{http.StatusServiceUnavailable, http.StatusOK, http.StatusOK} {
		if code := deliver(h, path, "d-1", "issues", body, hookSecret); code != want {
			t.Errorf("try %d: status %d", i, code)
		}
	}
	if tries != 2 {
		t.Errorf("handled %d times", tries)
	}
}

// GitHub's own examples, all of them: none is refused, and those that concern us
// are understood.
func TestWebhooks_GitHubsExamplesAreUnderstood(t *testing.T) {
	t.Parallel()
	h, repo := hookHouse(t)
	pushed, issues := 0, 0
	h.OnPush = func(context.Context, squad.Repository, string) { pushed++ }
	h.OnIssue = func(context.Context, squad.Repository, forge.Hook) error { issues++; return nil }
	for i, e := range githubtest.Examples(t) {
		id := strconv.Itoa(i)
		if code := deliver(h, "/api/v1/webhooks/github/"+repo.ID, id, e.Event, string(e.Payload), hookSecret); code != http.StatusOK {
			t.Errorf("%s: status %d", e.Event, code)
		}
		hook, err := forge.ParseHook(e.Event, e.Payload)
		want := map[string]string{
			"pull_request": "pull", "pull_request_review": "pull", "pull_request_review_comment": "pull", "status": "checks", "check_run": "checks", "check_suite": "checks",
		}[e.Event]
		if err != nil || want != "" && hook.Kind != want || hook.Kind == "pull" && hook.Number == 0 || hook.Kind == "checks" && len(hook.SHA) != 40 {
			t.Errorf("%s: %+v, %v", e.Event, hook, err)
		}
	}
	if pushed == 0 || issues != 0 {
		t.Errorf("%d pushes of branches, %d issues", pushed, issues)
	}
}
