package forge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/forge/giteatest"
)

func TestForge_InfoTellsTheRepository(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		info, err := s.forge(s.author).Info(t.Context())
		if err != nil || info.FullName != s.repo.Name || info.DefaultBranch != s.repo.DefaultBranch || info.Empty || len(info.Missing) > 0 {
			t.Errorf("info %+v, %v", info, err)
		}
		if s.remote && info.CloneURL == "" {
			t.Error("no address to clone from")
		}
		checks := s.service.Check(t.Context(), s.repo.ID)
		if len(checks) != 1 || checks[0].Status != "ok" {
			t.Errorf("doctor says %+v", checks)
		}
	})
}

func TestForge_MissingPermissionsAreListed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		for token, lacks := range s.narrow {
			info, err := s.forge(token).Info(t.Context())
			if err != nil || !slices.Contains(info.Missing, lacks) || len(info.Missing) != 1 {
				t.Errorf("missing %q, want %q (%v)", info.Missing, lacks, err)
			}
			checks := s.as(token).Check(t.Context(), s.repo.ID)
			if len(checks) != 1 || checks[0].Status != "failed" || !strings.Contains(checks[0].Remedy, lacks) {
				t.Errorf("doctor says %+v", checks)
			}
			repo := squad.Repository{Name: s.repo.Name, Forge: s.repo.Forge, URL: s.repo.URL, APIURL: s.repo.APIURL}
			wants(t, "prepare", s.as(token).Prepare(t.Context(), &repo, ""), squad.CodeForbidden, lacks)
		}
	})
}

func TestForge_BranchesAreListed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("hi.txt", "hi\n")
		got, err := s.service.Branches(t.Context(), s.repo.ID)
		slices.Sort(got)
		want := []string{s.repo.DefaultBranch, "task-1"}
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("branches %v, %v", got, err)
		}
	})
}

func TestForge_EnsureTwiceMakesOne(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.repo.PRTemplate, s.repo.Policy.Labels = "{{summary}} for {{task}}", []string{"robot", "needs review"}
		if s.remote {
			s.repo.Reviewers = []string{"nobody-of-this-name", s.person}
		}
		sha := s.push("hi.txt", "hi\n")
		first, second := s.ensure(t.Context()), s.ensure(t.Context())
		if first.ID != second.ID || first.Number != second.Number {
			t.Errorf("two pull requests: %+v %+v", first, second)
		}
		if first.Title != "feat: add a greeting" || first.Body != "Add a greeting for Task #1: Add a greeting\n" || first.TaskID != s.task.ID || first.HeadSHA != sha ||
			first.Head != "task-1" || first.Base != s.repo.DefaultBranch || first.State != squad.PullOpen || first.Mergeable != "clean" || first.Checks != "none" || first.URL == "" {
			t.Errorf("pull request %+v", first)
		}
		labels := slices.Sorted(slices.Values(first.Labels))
		if !slices.Equal(labels, []string{"needs review", "robot"}) {
			t.Errorf("labels %q", labels)
		}
		if s.remote && !slices.Equal(first.Reviewers, []string{s.person}) {
			t.Errorf("reviewers %q: one that is not there must not hide the other", first.Reviewers)
		}
		if n := s.events(squad.EventPRCreated); n != 1 {
			t.Errorf("%d pr_created events", n)
		}
		sha = s.push("hi.txt", "hi there\n")
		if third := s.ensure(t.Context()); third.HeadSHA != sha || third.Number != first.Number {
			t.Errorf("after a second push: %+v", third)
		}
		if n := s.events(squad.EventPRUpdated); n == 0 {
			t.Error("no pr_updated event")
		}
	})
}

