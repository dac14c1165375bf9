package git

import (
	"net/url"
	"strconv"
	"strings"

	squad "agentsquad"
)

// ZeroSHA stands for "no object" in ref updates.
const ZeroSHA = "0000000000000000000000000000000000000000"

// IsZero says whether an object name is all zeros, in either hash length.
func IsZero(sha string) bool { return sha != "" && strings.Trim(sha, "0") == "" }

// ValidSHA says whether s is a full object name (SHA-1 or SHA-256, lower case).
func ValidSHA(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ValidRef says whether name is a well-formed full ref name ("refs/…"), by the
// rules of git-check-ref-format.
func ValidRef(name string) bool {
	return strings.HasPrefix(name, "refs/") && strings.Count(name, "/") >= 2 && wellFormed(name)
}

// ValidBranch says whether name can be a branch: well-formed, not an option, not
// a full ref and not a word with a meaning of its own.
func ValidBranch(name string) bool {
	if name == "HEAD" || name == "@" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "refs/") {
		return false
	}
	return wellFormed(name)
}

func wellFormed(name string) bool {
	if name == "" || len(name) > 250 || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return false
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return false
		}
	}
	return true
}

// ValidRevision says whether s may be given to git as a revision: an object name,
// a branch, a full ref or HEAD. Expressions such as HEAD~3 are refused.
func ValidRevision(s string) bool {
	return s == "HEAD" || ValidSHA(s) || ValidRef(s) || ValidBranch(s)
}

// TaskBranch names the branch of a task.
func TaskBranch(number int64) string { return "task-" + strconv.FormatInt(number, 10) }

// TaskNumber returns the number in a task's branch name, and whether it is one.
func TaskNumber(branch string) (int64, bool) {
	digits, found := strings.CutPrefix(branch, "task-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil || n <= 0 || TaskBranch(n) != branch {
		return 0, false
	}
	return n, true
}

// CheckURL refuses addresses that git must not be sent to: anything but http and
// https with a host, and any that carries credentials.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return squad.Invalid("url", "the repository address cannot be read")
	case u.Scheme != "https" && u.Scheme != "http":
		return squad.Invalid("url", "the repository address must begin with https:// or http://")
	case u.Host == "" || strings.HasPrefix(u.Host, "-"):
		return squad.Invalid("url", "the repository address names no host")
	case u.User != nil:
		return squad.Invalid("url", "the repository address must not contain a user or password; store a credential instead")
	case u.RawQuery != "" || u.Fragment != "":
		return squad.Invalid("url", "the repository address must not have a query or fragment")
	}
	return nil
}

func checkRevision(field, s string) error {
	if !ValidRevision(s) {
		return squad.Invalid(field, "%q is not a branch, ref or commit", s)
	}
	return nil
}

func checkBranch(field, s string) error {
	if !ValidBranch(s) {
		return squad.Invalid(field, "%q is not a valid branch name", s)
	}
	return nil
}
