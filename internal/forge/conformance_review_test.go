package forge_test

import (
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/store"
)

func TestForge_AReviewIsReadOnceWithItsPlace(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("hi.txt", "hi\nyou\n")
		pull := s.ensure(t.Context())
		pull = s.review(pull, squad.ReviewComment{Path: "hi.txt", Line: 2, Side: "new", Verdict: "request_changes", Body: "be kinder"})
		if pull.Review != "changes_requested" {
			t.Errorf("review %q", pull.Review)
		}
		s.refresh(pull)
		got := s.comments(pull)
		if len(got) != 1 || got[0].Body != "be kinder" || got[0].Verdict != "request_changes" || got[0].Path != "hi.txt" || got[0].Line != 2 || got[0].Side != "new" {
			t.Fatalf("remarks %+v", got)
		}
		if s.remote && (got[0].Author != s.person || got[0].RemoteID == "") {
			t.Errorf("remark %+v", got[0])
		}
		if n := s.events(squad.EventReviewReceived); n != 1 {
			t.Errorf("%d review_received events", n)
		}
		s.push("hi.txt", "hello\nyou\n")
		s.ensure(t.Context())
		if pull = s.review(pull, squad.ReviewComment{Verdict: "approve", Body: "good"}); pull.Review != "approved" {
			t.Errorf("review %q", pull.Review)
		}
		if n := s.events(squad.EventReviewReceived); n != 2 {
			t.Errorf("%d review_received events", n)
		}
	})
}

func TestForge_RemarksComeInOrder(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("hi.txt", "hi\nyou\n")
		pull := s.ensure(t.Context())
		s.review(pull, squad.ReviewComment{Verdict: "comment", Body: "on the whole"})
		s.review(pull, squad.ReviewComment{Verdict: "comment", Body: "on a line", Path: "hi.txt", Line: 1, Side: "new"})
		s.review(pull, squad.ReviewComment{Verdict: "approve", Body: "with words"})
		var story []string
		for _, c := range s.comments(pull) {
			story = append(story, c.Verdict+" "+c.Body+" "+c.Path)
		}
		if got := strings.Join(story, "; "); got != "comment on the whole ; comment on a line hi.txt; approve with words " {
			t.Errorf("remarks %q", got)
		}
	})
}

// The author of a pull request is our own credential, from which a forge takes no
// verdict: what a person says on our page counts all the same, and once.
func TestForge_AVerdictFromOurPageCounts(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("hi.txt", "hi\nyou\n")
		pull := s.ensure(t.Context())
		for _, r := range []squad.NewReview{
			{Path: "hi.txt", Line: 2, Side: "new", Verdict: "request_changes", Body: "be kinder"},
			{Path: "hi.txt", Line: 1, Side: "new", Body: "see here"},
			{Body: "plain words"},
		} {
			c, err := s.service.Review(t.Context(), squad.System(), pull.ID, r)
			if err != nil || c.Body != r.Body || r.Verdict != "" && c.Verdict != r.Verdict {
				t.Errorf("review %+v: %v", c, err)
			}
		}
		s.refresh(pull)
		if got := s.comments(pull); len(got) != 3 || got[0].Verdict != "request_changes" {
			t.Errorf("remarks %+v", got)
		}
		if n := s.events(squad.EventReviewReceived); n != 3 {
			t.Errorf("%d review_received events", n)
		}
	})
}

func TestForge_ChecksAreSummed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		sha := s.push("hi.txt", "hi\n")
		pull, f := s.ensure(t.Context()), s.forge(s.author)
		for i, step := range []struct {
			name, status, want string
		}{{"build", "pending", "pending"}, {"lint", "success", "pending"}, {"build", "success", "success"}, {"lint", "failure", "failure"}} {
			if err := f.SetCheck(t.Context(), sha, forge.Check{Name: step.name, Status: step.status, Detail: "a word", URL: "https://ci.example.com/1"}); err != nil {
				t.Fatal(err)
			}
			if pull = s.refresh(pull); pull.Checks != step.want {
				t.Errorf("step %d: checks %q, want %q", i, pull.Checks, step.want)
			}
		}
		checks, err := f.Checks(t.Context(), sha)
		if err != nil || len(checks) != 2 {
			t.Errorf("checks %+v, %v", checks, err)
		}
		if n := s.events(squad.EventChecksChanged); n != 3 {
			t.Errorf("%d checks_changed events", n)
		}
		if !s.remote {
			return
		}
		for n := range 10 { // more than a page
			name := "job-" + string(rune('a'+n))
			if err := f.SetCheck(t.Context(), sha, forge.Check{Name: name, Status: "success"}); err != nil {
				t.Fatal(err)
			}
		}
		if checks, err = f.Checks(t.Context(), sha); err != nil || len(checks) != 12 {
			t.Errorf("%d checks, %v", len(checks), err)
		}
	})
}

