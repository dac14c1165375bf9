package forge_test

import (
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/git"
)

func TestTitle_IsAConventionalSubject(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Add a greeting":                 "feat: add a greeting",
		"Fix the cart.":                  "fix: fix the cart",
		"Fix: the cart":                  "fix: the cart",
		"Feature: greet all":             "feat: greet all",
		"feat(ui)!: new colours":         "feat(ui)!: new colours",
		"API returns 404":                "feat: API returns 404",
		"Explain it in the README":       "docs: explain it in the README",
		"Two\nlines  of   words":         "feat: two lines of words",
		strings.Repeat("very long ", 20): "feat: very long very long very long very long very long very long very…",
	} {
		got := forge.Title(squad.Task{Title: title})
		if _, err := git.ParseConventional(got); got != want || err != nil {
			t.Errorf("%q: %q, want %q (%v)", title, got, want, err)
		}
	}
	if got := forge.Title(squad.Task{Title: "Cart loses things", Labels: []string{"bug"}}); got != "fix: cart loses things" {
		t.Errorf("with a label: %q", got)
	}
}

// The body tells what was observed; words of the agent fill no other place of the
// template and break out of no table.
func TestBody_TellsTaskEvidenceAndCost(t *testing.T) {
	t.Parallel()
	task := squad.Task{Number: 7, Title: "Add a greeting", Description: "Be kind.\nTo all."}
	runs := []forge.CommandRun{{Command: "go test ./...", ExitCode: 1}, {Command: "echo `a` | tee x\nrm y", ExitCode: 0}}
	got := forge.Body("", "https://squad.example/tasks/7", task, forge.Evidence{
		Summary: "Done, {{cost}}", Commands: runs, Commits: []squad.Commit{{SHA: "0123456789abcdef", Subject: "feat: greet"}}, CostUSD: 0.12345, Tokens: 678,
	})
	for _, want := range []string{
		"Done, {{cost}}\n", "[Task #7](https://squad.example/tasks/7): Add a greeting", "> Be kind.\n> To all.", "- 0123456789 feat: greet",
		"| 1 | `go test ./...` |", "| 0 | `echo 'a' \\| tee x rm y` |", "Cost: $0.1235, 678 tokens.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for range 30 {
		runs = append(runs, forge.CommandRun{Command: "true"})
	}
	if got := forge.Body("{{evidence}}", "", task, forge.Evidence{Commands: runs}); !strings.HasPrefix(got, "(12 earlier commands)") || strings.Count(got, "\n| 0 |") != 20 {
		t.Errorf("many commands:\n%s", got)
	}
}
