package forge_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/forge/giteatest"
	"agentsquad/internal/store"
)

// postbox receives real deliveries and remembers them.
type postbox struct {
	hooks *forge.Webhooks

	mu     sync.Mutex
	all    []letter
	pushed []string
	issues []forge.Hook
}

type letter struct {
	header http.Header
	body   []byte
	status int
}

func (p *postbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	p.hooks.ServeHTTP(answer, r)
	p.mu.Lock()
	p.all = append(p.all, letter{header: r.Header.Clone(), body: body, status: answer.Code})
	p.mu.Unlock()
	w.WriteHeader(answer.Code)
}

func newPostbox(s *stand) (*postbox, string) {
	p := &postbox{hooks: s.service.Webhooks()}
	p.hooks.OnPush = func(_ context.Context, _ squad.Repository, branch string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pushed = append(p.pushed, branch)
	}
	p.hooks.OnIssue = func(_ context.Context, _ squad.Repository, h forge.Hook) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.issues = append(p.issues, h)
		return nil
	}
	web := httptest.NewServer(p)
	s.t.Cleanup(web.Close)
	return p, web.URL + "/api/v1/webhooks/gitea/" + s.repo.ID
}

// seen waits until our side knows, without asking the forge by itself.
func (s *stand) seen(pullID, what string, is func(squad.PullRequest) bool) squad.PullRequest {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(60 * time.Second); ; <-tick.C {
		pull, err := s.store.PullRequest(s.t.Context(), pullID)
		if err != nil {
			s.t.Fatal(err)
		}
		if is(pull) {
			return pull
		}
		if time.Now().After(end) {
			s.t.Fatalf("not heard: %s; %+v", what, pull)
		}
	}
}

// Real deliveries of a real Gitea bring each change to our side; sent again, in any
// order, they change nothing.
func TestWebhooks_GiteaTellsWhatHappens(t *testing.T) {
	t.Parallel()
	s := giteaStand(t)
	server, ctx := giteatest.Start(t), t.Context()
	box, address := newPostbox(s)
	server.Hook(t, s.repo.Name, address, hookSecret)
	first := s.push("hi.txt", "hi\n")
	pull := s.ensure(ctx)
	grace := s.forge(s.reviewer)

	say := func(c squad.ReviewComment) {
		t.Helper()
		if _, err := grace.Comment(ctx, pull.Number, c); err != nil {
			t.Fatal(err)
		}
	}
	say(squad.ReviewComment{Verdict: "request_changes", Body: "be kinder", Path: "hi.txt", Line: 1, Side: "new"})
	s.seen(pull.ID, "rejected", func(p squad.PullRequest) bool { return p.Review == "changes_requested" })
	second := s.push("hi.txt", "hello\n")
	s.seen(pull.ID, "synchronized", func(p squad.PullRequest) bool { return p.HeadSHA == second && first != second })
	say(squad.ReviewComment{Verdict: "comment", Body: "better"})
	s.seen(pull.ID, "comment", func(squad.PullRequest) bool { return len(s.comments(pull)) == 2 })
	if err := grace.SetCheck(ctx, second, forge.Check{Name: "ci", Status: "failure"}); err != nil {
		t.Fatal(err)
	}
	s.seen(pull.ID, "status", func(p squad.PullRequest) bool { return p.Checks == "failure" })
	say(squad.ReviewComment{Verdict: "approve", Body: "good"})
	s.seen(pull.ID, "approved", func(p squad.PullRequest) bool { return p.Review == "approved" })
	if _, err := grace.Merge(ctx, pull.Number, forge.MergeOptions{Method: "squash"}); err != nil {
		t.Fatal(err)
	}
	merged := s.seen(pull.ID, "merged", func(p squad.PullRequest) bool { return p.State == squad.PullMerged })
	if merged.MergeSHA != s.tip() {
		t.Errorf("merged as %s, tip %s", merged.MergeSHA, s.tip())
	}
	s.closedAndLabelled(box, server)
	box.check(t, s, pull)
}