func TestForge_ADraftIsNotMergedUntilItIsReady(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.repo.Policy.Draft = true
		s.push("hi.txt", "hi\n")
		pull := s.ensure(t.Context())
		if !pull.Draft || pull.Mergeable != "blocked" || pull.Title != "feat: add a greeting" {
			t.Errorf("draft %+v", pull)
		}
		_, err := s.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{})
		wants(t, "merge a draft", err, squad.CodeConflict, "draft")
		f, title, yes := s.forge(s.author), "feat: greet all", true
		if got, err := f.UpdatePull(t.Context(), pull.Number, forge.PullUpdate{Title: &title}); err != nil || !got.Draft || got.Title != title {
			t.Errorf("a new title: %+v, %v", got, err)
		}
		ready, err := s.service.Ready(t.Context(), squad.System(), pull.ID)
		if err != nil || ready.Draft || s.remote && ready.Title != title || ready.Mergeable != "clean" {
			t.Errorf("made ready: %+v, %v", ready, err)
		}
		if got, err := f.UpdatePull(t.Context(), pull.Number, forge.PullUpdate{Draft: &yes}); err != nil || !got.Draft || got.Mergeable != "blocked" {
			t.Errorf("made a draft again: %+v, %v", got, err)
		}
	})
}

func TestForge_UpdateChangesWhatIsGiven(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("hi.txt", "hi\n")
		pull := s.ensure(t.Context())
		f, title, body, yes, no := s.forge(s.author), "fix: greet better", "New words.", true, false
		got, err := f.UpdatePull(t.Context(), pull.Number, forge.PullUpdate{Title: &title, Labels: []string{"robot"}})
		if err != nil || got.Title != title || got.Body != pull.Body || !slices.Equal(got.Labels, []string{"robot"}) {
			t.Errorf("title: %+v, %v", got, err)
		}
		if got, err = f.UpdatePull(t.Context(), pull.Number, forge.PullUpdate{Body: &body}); err != nil || strings.TrimSpace(got.Body) != body {
			t.Errorf("body: %+v, %v", got, err)
		}
		if got, err = f.UpdatePull(t.Context(), pull.Number, forge.PullUpdate{Closed: &yes}); err != nil || got.State != squad.PullClosed {
			t.Errorf("closed: %+v, %v", got, err)
		}
		if s.remote {
			_, err = f.Merge(t.Context(), pull.Number, forge.MergeOptions{})
			wants(t, "merge a closed one", err, squad.CodeConflict, "closed")
		}
		if got, err = f.UpdatePull(t.Context(), pull.Number, forge.PullUpdate{Closed: &no}); err != nil || got.State != squad.PullOpen {
			t.Errorf("opened again: %+v, %v", got, err)
		}
	})
}

func TestForge_ListIsByStateAndBranch(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("hi.txt", "hi\n")
		pull, f := s.ensure(t.Context()), s.forge(s.author)
		list := func(filter forge.PullFilter) []int64 {
			found, err := f.Pulls(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			var numbers []int64
			for _, p := range found {
				numbers = append(numbers, p.Number)
			}
			return numbers
		}
		only := []int64{pull.Number}
		if got := list(forge.PullFilter{}); !slices.Equal(got, only) {
			t.Errorf("open: %v", got)
		}
		if got := list(forge.PullFilter{Head: "task-1"}); !slices.Equal(got, only) {
			t.Errorf("of the branch: %v", got)
		}
		if got := list(forge.PullFilter{Head: "task-2"}); len(got) > 0 {
			t.Errorf("of another branch: %v", got)
		}
		if _, err := s.service.Close(t.Context(), squad.System(), pull.ID); err != nil {
			t.Fatal(err)
		}
		if got := list(forge.PullFilter{}); len(got) > 0 {
			t.Errorf("open after close: %v", got)
		}
		if got := list(forge.PullFilter{State: squad.PullClosed}); !slices.Equal(got, only) {
			t.Errorf("closed: %v", got)
		}
		if got := list(forge.PullFilter{State: squad.PullMerged}); len(got) > 0 {
			t.Errorf("merged: %v", got)
		}
		if n := s.events(squad.EventPRClosed); n != 1 {
			t.Errorf("%d pr_closed events", n)
		}
	})
}