func TestForge_ProtectionIsReadBeforeAMerge(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		if s.protect == nil {
			return // the local forge has none
		}
		s.protect(1, "ci/build")
		sha := s.push("hi.txt", "hi\n")
		pull := s.ensure(t.Context())
		_, err := s.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{})
		wants(t, "merge", err, squad.CodeRule, s.repo.DefaultBranch, "1 more approving review", `"ci/build", which has not run`)
		if err := s.forge(s.author).SetCheck(t.Context(), sha, forge.Check{Name: "ci/build", Status: "pending"}); err != nil {
			t.Fatal(err)
		}
		s.review(pull, squad.ReviewComment{Verdict: "approve", Body: "good"})
		_, err = s.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{})
		wants(t, "merge", err, squad.CodeRule, `"ci/build", which is pending`)
		if err := s.forge(s.author).SetCheck(t.Context(), sha, forge.Check{Name: "ci/build", Status: "success"}); err != nil {
			t.Fatal(err)
		}
		if merged, err := s.service.Merge(t.Context(), squad.System(), pull.ID, squad.MergeOptions{}); err != nil || merged.State != squad.PullMerged {
			t.Errorf("merge of what is allowed: %+v, %v", merged, err)
		}
	})
}

func TestForge_DiffIsOfTheBranch(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("with space.txt", "hi\n")
		pull := s.ensure(t.Context())
		s.moveBase("other.txt", "not of the branch\n")
		diff, err := s.service.Diff(t.Context(), squad.System(), pull.ID)
		if err != nil || len(diff.Files) != 1 || diff.Files[0].Path != "with space.txt" || diff.Files[0].Additions != 1 {
			t.Errorf("diff %+v, %v", diff, err)
		}
	})
}

func TestForge_IssuesAreMadeReadAndAnswered(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		f := s.forge(s.author)
		made, err := f.CreateIssue(t.Context(), "It is rude", "Please greet.")
		if !s.remote {
			wants(t, "issue on the local forge", err, squad.CodeRule, "tasks")
			return
		}
		if err != nil || made.Number == 0 || made.URL == "" {
			t.Fatalf("issue %+v, %v", made, err)
		}
		if err := f.CommentIssue(t.Context(), made.Number, "Done."); err != nil {
			t.Error(err)
		}
		got, err := f.Issue(t.Context(), made.Number)
		if err != nil || got.Title != "It is rude" || got.Body != "Please greet." || got.State != "open" {
			t.Errorf("issue %+v, %v", got, err)
		}
		_, err = f.Issue(t.Context(), 4711)
		wants(t, "issue that is not there", err, squad.CodeNotFound)
	})
}

func TestForge_ErrorsHaveTheirClass(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		ctx, f := t.Context(), s.forge(s.author)
		base := s.repo.DefaultBranch
		_, err := f.Pull(ctx, 4711)
		wants(t, "pull request that is not there", err, squad.CodeNotFound)
		_, err = f.CreatePull(ctx, forge.NewPull{Title: "x", Head: base, Base: base})
		wants(t, "a branch into itself", err, squad.CodeRule)
		_, err = f.CreatePull(ctx, forge.NewPull{Title: "x", Head: "no-such-branch", Base: base})
		if code := squad.CodeOf(err); code != squad.CodeNotFound && code != squad.CodeRule {
			t.Errorf("unknown head: %v", err)
		}
		s.push("hi.txt", "hi\n")
		s.ensure(ctx)
		_, err = f.CreatePull(ctx, forge.NewPull{Title: "x", Head: "task-1", Base: base})
		wants(t, "a second one for the branch", err, squad.CodeConflict)
		if !s.remote {
			return
		}
		_, err = s.forge("0123456789012345678901234567890123456789").Pull(ctx, 1)
		wants(t, "bad token", err, squad.CodeUnauthorized)
		gone := s.repo
		gone.Name = strings.Split(s.repo.Name, "/")[0] + "/no-such-repository"
		g, err := s.service.For(ctx, gone)
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.Info(ctx)
		wants(t, "repository that is not there", err, squad.CodeNotFound)
		checks := s.as("0123456789012345678901234567890123456789").Check(ctx, s.repo.ID)
		if len(checks) != 1 || checks[0].Status != "failed" || strings.Contains(checks[0].Detail, "0123456789") {
			t.Errorf("doctor says %+v", checks)
		}
	})
}

// More open pull requests than a page must not hide the one of a branch.
func TestForge_EnsureFindsItsOwnAmongMany(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, s *stand) {
		s.push("hi.txt", "hi\n")
		first := s.ensure(t.Context())
		if s.remote {
			s.crowd(11)
		}
		if err := s.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.DeletePullRequest(t.Context(), first.ID) }); err != nil && s.remote {
			t.Fatal(err)
		}
		if again := s.ensure(t.Context()); s.remote && again.Number != first.Number {
			t.Errorf("#%d, want #%d", again.Number, first.Number)
		}
	})
}

// crowd opens pull requests of other branches.
func (s *stand) crowd(n int) {
	s.t.Helper()
	var refs []string
	for i := range n {
		name := "crowd-" + string(rune('a'+i))
		run(s.t, s.work, "checkout", "-q", "-B", name, "squad/"+s.repo.DefaultBranch)
		run(s.t, s.work, "commit", "-q", "--allow-empty", "-m", "docs: "+name)
		refs = append(refs, name)
	}
	run(s.t, s.work, append([]string{"push", "-q", "squad"}, refs...)...)
	f := s.forge(s.reviewer)
	for _, name := range refs {
		if _, err := f.CreatePull(s.t.Context(), forge.NewPull{Title: name, Head: name, Base: s.repo.DefaultBranch}); err != nil {
			s.t.Fatal(err)
		}
	}
}
