// Package e2bgo_test drives real local sandboxes with our own Go client and with
// the sandbox service: gVisor, envd, the E2B-compatible server, nothing faked.
package e2bgo_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"agentsquad/e2b"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/gvisor/gvisortest"
	"agentsquad/test/e2bsdk/e2btest"
)

// TestMain is also the sandbox kernel, and the server process that a test kills.
func TestMain(m *testing.M) {
	gvisor.Dispatch()
	gvisortest.Static()
	if dir := os.Getenv(serverEnv); dir != "" {
		if err := server(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func connect(t *testing.T, url string, json bool) *e2b.Client {
	t.Helper()
	c, err := e2b.New(e2b.Config{APIKey: e2btest.SquadKey, APIURL: url, SandboxURL: url, JSON: json})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
