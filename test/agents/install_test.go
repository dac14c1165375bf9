package agents

import (
	"agentsquad/test/house"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var installing sync.Mutex // npm does not like company

// installed returns the folder with the npm packages of npm/<name>. They are kept
// in the user's cache; those that are not always wanted are installed and run when
// SQUAD_AGENTS=all says so, whatever the cache holds.
func installed(t *testing.T, name string, always bool) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the pinned packages are for amd64")
	}
	if !always && os.Getenv("SQUAD_AGENTS") != "all" {
		t.Skipf("SKIPPED: %s is run with SQUAD_AGENTS=all only; it takes minutes, and some hundred MB", name)
	}
	want, err := os.ReadFile(filepath.Join("npm", name, "package.json"))
	house.Must(t, err)
	cache, err := os.UserCacheDir()
	house.Must(t, err)
	dir := filepath.Join(cache, "agentsquad", fmt.Sprintf("agents-%s-%.12x", name, sha256.Sum256(want)))
	done := filepath.Join(dir, ".installed")
	installing.Lock()
	defer installing.Unlock()
	if _, err := os.Stat(done); err == nil {
		return dir
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is missing: install Node.js to run real agents")
	}
	house.Must(t, os.MkdirAll(dir, 0o755))
	house.Must(t, os.WriteFile(filepath.Join(dir, "package.json"), want, 0o644))
	cmd := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install %s here: %v\n%s", name, err, tail(string(out), 1000))
	}
	house.Must(t, os.WriteFile(done, nil, 0o644))
	return dir
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// addTemplate makes a template of a folder, as a user does.
func (s *server) addTemplate(name, dir string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.Bin, "templates", "add", name, dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Data, "SQUAD_DATA=" + s.Data}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "is ready") {
		s.t.Fatalf("templates add: %v\n%s", err, out)
	}
}
