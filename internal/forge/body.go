package forge

import (
	"fmt"
	"strings"
	"unicode"

	squad "agentsquad"
	"agentsquad/internal/git"
)

// Evidence is what was observed while the work was done. It goes into the pull
// request so that a reviewer judges facts and not an agent's word.
type Evidence struct {
	Summary  string       // the agent's own words
	Commands []CommandRun // commands that ran, newest last
	Commits  []squad.Commit
	CostUSD  float64
	Tokens   int64
}

// CommandRun is one command and how it ended.
type CommandRun struct {
	Command  string
	ExitCode int
}

// maxEvidenceCommands bounds the list in a pull request's text.
const maxEvidenceCommands = 20

// Title makes a conventional subject of a task's title. One that is conventional
// already is kept; labels choose the type where one fits.
func Title(t squad.Task) string {
	title := strings.TrimRight(strings.Join(strings.Fields(t.Title), " "), ".")
	_, err := git.ParseConventional(title)
	if err == nil {
		return title
	}
	if bad, ok := git.AsMessageError(err); ok { // "Fix: the cart" names its type, only in another way
		m, err := git.ParseConventional(bad.Proposal)
		if _, rest, found := strings.Cut(title, ":"); err == nil && found && strings.EqualFold(strings.TrimSpace(rest), m.Subject) {
			return truncate(bad.Proposal, 72)
		}
	}
	kind := "feat"
	lower := strings.ToLower(title + " " + strings.Join(t.Labels, " "))
	for _, hint := range [...]struct{ word, kind string }{
		{"fix", "fix"}, {"bug", "fix"}, {"docs", "docs"}, {"readme", "docs"}, {"document", "docs"},
		{"refactor", "refactor"}, {"test", "test"}, {"perf", "perf"}, {"chore", "chore"}, {"ci", "ci"},
	} {
		if containsWord(lower, hint.word) {
			kind = hint.kind
			break
		}
	}
	subject := []rune(title)
	if len(subject) > 1 && !unicode.IsUpper(subject[1]) { // keep acronyms
		subject[0] = unicode.ToLower(subject[0])
	}
	return truncate(kind+": "+string(subject), 72)
}

// Body fills the repository's template, or our own, with the task and what was
// observed. A template may use {{task}}, {{description}}, {{summary}},
// {{evidence}}, {{commits}} and {{cost}}.
func Body(template, taskURL string, t squad.Task, e Evidence) string {
	if strings.TrimSpace(template) == "" {
		template = "{{summary}}\n\n## Task\n\n{{task}}\n\n{{description}}\n\n## Commits\n\n{{commits}}\n\n## Evidence\n\n{{evidence}}\n\n{{cost}}\n"
	}
	link := fmt.Sprintf("Task #%d: %s", t.Number, t.Title)
	if taskURL != "" {
		link = fmt.Sprintf("[Task #%d](%s): %s", t.Number, taskURL, t.Title)
	}
	out := strings.NewReplacer(
		"{{task}}", link,
		"{{description}}", quote(t.Description),
		"{{summary}}", orElse(e.Summary, t.Title),
		"{{evidence}}", commands(e.Commands),
		"{{commits}}", commits(e.Commits),
		"{{cost}}", fmt.Sprintf("Cost: $%.4f, %d tokens.", e.CostUSD, e.Tokens),
	).Replace(template)
	return strings.TrimSpace(out) + "\n"
}

func commands(runs []CommandRun) string {
	if len(runs) == 0 {
		return "No command was observed."
	}
	var b strings.Builder
	if extra := len(runs) - maxEvidenceCommands; extra > 0 {
		fmt.Fprintf(&b, "(%d earlier commands)\n\n", extra)
		runs = runs[extra:]
	}
	b.WriteString("| exit | command |\n|---|---|\n")
	for _, r := range runs {
		line := strings.NewReplacer("|", "\\|", "\n", " ", "`", "'").Replace(truncate(r.Command, 120))
		fmt.Fprintf(&b, "| %d | `%s` |\n", r.ExitCode, line)
	}
	return strings.TrimRight(b.String(), "\n")
}

func commits(list []squad.Commit) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "- %.10s %s\n", c.SHA, c.Subject)
	}
	return orElse(strings.TrimRight(b.String(), "\n"), "None yet.")
}

func quote(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

func orElse(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return text
}

func truncate(text string, max int) string {
	runes := []rune(text)
	if len(runes) <= max {
		return text
	}
	return strings.TrimRight(string(runes[:max-1]), " ") + "…"
}

func containsWord(text, word string) bool {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if w == word || w == word+"s" {
			return true
		}
	}
	return false
}