func TestForge_MergeEachWay(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		for n, method := range []string{"merge", "squash", "rebase"} {
			s.branch = "task-" + method
			run(t, s.work, "checkout", "-q", s.repo.DefaultBranch)
			run(t, s.work, "pull", "-q", "squad", s.repo.DefaultBranch)
			s.push(method+".txt", "one\n")
			s.push(method+".txt", "two\n")
			pull := s.ensure(t.Context())
			s.moveBase("base-"+method+".txt", "meanwhile\n")
			merged, err := s.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{Method: method, Message: "feat: " + method + " it\n\nWith words."})
			if err != nil {
				t.Fatalf("%s: %v", method, err)
			}
			if merged.State != squad.PullMerged || merged.MergeSHA != s.tip() || merged.MergedAt.IsZero() {
				t.Errorf("%s: %+v, tip %s", method, merged, s.tip())
			}
			if got := run(t, s.work, "show", s.tip()+":"+method+".txt"); got != "two" {
				t.Errorf("%s: file is %q", method, got)
			}
			parents := len(strings.Fields(run(t, s.work, "rev-list", "--parents", "-n", "1", s.tip()))) - 1
			subject := run(t, s.work, "log", "-1", "--format=%s|%b", s.tip())
			if want := map[string]int{"merge": 2, "squash": 1, "rebase": 1}[method]; parents != want {
				t.Errorf("%s: %d parents", method, parents)
			}
			if method != "rebase" && !strings.HasPrefix(subject, "feat: "+method+" it|With words.") {
				t.Errorf("%s: message %q", method, subject)
			}
			if again, err := s.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{}); err != nil || again.MergeSHA != merged.MergeSHA {
				t.Errorf("%s again: %+v, %v", method, again, err)
			}
			if sha, err := s.forge(s.author).Merge(t.Context(), pull.Number, forge.MergeOptions{}); err != nil || sha != merged.MergeSHA {
				t.Errorf("%s again on the forge: %q, %v", method, sha, err)
			}
			if got := s.events(squad.EventPRMerged); got != n+1 {
				t.Errorf("%s: %d pr_merged events", method, got)
			}
			for range 2 { // gone already is no error
				if err := s.service.DeleteBranch(t.Context(), s.repo, s.branch); err != nil {
					t.Errorf("delete branch: %v", err)
				}
			}
		}
	})
}

func TestForge_ConflictIsSeenAndNotMerged(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("README.md", "theirs\n")
		pull := s.ensure(t.Context())
		s.moveBase("README.md", "ours\n")
		s.until(pull, "conflict is seen", func(p squad.PullRequest) bool { return p.Mergeable == "conflict" })
		_, err := s.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{})
		wants(t, "merge of a conflict", err, squad.CodeConflict)
	})
}

func TestForge_MergeOfAnOldHeadIsRefused(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		old := s.push("hi.txt", "hi\n")
		pull := s.ensure(t.Context())
		s.push("hi.txt", "hi there\n")
		s.refresh(pull)
		_, err := s.forge(s.author).Merge(t.Context(), pull.Number, forge.MergeOptions{HeadSHA: old, Author: "Ada", AuthorMail: "ada@example.com"})
		wants(t, "merge of an old head", err, squad.CodeConflict)
	})
}

func TestGitea_AnEmptyRepositoryIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	s := giteaStand(t)
	server := giteatest.Start(t)
	owner, _, _ := strings.Cut(s.repo.Name, "/")
	server.Call(t, http.MethodPost, "/orgs/"+owner+"/repos", server.Token, map[string]any{"name": "empty"}, nil)
	repo := squad.Repository{Name: owner + "/empty", Forge: squad.ForgeGitea, URL: server.URL + "/" + owner + "/empty.git"}
	s.repo = repo
	wants(t, "prepare", s.as(server.Token).Prepare(t.Context(), &repo, ""), squad.CodeRule, "first commit")
}

func TestGitea_ARepositoryIsTakenRightAfterItsFirstPush(t *testing.T) {
	t.Parallel()
	s := giteaStand(t)
	server := giteatest.Start(t)
	owner, _, _ := strings.Cut(s.repo.Name, "/")
	for i := range 5 { // Gitea's own mark of an empty repository is late now and then
		name := fmt.Sprintf("fresh-%d", i)
		server.Call(t, http.MethodPost, "/orgs/"+owner+"/repos", server.Token, map[string]any{"name": name, "default_branch": "main"}, nil)
		repo := squad.Repository{Name: owner + "/" + name, Forge: squad.ForgeGitea, URL: server.URL + "/" + owner + "/" + name + ".git"}
		run(t, s.work, "push", "-q", server.CloneURL(repo.Name, server.Token), "HEAD:refs/heads/main")
		if err := s.as(server.Token).Prepare(t.Context(), &repo, ""); err != nil {
			t.Fatalf("right after the first push: %v", err)
		}
	}
}
