// Package giteatest gives tests a real Gitea. The first test of a process that asks
// starts the server on a free port of the loopback, with its data in a temporary
// folder; each test makes repositories and users of its own on it.
//
// The program is built once by scripts/counterparts into the user's cache folder.
// Where it is not there, the test is skipped and says how to get it. A small shell
// process holds a pipe to the test process: however that ends, kill -9 included, it
// stops the server and removes the folder.
package giteatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Version is the one that scripts/counterparts builds.
const Version = "1.26.0"

const remedy = "Gitea " + Version + " is not built: run scripts/counterparts (needs gcc; some minutes, once)"

var errNotBuilt = errors.New("no gitea here")

// Server is a running Gitea.
type Server struct {
	URL   string // without a slash at the end
	Admin string // a user who may do everything
	Token string // the admin's, with all scopes
}

// running is the one of this process.
var running = sync.OnceValues(start)

// held keeps the pipe to the shell open as long as this process lives.
var held *os.File

// Start returns the server of this process.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := running()
	if errors.Is(err, errNotBuilt) {
		t.Skip("SKIPPED, not tested against Gitea: " + remedy)
	}
	if err != nil {
		t.Fatalf("start gitea: %v", err)
	}
	return s
}

func start() (*Server, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, errNotBuilt
	}
	dir := filepath.Join(cache, "agentsquad", "gitea-"+Version)
	program := filepath.Join(dir, "gitea")
	if _, err := os.Stat(program); err != nil {
		return nil, errNotBuilt
	}
	home, err := os.MkdirTemp("", "squad-gitea-")
	if err != nil {
		return nil, err
	}
	for range 3 { // another process may take the port first
		var s *Server
		if s, err = launch(program, filepath.Join(dir, "static"), home); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(home))
}

func launch(program, static, home string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, err
	}
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Admin: "root-of-tests"}
	ini := filepath.Join(home, "app.ini")
	if err := os.WriteFile(ini, []byte(settings(home, static, port)), 0o600); err != nil {
		return nil, err
	}
	if _, err := run(home, program, "migrate", "--config", ini); err != nil {
		return nil, err
	}
	out, err := run(home, program, "admin", "user", "create", "--config", ini, "--username", s.Admin, "--random-password", "--email", "root@example.com",
		"--admin", "--must-change-password=false", "--access-token", "--access-token-name", "boot", "--access-token-scopes", "all")
	if err != nil && !strings.Contains(out, "already exists") {
		return nil, err
	}
	if s.Token = lastWord(out, "Access token was successfully created"); s.Token == "" {
		return nil, fmt.Errorf("gitea printed no token: %s", out)
	}
	if err := serve(program, ini, home); err != nil {
		return nil, err
	}
	return s, s.wait(filepath.Join(home, "log"))
}

// serve starts the server under a shell that ends it with this process.
func serve(program, ini, home string) error {
	const script = `"$1" web --config "$2" >"$0/log" 2>&1 & pid=$!
cat >/dev/null; kill "$pid"; wait "$pid"; rm -rf "$0"`
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", script, home, program, ini)
	cmd.Stdin, cmd.Env = r, environment(home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, w.Close())
	}
	held = w
	return nil
}

func (s *Server) wait(log string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if code, err := s.call(ctx, http.MethodGet, "/version", s.Token, nil, nil); err == nil && code == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(log)
			held.Close()
			return fmt.Errorf("gitea does not answer: %s", text)
		case <-tick.C:
		}
	}
}

func run(home, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = environment(home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("gitea %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return string(out), err
}

func environment(home string) []string {
	git, err := exec.LookPath("git")
	if err != nil {
		git = "/usr/bin/git"
	}
	return []string{"PATH=" + filepath.Dir(git) + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "LC_ALL=C.UTF-8", "GITEA_WORK_DIR=" + home}
}

func lastWord(text, after string) string {
	_, rest, _ := strings.Cut(text, after)
	line, _, _ := strings.Cut(rest, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

func settings(home, static string, port int) string {
	name := "nobody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	root := ""
	if os.Geteuid() == 0 {
		root = "I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true\n"
	}
	return root + fmt.Sprintf(`RUN_USER = %s
WORK_PATH = %s
[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %d
ROOT_URL = http://127.0.0.1:%d/
STATIC_ROOT_PATH = %s
OFFLINE_MODE = true
DISABLE_SSH = true
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2$1$50
[database]
DB_TYPE = sqlite3
SQLITE_JOURNAL_MODE = WAL
[api]
MAX_RESPONSE_ITEMS = 10
DEFAULT_PAGING_NUM = 5
[queue]
TYPE = channel
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[session]
PROVIDER = memory
[webhook]
ALLOWED_HOST_LIST = loopback
[repository]
DEFAULT_BRANCH = main
[log]
MODE = console
LEVEL = Warn
`, name, home, port, port, static)
}

// Call asks the API as the owner of token and returns the status. out, where not
// nil, is filled from the answer. Where Gitea wants to be asked again later, as it does
// for a merge while it looks at what was pushed, it is.
func (s *Server) Call(t testing.TB, method, path, token string, in, out any) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for {
		code, err := s.call(ctx, method, path, token, in, out)
		if err == nil {
			return code
		}
		if code != http.StatusMethodNotAllowed || !strings.Contains(err.Error(), "try again later") {
			t.Fatalf("gitea %s %s: %v", method, path, err)
		}
		time.Sleep(100 * time.Millisecond) // the context ends it
	}
}

func (s *Server) call(ctx context.Context, method, path, token string, in, out any) (int, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+"/api/v1"+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if name, password, basic := strings.Cut(token, ":"); basic {
		req.SetBasicAuth(name, password)
	} else {
		req.Header.Set("Authorization", "token "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err
	}
	if resp.StatusCode >= 400 {
		return resp.StatusCode, fmt.Errorf("%s: %s", resp.Status, text)
	}
	if out != nil {
		err = json.Unmarshal(text, out)
	}
	return resp.StatusCode, err
}
