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
	// Helper hands the secret to git through a credential helper that reads it once
	// from a pipe: it is in no environment, argument or file. For places whose other
	// programs are not trusted with it.
	Helper bool
}

func (a Auth) user() string {
	if a.User == "" {
		return "x-access-token"
	}
	return a.User
}

// helperScript runs the command with its input moved out of the way of git's own; the
// helper, a child of git, finds it there. What is read from a pipe is gone.
const helperScript = `exec 3<&0 </dev/null; exec "$@"`

// helper is the command line of the credential helper.
const helper = `!f() { [ "$1" = get ] || exit 0; IFS= read -r u <&3 && IFS= read -r p <&3 && printf "username=%s\npassword=%s\n" "$u" "$p"; }; f`

// config names the helper. It comes behind the setting that clears all others.
func (a Auth) config() []string {
	return []string{"credential." + a.URL + ".helper=" + helper, "http.followRedirects=false"}
}

func (a Auth) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(a.user() + ":" + a.Secret))
}

// env puts the credential where only the started program sees it: neither in its
// arguments nor in a file. Redirects are not followed, since git would send the
// header on to the new host.
func (a Auth) env() []string {
	if a.Secret == "" || a.Helper {
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
