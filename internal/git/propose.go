package git

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// synonyms of the types, as people and models write them.
var synonyms = map[string]string{
	"feature": "feat", "features": "feat", "add": "feat", "new": "feat", "bugfix": "fix", "bug": "fix", "hotfix": "fix", "fixes": "fix", "fixed": "fix",
	"doc": "docs", "documentation": "docs", "tests": "test", "testing": "test", "performance": "perf", "optimize": "perf", "deps": "build",
	"dependencies": "build", "cleanup": "refactor", "format": "style", "lint": "style", "formatting": "style", "pipeline": "ci", "workflow": "ci", "misc": "chore", "wip": "chore",
}

// hints are words that tell the type of a message that names none, in the order
// in which they decide.
var hints = []struct {
	kind  string
	words *regexp.Regexp
}{
	{"revert", regexp.MustCompile(`(?i)^revert`)},
	{"fix", regexp.MustCompile(`(?i)\b(fix(es|ed)?|bug|repair|correct|crash|wrong|broken)\b`)},
	{"docs", regexp.MustCompile(`(?i)\b(docs?|documentation|readme|comments?)\b`)},
	{"test", regexp.MustCompile(`(?i)\btests?\b`)},
	{"perf", regexp.MustCompile(`(?i)\b(perf|faster|speed|optimi[sz]e)\b`)},
	{"build", regexp.MustCompile(`(?i)\b(bump|upgrade|dependenc(y|ies)|makefile|dockerfile)\b`)},
	{"ci", regexp.MustCompile(`(?i)\b(ci|workflow|pipeline)\b`)},
	{"refactor", regexp.MustCompile(`(?i)\b(refactor|rename|move|simplify|clean ?up|extract)\b`)},
	{"style", regexp.MustCompile(`(?i)\b(format|lint|whitespace|indent)\b`)},
	{"feat", regexp.MustCompile(`(?i)\b(add|adds|added|implement|create|introduce|support|new|allow)\b`)},
}

// propose makes a message that passes, of the words of one that did not.
func propose(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\r\n", "\n")
	text = strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
	if len(text) > maxMessage/2 {
		text = strings.ToValidUTF8(text[:maxMessage/2], "")
	}
	header, rest, _ := strings.Cut(text, "\n")
	m := guessHeader(header)
	overflow := m.shorten()
	body := strings.TrimSpace(strings.TrimSpace(overflow + "\n\n" + strings.Trim(rest, "\n")))
	out := m.String()
	if body != "" {
		out += "\n\n" + body
	}
	if _, problems := parseMessage(out); len(problems) > 0 {
		return m.String() // the body itself is at fault, for example an empty BREAKING CHANGE
	}
	return out
}

func guessHeader(header string) Message {
	m := Message{Subject: header}
	if parts := headerForm.FindStringSubmatch(header); parts != nil && strings.TrimSpace(parts[5]) != "" {
		kind := strings.ToLower(parts[1])
		if s, ok := synonyms[kind]; ok {
			kind = s
		}
		if slices.Contains(Types, kind) {
			m = Message{Type: kind, Scope: cleanScope(parts[2]), Breaking: parts[3] == "!", Subject: parts[5]}
		}
	}
	m.Subject = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return ' '
		}
		return r
	}, m.Subject))
	m.Subject = strings.TrimLeft(m.Subject, ":!- ")
	m.Subject = strings.TrimSpace(strings.TrimRight(m.Subject, ". "))
	if m.Type == "" {
		m.Type = "chore"
		for _, h := range hints {
			if h.words.MatchString(m.Subject) {
				m.Type = h.kind
				break
			}
		}
		m.Subject = lowerFirst(m.Subject)
	}
	if m.Subject == "" {
		m.Subject = "describe the change"
	}
	return m
}

// shorten cuts the subject to fit the header and returns what was cut off.
func (m *Message) shorten() string {
	room := maxHeader - (utf8.RuneCountInString(m.String()) - utf8.RuneCountInString(m.Subject))
	runes := []rune(m.Subject)
	if len(runes) <= room {
		return ""
	}
	cut := room
	for i := room; i > room/2; i-- {
		if runes[i] == ' ' {
			cut = i
			break
		}
	}
	whole := m.Subject
	m.Subject = strings.TrimRight(string(runes[:cut]), " .,;:")
	if m.Subject == "" {
		m.Subject = "describe the change"
	}
	return whole
}

var notScope = regexp.MustCompile(`[^A-Za-z0-9._/,@-]+`)

func cleanScope(s string) string {
	s = notScope.ReplaceAllString(strings.Trim(s, "()"), "-")
	s = strings.TrimLeft(s, "._/,@-")
	s = strings.TrimRight(s, "-")
	if len(s) > 30 {
		return ""
	}
	return s
}

// lowerFirst makes a capital that only begins the sentence small; names and
// abbreviations stay.
func lowerFirst(s string) string {
	runes := []rune(s)
	if len(runes) > 1 && unicode.IsUpper(runes[0]) && unicode.IsLower(runes[1]) {
		runes[0] = unicode.ToLower(runes[0])
	}
	return string(runes)
}
