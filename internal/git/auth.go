package git

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
)

// Auth is a credential for one address. Its zero value is none.
type Auth struct {
	URL    string // every address that begins with it gets the credential
	User   string // "x-access-token" where empty
	Secret string
}

func (a Auth) basic() string {
	user := a.User
	if user == "" {
		user = "x-access-token"
	}
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + a.Secret))
}

// env puts the credential where only the started program sees it: neither in its
// arguments nor in a file. Redirects are not followed, since git would send the
// header on to the new host.
func (a Auth) env() []string {
	if a.Secret == "" {
		return nil
	}
	return []string{
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=http." + a.URL + ".extraHeader",
		"GIT_CONFIG_VALUE_0=Authorization: Basic " + a.basic(),
		"GIT_CONFIG_KEY_1=http.followRedirects",
		"GIT_CONFIG_VALUE_1=false",
	}
}

func (a Auth) secrets() []string {
	if a.Secret == "" {
		return nil
	}
	return []string{a.Secret, url.QueryEscape(a.Secret), a.basic()}
}

var (
	urlCredential = regexp.MustCompile(`(?i)(https?://)[^/\s@"']+@`)
	authHeader    = regexp.MustCompile(`(?i)(authorization:\s*(?:basic|bearer|token)\s+)\S+`)
	knownToken    = regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{20,})`)
)

// Redact cuts credentials out of text: those given, and whatever looks like one.
func Redact(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	text = urlCredential.ReplaceAllString(text, "${1}[redacted]@")
	text = authHeader.ReplaceAllString(text, "${1}[redacted]")
	return knownToken.ReplaceAllString(text, "[redacted]")
}
