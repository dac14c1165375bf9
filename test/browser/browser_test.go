// Package browser walks the page with a real browser against the real binary.
package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"agentsquad/internal/forge/giteatest"
)

// flowLimit is far more than a flow takes on a busy machine: one that hangs is told
// with what it had printed, and does not take the other packages' time.
const flowLimit = 9 * time.Minute

// TestFlows runs the flows in flows/ with Node. Each starts the binary that
// SQUAD_BIN names, with real sandboxes, and Debian's Chromium.
func TestFlows(t *testing.T) {
	if testing.Short() {
		t.Skip("browser flows take minutes; run without -short")
	}
	bin := os.Getenv("SQUAD_BIN")
	if bin == "" {
		t.Skip("SKIPPED: SQUAD_BIN names no binary with the page in it; run `make test`, or `make build` and SQUAD_BIN=$PWD/bin/squad")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: the browser flows need Node: apt-get install nodejs npm")
	}
	chromium := os.Getenv("CHROMIUM")
	if chromium == "" {
		if chromium, err = exec.LookPath("chromium"); err != nil {
			t.Skip("SKIPPED: the browser flows need Chromium: apt-get install chromium")
		}
	}
	if _, err := os.Stat("node_modules/playwright-core"); err != nil {
		t.Skip("SKIPPED: the browser flows need npm packages: npm ci in test/browser, or scripts/setup")
	}
	flows, err := filepath.Glob("flows/*.test.mjs")
	if err != nil || len(flows) == 0 {
		t.Fatalf("no flows found: %v", err)
	}
	for _, flow := range flows {
		t.Run(filepath.Base(flow), func(t *testing.T) {
			t.Parallel() // each has a server and a browser of its own
			ctx, cancel := context.WithTimeout(t.Context(), flowLimit)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, "--test", "--test-force-exit", "--test-reporter=spec", flow)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Node, its test process and the servers end together
			cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
			cmd.WaitDelay = 10 * time.Second
			cmd.Env = append(os.Environ(), "CHROMIUM="+chromium)
			if filepath.Base(flow) == "forge.test.mjs" {
				gitea := giteatest.Start(t)
				cmd.Env = append(cmd.Env, "GITEA_URL="+gitea.URL, "GITEA_TOKEN="+gitea.Token)
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v (limit %s: %v)\n%s", flow, err, flowLimit, ctx.Err(), out)
			}
			t.Logf("%s", out)
		})
	}
}
