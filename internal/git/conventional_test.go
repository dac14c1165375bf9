package git_test

import (
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/git"
)

func TestParseConventional_TakesAMessageApart(t *testing.T) {
	t.Parallel()
	m, err := git.ParseConventional("feat(api)!: send events\n\nReaders resume\nwhere they were.\n\nSecond part.\n\nBREAKING CHANGE: ids are numbers\nRefs #12\nReviewed-by: Ada\n  and Grace")
	if err != nil {
		t.Fatal(err)
	}
	if m.Type != "feat" || m.Scope != "api" || !m.Breaking || m.Subject != "send events" || m.Body != "Readers resume\nwhere they were.\n\nSecond part." {
		t.Errorf("got %+v", m)
	}
	want := []git.Footer{{"BREAKING CHANGE", "ids are numbers"}, {"Refs", "12"}, {"Reviewed-by", "Ada\n  and Grace"}}
	if len(m.Footers) != 3 || m.Footers[0] != want[0] || m.Footers[1] != want[1] || m.Footers[2] != want[2] {
		t.Errorf("footers: got %q", m.Footers)
	}
}

func TestParseConventional_AcceptsEveryType(t *testing.T) {
	t.Parallel()
	for _, kind := range git.Types {
		if m, err := git.ParseConventional(kind + ": do it"); err != nil || m.Breaking {
			t.Errorf("%s: %+v, %v", kind, m, err)
		}
	}
	m, err := git.ParseConventional("fix: stop\n\nBREAKING CHANGE: no more")
	if err != nil || !m.Breaking {
		t.Errorf("footer alone must break: %+v, %v", m, err)
	}
}

func TestParseConventional_RefusesWithProposal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, problem, proposal string }{
		{"", "empty", "chore: describe the change"},
		{"Fixed the login bug.", "type(scope): subject", "fix: fixed the login bug"},
		{"Add a cart", "type(scope): subject", "feat: add a cart"},
		{"feature: add cart", `type "feature"`, "feat: add cart"},
		{"Fix: cart", `type "Fix"`, "fix: cart"},
		{"fix:cart", "one space", "fix: cart"},
		{"fix : cart", "one space", "fix: cart"},
		{"fix(): cart", "scope", "fix: cart"},
		{"fix(the (odd): cart", "type(scope)", "fix: fix(the (odd): cart"},
		{"fix: cart.", "period", "fix: cart"},
		{"fix: cart\nmore", "blank line", "fix: cart\n\nmore"},
		{"fix: ", "empty", ""},
		{"docs: " + strings.Repeat("word ", 40), "characters", ""},
		{"bump go to 1.26", "type(scope)", "build: bump go to 1.26"},
		{"fix: x\n\nBREAKING CHANGE: ", "", ""},
	} {
		_, err := git.ParseConventional(c.in)
		bad, ok := git.AsMessageError(err)
		if c.problem == "" && err == nil {
			continue
		}
		if !ok || squad.CodeOf(err) != squad.CodeRule {
			t.Errorf("%q: want a refusal by rule, got %v", c.in, err)
			continue
		}
		if !strings.Contains(strings.Join(bad.Problems, "; "), c.problem) {
			t.Errorf("%q: problems %q do not name %q", c.in, bad.Problems, c.problem)
		}
		if c.proposal != "" && bad.Proposal != c.proposal {
			t.Errorf("%q: proposal %q, want %q", c.in, bad.Proposal, c.proposal)
		}
		if _, err := git.ParseConventional(bad.Proposal); err != nil {
			t.Errorf("%q: the proposal %q is refused itself: %v", c.in, bad.Proposal, err)
		}
	}
}

func FuzzParseConventional(f *testing.F) {
	for _, s := range []string{"fix: a", "feat(x)!: b\n\nbody\n\nBREAKING CHANGE: c", "Fixed it.", "fix(", "\x00", "a: \u2028", "fix: x\n\nA: b\n\n\nBREAKING CHANGE: "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := git.ParseConventional(s)
		if err != nil {
			bad, ok := git.AsMessageError(err)
			if !ok || len(bad.Problems) == 0 {
				t.Fatalf("refused without a reason: %v", err)
			}
			if _, err := git.ParseConventional(bad.Proposal); err != nil {
				t.Fatalf("proposal %q for %q is refused: %v", bad.Proposal, s, err)
			}
			return
		}
		again, err := git.ParseConventional(m.String())
		if err != nil || again.Type != m.Type || again.Subject != m.Subject || again.Breaking != m.Breaking {
			t.Fatalf("%q put together as %q reads %+v, %v", s, m.String(), again, err)
		}
	})
}
