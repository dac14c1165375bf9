// Package gittest gives tests real repositories and a real git server: the git
// program's own http-backend behind net/http, with token check and faults on
// demand. It is imported by tests only.
package gittest

import (
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Git runs git in dir with a fixed identity and returns its output, trimmed.
func Git(tb testing.TB, dir string, args ...string) string {
	tb.Helper()
	out, err := Try(dir, args...)
	if err != nil {
		tb.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try is Git for commands that may fail.
func Try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = Env()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Env is the environment of a git client that knows nothing of this machine.
func Env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C.UTF-8",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
	}
}

// Write puts a file into a folder.
func Write(tb testing.TB, dir, name, text string) {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// Commit writes a file and commits it, and returns the commit.
func Commit(tb testing.TB, dir, name, text, message string) string {
	tb.Helper()
	Write(tb, dir, name, text)
	Git(tb, dir, "add", "-A")
	Git(tb, dir, "commit", "-q", "-m", message)
	return Git(tb, dir, "rev-parse", "HEAD")
}

// Bare makes a bare repository under root with one commit on branch.
func Bare(tb testing.TB, root, name, branch string) string {
	tb.Helper()
	dir := filepath.Join(root, name)
	Git(tb, root, "init", "-q", "--bare", "-b", branch, dir)
	Git(tb, dir, "config", "http.receivepack", "true")
	work := tb.TempDir()
	Git(tb, work, "init", "-q", "-b", branch)
	Commit(tb, work, "README.md", "# shop\n", "docs: say what it is")
	Git(tb, work, "push", "-q", dir, branch)
	return dir
}

// Server is git http-backend over the repositories under Root.
type Server struct {
	Root  string
	URL   string
	Token string // where set, Basic authentication with this password is needed
	// Down makes every request fail with 503 while it is above zero, counting
	// down; a negative number means for ever.
	Down     atomic.Int64
	Requests atomic.Int64
	Seen     atomic.Value // last Authorization header, a string
}

// Serve starts a server that ends with the test.
func Serve(tb testing.TB, root, token string) *Server {
	tb.Helper()
	core, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		tb.Fatalf("git --exec-path: %v", err)
	}
	s := &Server{Root: root, Token: token}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"), Root: "/",
		Env:        []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
		InheritEnv: []string{"PATH"},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		s.Seen.Store(r.Header.Get("Authorization"))
		if n := s.Down.Load(); n != 0 {
			if n > 0 {
				s.Down.Add(-1)
			}
			http.Error(w, "down for a moment", http.StatusServiceUnavailable)
			return
		}
		if s.Token != "" {
			if _, pass, ok := r.BasicAuth(); !ok || pass != s.Token {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
		}
		serveCGI(w, r, backend)
	}))
	s.URL = srv.URL
	tb.Cleanup(srv.Close)
	return s
}

// serveCGI spools a chunked body, which net/http/cgi does not take, and hands the
// protocol version on.
func serveCGI(w http.ResponseWriter, r *http.Request, backend *cgi.Handler) {
	h := *backend
	h.Env = append([]string{"GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"), "REMOTE_USER=test"}, h.Env...)
	if r.ContentLength < 0 {
		f, err := os.CreateTemp("", "gittest-")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer os.Remove(f.Name())
		defer f.Close()
		n, err := io.Copy(f, r.Body)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = f, n, nil
	}
	h.ServeHTTP(w, r)
}