// closedAndLabelled closes another pull request, and labels an issue for us.
func (s *stand) closedAndLabelled(box *postbox, server *giteatest.Server) {
	s.t.Helper()
	s.branch = "task-2"
	run(s.t, s.work, "checkout", "-q", s.repo.DefaultBranch)
	s.push("bye.txt", "bye\n")
	pull, yes := s.ensure(s.t.Context()), true
	if _, err := s.forge(s.reviewer).UpdatePull(s.t.Context(), pull.Number, forge.PullUpdate{Closed: &yes}); err != nil {
		s.t.Fatal(err)
	}
	s.seen(pull.ID, "closed", func(p squad.PullRequest) bool { return p.State == squad.PullClosed })
	issue, err := s.forge(s.reviewer).CreateIssue(s.t.Context(), "It is rude", "Please greet.")
	if err != nil {
		s.t.Fatal(err)
	}
	var label struct {
		ID int64 `json:"id"`
	}
	server.Call(s.t, http.MethodPost, "/repos/"+s.repo.Name+"/labels", s.reviewer, map[string]string{"name": "squad", "color": "#00aabb"}, &label)
	server.Call(s.t, http.MethodPost, "/repos/"+s.repo.Name+"/issues/"+itoa(issue.Number)+"/labels", s.reviewer, map[string]any{"labels": []int64{label.ID}}, nil)
	s.seen(pull.ID, "issue labelled", func(squad.PullRequest) bool {
		box.mu.Lock()
		defer box.mu.Unlock()
		return len(box.issues) == 1 && box.issues[0].Number == issue.Number && box.issues[0].Title == "It is rude"
	})
}

// check looks at what came, and sends it all again, backwards.
func (p *postbox) check(t *testing.T, s *stand, pull squad.PullRequest) {
	t.Helper()
	p.mu.Lock()
	all := slices.Clone(p.all)
	p.mu.Unlock()
	kinds := map[string]bool{}
	for _, l := range all {
		kinds[l.header.Get("X-Gitea-Event")+" "+l.header.Get("X-Gitea-Event-Type")] = true
		if l.status != http.StatusOK {
			t.Errorf("%s answered %d", l.header.Get("X-Gitea-Event-Type"), l.status)
		}
	}
	t.Logf("%d deliveries: %v", len(all), slices.Sorted(func(yield func(string) bool) {
		for k := range kinds {
			if !yield(k) {
				return
			}
		}
	}))
	before := s.story()
	for _, fresh := range []bool{false, true} { // as known deliveries, and as new ones with old news
		for i, l := range slices.Backward(all) {
			r := httptest.NewRequest(http.MethodPost, "/api/v1/webhooks/gitea/"+s.repo.ID, bytes.NewReader(l.body))
			r.Header = l.header.Clone()
			if fresh {
				r.Header.Set("X-Github-Delivery", "again-"+itoa(int64(i)))
			}
			w := httptest.NewRecorder()
			p.hooks.ServeHTTP(w, r)
			if w.Code != http.StatusOK || !fresh && strings.TrimSpace(w.Body.String()) != "seen before" {
				t.Errorf("sent again: %d %s", w.Code, w.Body)
			}
		}
	}
	if after := s.story(); after != before {
		t.Errorf("old news made events:\n%s\nbefore:\n%s", after, before)
	}
	if got := s.comments(pull); len(got) != 3 {
		t.Errorf("remarks %+v", got)
	}
	if !slices.Contains(p.pushed, "task-1") || !slices.Contains(p.pushed, "main") {
		t.Errorf("pushes heard: %v", p.pushed)
	}
}

// story is what happened, in short.
func (s *stand) story() string {
	s.t.Helper()
	list, err := s.store.Events(s.t.Context(), store.EventFilter{Limit: 500})
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range list {
		b.WriteString(string(e.Type) + " ")
	}
	return b.String()
}
