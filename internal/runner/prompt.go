package runner

import (
	"fmt"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/git"
)

// firstPrompt is what an agent is told about a task.
func firstPrompt(s scene, p place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Task %d: %s\n\n", s.task.Number, s.task.Title)
	if text := strings.TrimSpace(s.task.Description); text != "" {
		b.WriteString(text + "\n\n")
	}
	fmt.Fprintf(&b, `## Where you work

The repository is in %s, on branch %s, made from %s. Work there. You may commit: each message is a conventional commit
(feat|fix|chore|docs|style|refactor|test|build|ci|perf|revert, then an optional scope, a colon and a subject). What you leave uncommitted is
committed for you. Do not push and do not open a pull request: that is done when you have finished. You have no credentials and need none.
`, p.Dir, p.Branch, p.Base)
	return b.String()
}

// clashPrompt gives the agent a conflict with both sides' text.
func clashPrompt(s scene, p place, files []git.FileConflict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "While you worked on task %d, %s moved, and the two do not go together. A rebase on origin/%s was begun and stopped at these places:\n\n", s.task.Number, p.Base, p.Base)
	for i, f := range files {
		if i == 20 {
			fmt.Fprintf(&b, "… and %d more files.\n", len(files)-i)
			break
		}
		fmt.Fprintf(&b, "## %s (%s)\n\n", f.Path, orElse(f.Kind, "contents"))
		for j, h := range f.Hunks {
			if j == 5 {
				break
			}
			fmt.Fprintf(&b, "What %s has now:\n\n%s\nWhat you wrote:\n\n%s\n", p.Base, fence(h.Ours), fence(h.Theirs))
		}
	}
	fmt.Fprintf(&b, "Keep the intent of both. In %s: edit the files, `git add` them, then `git rebase --continue` until it is done.\n", p.Dir)
	return b.String()
}

// refusedPrompt gives the agent a push that a rule refused.
func refusedPrompt(reason string) string {
	return "Your work could not be pushed. The reason given:\n\n" + fence(reason) +
		"\nMend it: reword, amend or split your commits as needed, or remove what may not be pushed. Then finish.\n"
}

func fence(text string) string {
	if len(text) > 4000 {
		text = text[:4000] + "\n…"
	}
	return "```\n" + strings.TrimRight(strings.ReplaceAll(text, "```", "'''"), "\n") + "\n```\n"
}

// talk joins what people and members said since the last turn.
func talk(messages []squad.Message, comments []squad.ReviewComment, names map[string]string) string {
	var b strings.Builder
	if len(comments) > 0 {
		b.WriteString("# Review of your pull request\n\n")
	}
	for _, c := range comments {
		where := ""
		if c.Path != "" {
			where = fmt.Sprintf(" on %s line %d", c.Path, c.Line)
		}
		verdict := ""
		if c.Verdict == "request_changes" {
			verdict = " asks for changes"
		}
		fmt.Fprintf(&b, "**%s**%s%s:\n\n%s\n\n", c.Author, verdict, where, c.Body)
	}
	if len(messages) > 0 {
		b.WriteString("# Messages\n\n")
	}
	for _, m := range messages {
		fmt.Fprintf(&b, "**%s** (%s):\n\n%s\n\n", orElse(names[m.From], m.From), m.Kind, m.Body)
	}
	return b.String()
}
