package agent

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// secretForms are well-known shapes of credentials. A sandbox holds none of ours;
// this is for those that an agent finds in code or is given in a conversation.
var secretForms = regexp.MustCompile(strings.Join([]string{
	`gh[pousr]_[A-Za-z0-9]{30,}`,
	`github_pat_[A-Za-z0-9_]{30,}`,
	`sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}`,
	`(?:sk_)?e2b_[0-9a-f]{32,}`,
	`(?:squad|agent|session|signin)_[0-9a-f]{40,}`,
	`glpat-[A-Za-z0-9_-]{20,}`,
	`xox[abpr]-[A-Za-z0-9-]{20,}`,
	`AKIA[0-9A-Z]{16}`,
	`AIza[0-9A-Za-z_-]{35}`,
	`eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`,
	`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?`,
}, "|"))

const redacted = "[secret removed]"

// secretSigns are parts that each of the forms has. Looking for them is much
// cheaper than the expression, and nearly all output has none.
var secretSigns = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk-", "e2b_", "squad_", "agent_", "session_", "signin_", "glpat-", "xox", "AKIA", "AIza", "eyJ", "PRIVATE KEY",
}

// Redact takes out what looks like a credential.
func Redact(text string) string {
	if !slices.ContainsFunc(secretSigns, func(sign string) bool { return strings.Contains(text, sign) }) {
		return text
	}
	return secretForms.ReplaceAllString(text, redacted)
}

// clean makes output safe to store and to show: valid UTF-8, no NUL (PostgreSQL
// refuses it) and no control codes but those of plain text and of colours. The
// page's terminal interprets ESC sequences itself; OSC and the like, which could
// set titles or the clipboard of a real terminal, are taken out.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.Contains(text, "\x1b") {
		text = oscSequence.ReplaceAllString(text, "")
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == 0x1b:
			return r
		case r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0):
			return -1
		}
		return r
	}, text)
	if strings.Contains(text, "\x1b") { // one that ends in another piece must not begin in this one
		text = strings.TrimRight(oscBegin.ReplaceAllString(text, "$1"), "\x1b")
	}
	return text
}

var oscSequence = regexp.MustCompile("\x1b(?:\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[PX^_][^\x1b]*\x1b\\\\)")

var oscBegin = regexp.MustCompile("\x1b+([\\]PX^_])")

// wholeRunes cuts b where its last character is complete, and returns the rest
// to wait for more.
func wholeRunes(b []byte) (whole, rest []byte) {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i], b[len(b)-i:]
			}
			break
		}
	}
	return b, nil
}

// tail returns the last max bytes of text, beginning with a whole character.
func tail(text string, max int) string {
	if len(text) <= max {
		return text
	}
	text = text[len(text)-max:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "…" + text
}
