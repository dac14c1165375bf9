package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	squad "agentsquad"
)

// Kind says what sort of failure a git command met.
type Kind string

// The kinds of failure. Only [KindNetwork] is worth a retry by itself.
const (
	KindOther    Kind = "other"
	KindNetwork  Kind = "network"   // host not reached, connection broken, 5xx
	KindAuth     Kind = "auth"      // credential missing or refused
	KindNotFound Kind = "not_found" // repository or ref does not exist
	KindRejected Kind = "rejected"  // the remote branch has moved on
	KindRefused  Kind = "refused"   // a rule of the remote refuses the push
	KindConflict Kind = "conflict"  // both sides changed the same places
	KindCorrupt  Kind = "corrupt"   // the local repository is damaged
	KindTimeout  Kind = "timeout"
)

// Error is a git command that failed. Stderr is bounded and holds no credential.
type Error struct {
	Op       string // git's subcommand
	Kind     Kind
	ExitCode int
	Stderr   string
	Err      error // where the program did not run to its end
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("git %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("git %s: exit %d: %s", e.Op, e.ExitCode, lastLine(e.Stderr))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first [Error] in the chain, "" where there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// lastLine picks the words of git's standard error that say why: the remote's own
// and the ref's refusal for a push, else the fatal line, else the last.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	var words []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "remote: "); ok && !progressLine.MatchString(line) && len(words) < 4 {
			if text = strings.TrimSpace(strings.TrimPrefix(text, "error: ")); text != "" {
				words = append(words, text)
			}
		}
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "! [") {
			return strings.Join(append([]string{strings.Join(strings.Fields(line[2:]), " ")}, words...), "; ")
		}
	}
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "fatal: "); ok {
			return strings.Join(append(words, rest), "; ")
		}
	}
	return lines[len(lines)-1]
}

// signs are texts of git and curl, in the order in which they decide.
var signs = []struct {
	kind Kind
	text []string
}{
	{KindNetwork, []string{"the commits are kept on the server"}}, // our gateway, when upstream is away
	{KindAuth, []string{"authentication failed", "could not read username", "could not read password", "invalid credentials", "terminal prompts disabled", "returned error: 401", "returned error: 403"}},
	{KindNotFound, []string{"repository not found", "returned error: 404", "' not found", "couldn't find remote ref", "could not find remote branch", "does not appear to be a git repository"}},
	{KindRejected, []string{"non-fast-forward", "(fetch first)", "stale info", "remote contains work that you do not", "cannot lock ref", "not possible to fast-forward", "the branch has moved"}},
	{KindRefused, []string{"pre-receive hook declined", "protected branch", "[remote rejected]", "hook declined", "denying"}},
	{KindConflict, []string{"conflict (", "could not apply", "unmerged files", "automatic merge failed"}},
	{KindNetwork, []string{
		"could not resolve host", "failed to connect", "couldn't connect", "connection refused", "connection reset", "connection timed out",
		"operation timed out", "network is unreachable", "the remote end hung up", "early eof", "unexpected disconnect", "rpc failed",
		"empty reply from server", "gnutls_handshake", "ssl_connect", "recv failure", "send failure", "returned error: 50", "returned error: 429", "invalid index-pack output", "expected flush after",
	}},
	{KindCorrupt, []string{
		"object file", "is corrupt", "bad object", "not a git repository", "loose object", "packfile", "does not match index", "unable to read tree",
		"unable to read sha1", "missing blob", "missing tree", "missing commit", "broken ref", "bad ref", "could not read", "invalid object", "did not send all necessary objects",
	}},
}

func classify(stderr string) Kind {
	low := strings.ToLower(stderr)
	for _, sign := range signs {
		for _, text := range sign.text {
			if strings.Contains(low, text) {
				return sign.kind
			}
		}
	}
	return KindOther
}

// Explain turns a failed git command into the error that users see, naming the
// subject (for example "clone acme/shop"). Errors for users pass unchanged.
func Explain(err error, subject string) error {
	var mine *squad.Error
	if err == nil || errors.As(err, &mine) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return squad.Wrap(squad.CodeTimeout, err, "%s took too long", subject)
	}
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", subject, err)
	}
	why := lastLine(e.Stderr)
	switch e.Kind {
	case KindNetwork:
		return squad.Wrap(squad.CodeUnavailable, err, "%s: the remote was not reached (%s)", subject, why)
	case KindAuth:
		return squad.Wrap(squad.CodeProvider, err, "%s: the remote refused the credential; check its permissions and expiry (%s)", subject, why)
	case KindNotFound:
		return squad.Wrap(squad.CodeNotFound, err, "%s: not found on the remote (%s)", subject, why)
	case KindRejected:
		return squad.Wrap(squad.CodeConflict, err, "%s: the branch has moved on the remote; pull or rebase first", subject)
	case KindRefused:
		return squad.Wrap(squad.CodeRule, err, "%s: the remote refused it (%s)", subject, why)
	case KindConflict:
		return squad.Wrap(squad.CodeConflict, err, "%s: both sides changed the same places", subject)
	}
	return squad.Wrap(squad.CodeProvider, err, "%s: git failed (%s)", subject, why)
}
