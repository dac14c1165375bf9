package runner_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/forge/giteatest"
	"agentsquad/internal/pgtest"
	"agentsquad/internal/store"
)

// A task on a real Gitea: cloned through the gateway, pushed with the server's
// credential, a pull request there, a review there, a second turn, merged there. Once
// told by webhooks, and once, on PostgreSQL, found by polling.
func TestExecution_OnGiteaFromTaskToMerge(t *testing.T) {
	t.Run("webhooks", func(t *testing.T) { giteaStory(t, newHouse(t), true) })
	t.Run("polling on PostgreSQL", func(t *testing.T) { giteaStory(t, newHouseOn(t, pgtest.URL(t), t.TempDir()), false) })
}

func giteaStory(t *testing.T, h *house, webhooks bool) {
	server := giteatest.Start(t)
	bot, grace := server.User(t), server.User(t)
	name := h.onGitea(server, bot, grace)
	if webhooks {
		web := httptest.NewServer(h.forges.Webhooks())
		t.Cleanup(web.Close)
		server.Hook(t, name, web.URL+"/api/v1/webhooks/gitea/"+h.repo.ID, hookSecret)
	} else {
		h.poll()
	}
	ada := h.member("Ada", `{ env; git config --list; cat .git/config; cat /proc/*/environ; git remote -v; } > seen.txt 2>/dev/null
if [ "$SQUAD_TURN" = 1 ]; then echo hi > hi.txt; else grep -q 'be kinder' "$SQUAD_TASK_FILE" && echo 'dear all, hi' > hi.txt; fi`)
	k := h.task("Say hi", ada)
	h.start(k)
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" {
		h.story(k)
		t.Fatalf("task %s: %s", k.Flag, k.Cause)
	}
	pull := h.pull(k)
	if k.PullRequestURL != server.URL+"/"+name+"/pulls/1" || pull.Author != bot.Name {
		t.Errorf("pull request %q by %s", k.PullRequestURL, pull.Author)
	}
	clone := filepath.Join(h.data, "clone")
	sh(t, h.data, "git clone -q -b task-1 "+server.CloneURL(name, grace.Token)+" clone")
	if got := sh(t, clone, "cat hi.txt && git log -1 --format='%an: %s'"); got != "hi\nAda: feat: say hi" {
		t.Errorf("Gitea has %q", got)
	}
	if seen := sh(t, clone, "cat seen.txt"); strings.Contains(seen, bot.Token) || !strings.Contains(seen, "squad.internal") {
		t.Errorf("the sandbox saw the credential, or nothing: %s", seen)
	}
	server.Call(t, http.MethodPost, "/repos/"+name+"/pulls/1/reviews", grace.Token, map[string]any{
		"event": "REQUEST_CHANGES", "body": "be kinder", "comments": []any{map[string]any{"path": "hi.txt", "body": "see here", "new_position": 1}},
	}, nil)
	h.until(k, "second push", func(squad.Event) bool { return h.pull(k).HeadSHA != pull.HeadSHA })
	k = h.untilTask(k, inReview)
	if got := sh(t, clone, "git pull -q && cat hi.txt"); got != "dear all, hi" {
		t.Errorf("Gitea has %q", got)
	}
	h.mergedOnGitea(server, name, grace, k)
}

// mergedOnGitea merges as a person does on Gitea's page and sees the task end.
func (h *house) mergedOnGitea(server *giteatest.Server, name string, grace giteatest.Person, k squad.Task) {
	t := h.t
	t.Helper()
	server.Call(t, http.MethodPost, "/repos/"+name+"/pulls/1/reviews", grace.Token, map[string]any{"event": "APPROVED", "body": "kind"}, nil)
	server.Call(t, http.MethodPost, "/repos/"+name+"/pulls/1/merge", grace.Token, map[string]any{"Do": "squash"}, nil)
	k = h.untilTask(k, func(k squad.Task) bool { return k.Status == squad.TaskDone })
	h.until(k, "end of sandbox", func(e squad.Event) bool { return e.Type == squad.EventSandboxTerminated })
	if got := sh(t, h.data, "git -C clone fetch -q && git -C clone show origin/main:hi.txt"); got != "dear all, hi" {
		t.Errorf("main on Gitea has %q", got)
	}
	if list, _ := h.store.Sandboxes(t.Context(), store.SandboxFilter{TaskID: k.ID}); len(list) != 1 {
		t.Errorf("%d sandboxes", len(list))
	}
	if list, err := h.store.Executions(t.Context(), store.ExecutionFilter{TaskID: k.ID}); err != nil || len(list) != 1 || list[0].Turn != 2 {
		t.Errorf("one execution of two turns? %+v, %v", list, err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); ; <-tick.C { // the clean-up after the sandbox
		branches, err := h.forges.Branches(t.Context(), h.repo.ID)
		h.must(err)
		if len(branches) == 1 && branches[0] == "main" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("branches left on Gitea: %v", branches)
		}
	}
	for _, kind := range []squad.EventType{squad.EventPRCreated, squad.EventPRMerged} {
		if list, err := h.store.Events(t.Context(), store.EventFilter{TaskID: k.ID, Types: []squad.EventType{kind}}); err != nil || len(list) != 1 {
			t.Errorf("%d %s events, %v", len(list), kind, err)
		}
	}
}

const hookSecret = "a shared secret of the hook"

// onGitea makes the house's repository one on Gitea, with sealed credentials.
func (h *house) onGitea(server *giteatest.Server, bot, grace giteatest.Person) string {
	h.t.Helper()
	ctx, name := h.t.Context(), server.Repository(h.t, bot, grace)
	vault, err := forge.OpenVault(filepath.Join(h.data, "key"))
	h.must(err)
	for kind, secret := range map[squad.CredentialKind]string{squad.CredentialToken: bot.Token, squad.CredentialWebhook: hookSecret} {
		cred := squad.Credential{SquadID: h.squad.ID, Name: string(kind), Kind: kind, Provider: "gitea"}
		h.tx(func(tx *store.Tx) error {
			if err := tx.CreateCredential(ctx, &cred); err != nil {
				return err
			}
			sealed, err := vault.Seal(cred.ID, []byte(secret))
			if err != nil {
				return err
			}
			return tx.SetSealedCredential(ctx, cred.ID, sealed)
		})
	}
	h.repo = squad.Repository{SquadID: h.squad.ID, Name: name, Forge: squad.ForgeGitea, APIURL: server.URL}
	h.must(h.forges.Prepare(ctx, &h.repo, ""))
	h.tx(func(tx *store.Tx) error { return tx.CreateRepository(ctx, &h.repo) })
	return name
}

// poll asks the forge again and again until the test ends.
func (h *house) poll() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				_ = h.forges.Poll(h.t.Context())
			}
		}
	}()
	h.t.Cleanup(func() { close(stop); <-done })
}
