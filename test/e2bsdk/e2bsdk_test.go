// Package e2bsdk_test runs the official E2B SDKs for JavaScript, unmodified,
// against a started server with real sandboxes.
package e2bsdk_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad/internal/gvisor"
	"agentsquad/internal/gvisor/gvisortest"
	"agentsquad/test/e2bsdk/e2btest"
)

func TestMain(m *testing.M) {
	gvisor.Dispatch()
	gvisortest.Static()
	os.Exit(m.Run())
}

// TestSDK runs each file of the suite with node's own test runner.
func TestSDK(t *testing.T) {
	install(t)
	s := e2btest.Start(t, outside(t))
	files, err := filepath.Glob("suite/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no suite: %v", err)
	}
	for _, file := range files {
		t.Run(suiteName(file), func(t *testing.T) {
			t.Parallel()
			runSuite(t, file, s.URL, e2btest.Key, e2btest.OtherKey)
		})
	}
}

func suiteName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".test.mjs") }

// runSuite runs one file with node against a server.
func runSuite(t *testing.T, file, url, key, otherKey string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-force-exit", "--test-reporter=spec", file)
	cmd.Env = append(os.Environ(), "E2B_API_URL="+url, "E2B_SANDBOX_URL="+url, "E2B_API_KEY="+key, "OTHER_API_KEY="+otherKey, "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", summary(out))
}

// summary is the tail of node's report: counts and time.
func summary(out []byte) []byte {
	if i := bytes.LastIndex(out, []byte("ℹ tests")); i >= 0 {
		return out[i:]
	}
	return out
}

// install runs npm ci unless what is there came from the same lock file.
func install(t *testing.T) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install Node 20 or newer to run the official SDK", program)
		}
	}
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	stamp, want := filepath.Join("node_modules", ".squad-lock"), hex.EncodeToString(sum[:])
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out []byte
	for range 3 { // registries answer 429 under load
		if out, err = exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund").CombinedOutput(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(stamp, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
