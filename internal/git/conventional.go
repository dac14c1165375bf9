package git

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	squad "agentsquad"
)

// Types are the kinds of change that a commit message may name.
var Types = []string{"feat", "fix", "chore", "docs", "style", "refactor", "test", "build", "ci", "perf", "revert"}

const (
	maxHeader  = 100
	maxMessage = 64 << 10
)

// Message is a conventional commit message, taken apart.
type Message struct {
	Type     string
	Scope    string
	Breaking bool // "!" in the header or a BREAKING CHANGE footer
	Subject  string
	Body     string
	Footers  []Footer
}

// Footer is one "Token: value" line at the end of a message, with what follows it
// indented or unfinished.
type Footer struct{ Token, Value string }

// String puts the message together again.
func (m Message) String() string {
	var b strings.Builder
	b.WriteString(m.Type)
	if m.Scope != "" {
		b.WriteString("(" + m.Scope + ")")
	}
	if m.Breaking && !slices.ContainsFunc(m.Footers, func(f Footer) bool { return isBreaking(f.Token) }) {
		b.WriteString("!")
	}
	b.WriteString(": " + m.Subject)
	if m.Body != "" {
		b.WriteString("\n\n" + m.Body)
	}
	for i, f := range m.Footers {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\n" + f.Token + ": " + f.Value)
	}
	return b.String()
}

// MessageError says what is wrong with a commit message. Proposal is one that
// would pass, made of the same words.
type MessageError struct {
	Problems []string
	Proposal string
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("the commit message is not a conventional commit: %s; for example: %q",
		strings.Join(e.Problems, "; "), firstLine(e.Proposal))
}

var (
	headerForm = regexp.MustCompile(`^([A-Za-z]+)(\([^()\n]*\))?(!)?(\s*:)(.*)$`)
	scopeForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/,@-]*$`)
	footerForm = regexp.MustCompile(`^(BREAKING CHANGE|[A-Za-z][A-Za-z0-9-]*)(?:: | #)(.*)$`)
)

func isBreaking(token string) bool { return token == "BREAKING CHANGE" || token == "BREAKING-CHANGE" }

// ParseConventional takes a commit message apart. A bad one is refused with a
// [*squad.Error] of CodeRule around a [*MessageError].
func ParseConventional(text string) (Message, error) {
	m, problems := parseMessage(text)
	if len(problems) == 0 {
		return m, nil
	}
	bad := &MessageError{Problems: problems, Proposal: propose(text)}
	return Message{}, &squad.Error{Code: squad.CodeRule, Field: "message", Message: bad.Error(), Err: bad}
}

// AsMessageError returns the details of a refused message.
func AsMessageError(err error) (*MessageError, bool) {
	var bad *MessageError
	ok := errors.As(err, &bad)
	return bad, ok
}

func parseMessage(text string) (Message, []string) {
	var problems []string
	if len(text) > maxMessage {
		return Message{}, []string{fmt.Sprintf("it is longer than %d bytes", maxMessage)}
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return Message{}, []string{"it is not valid UTF-8 text"}
	}
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if text == "" {
		return Message{}, []string{"it is empty"}
	}
	header, rest, _ := strings.Cut(text, "\n")
	m, problems := parseHeader(header)
	if rest != "" && !strings.HasPrefix(rest, "\n") {
		problems = append(problems, "a blank line must stand between the header and the body")
	}
	m.Body, m.Footers = splitFooters(strings.Trim(rest, "\n"))
	for _, f := range m.Footers {
		if isBreaking(f.Token) {
			m.Breaking = true
			if strings.TrimSpace(f.Value) == "" {
				problems = append(problems, "BREAKING CHANGE must say what breaks")
			}
		}
	}
	return m, problems
}

func parseHeader(header string) (Message, []string) {
	var problems []string
	parts := headerForm.FindStringSubmatch(header)
	if parts == nil {
		return Message{}, []string{`the header must read "type(scope): subject", the scope being optional`}
	}
	m := Message{Type: parts[1], Breaking: parts[3] == "!", Subject: strings.TrimSpace(parts[5])}
	if !slices.Contains(Types, m.Type) {
		problems = append(problems, fmt.Sprintf("type %q is not one of %s", m.Type, strings.Join(Types, ", ")))
	}
	if parts[2] != "" {
		m.Scope = strings.Trim(parts[2], "()")
		if !scopeForm.MatchString(m.Scope) || len(m.Scope) > 50 {
			problems = append(problems, fmt.Sprintf("scope %q must be one short name of letters, digits and . _ / , @ -", m.Scope))
		}
	}
	switch {
	case m.Subject == "":
		problems = append(problems, "the subject is empty")
	case parts[4] != ":" || !strings.HasPrefix(parts[5], " ") || strings.HasPrefix(parts[5], "  "):
		problems = append(problems, "exactly one space must stand behind the colon and none before it")
	}
	if strings.HasSuffix(m.Subject, ".") {
		problems = append(problems, "the subject must not end with a period")
	}
	if n := utf8.RuneCountInString(header); n > maxHeader {
		problems = append(problems, fmt.Sprintf("the header has %d characters, at most %d are allowed", n, maxHeader))
	}
	return m, problems
}

// splitFooters takes the last paragraph off the body where it begins with a
// footer. A BREAKING CHANGE counts wherever a paragraph begins with it.
func splitFooters(rest string) (string, []Footer) {
	paragraphs := strings.Split(rest, "\n\n")
	first := len(paragraphs)
	for i := len(paragraphs) - 1; i >= 0; i-- {
		line := firstLine(strings.TrimLeft(paragraphs[i], "\n"))
		if footerForm.MatchString(line) && (i == len(paragraphs)-1 || strings.HasPrefix(line, "BREAKING")) {
			first = i
			continue
		}
		break
	}
	var footers []Footer
	for _, line := range strings.Split(strings.Join(paragraphs[first:], "\n"), "\n") {
		if m := footerForm.FindStringSubmatch(line); m != nil {
			footers = append(footers, Footer{Token: m[1], Value: m[2]})
		} else if n := len(footers); n > 0 {
			footers[n-1].Value += "\n" + line
		}
	}
	for i := range footers {
		footers[i].Value = strings.TrimRight(footers[i].Value, "\n ")
	}
	return strings.Trim(strings.Join(paragraphs[:first], "\n\n"), "\n"), footers
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
