//go:build e2bcloud

package e2b_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"agentsquad/e2b"
)

// TestCloud walks one sandbox through its life at the server that the
// environment names. It costs a fraction of a cent:
//
//	E2B_API_KEY=e2b_… go test -tags e2bcloud -run TestCloud ./e2b
func TestCloud_OneSandboxThroughItsLife(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2B_API_KEY") == "" {
		t.Skip("SKIPPED, NOT PASSED: no E2B_API_KEY. Set it (and E2B_DOMAIN, E2B_API_URL, E2B_SANDBOX_URL where needed) to run this against a real server.")
	}
	for name, json := range map[string]bool{"proto": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := e2b.ConfigFrom(os.LookupEnv)
			cfg.JSON = json
			c, err := e2b.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			walk(t, c)
		})
	}
}

func walk(t *testing.T, c *e2b.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	label := map[string]string{"e2b_go_test": t.Name() + time.Now().String()}
	sb, err := c.Create(ctx, e2b.CreateOptions{Timeout: 2 * time.Minute, Metadata: label})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Kill(context.WithoutCancel(ctx)) })
	found := 0
	for info, err := range c.List(ctx, e2b.ListOptions{Metadata: label}) {
		if err != nil {
			t.Fatal(err)
		}
		if info.ID == sb.ID {
			found++
		}
	}
	if found != 1 {
		t.Errorf("listed %d times by its label", found)
	}
	if res, err := sb.Commands.Run(ctx, "echo hello; echo $0 >&2", e2b.CommandOptions{}); err != nil || res.Stdout != "hello\n" {
		t.Errorf("run = %+v, %v", res, err)
	}
	if _, err := sb.Commands.Run(ctx, "sleep 60", e2b.CommandOptions{Timeout: time.Second}); !errors.Is(err, e2b.ErrTimeout) {
		t.Errorf("timeout = %v", err)
	}
	if _, err := sb.Files.WriteAll(ctx, "dir/file", []byte("content")); err != nil {
		t.Error(err)
	}
	if data, err := sb.Files.ReadAll(ctx, "dir/file"); err != nil || string(data) != "content" {
		t.Errorf("read = %q, %v", data, err)
	}
	if err := sb.Pause(ctx, e2b.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if sb, err = c.Connect(ctx, sb.ID, e2b.ConnectOptions{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if data, err := sb.Files.ReadAll(ctx, "dir/file"); err != nil || string(data) != "content" {
		t.Errorf("read after resume = %q, %v", data, err)
	}
	if err := sb.Kill(ctx); err != nil {
		t.Error(err)
	}
	if _, err := sb.Commands.Run(ctx, "true", e2b.CommandOptions{}); !errors.Is(err, e2b.ErrSandboxGone) {
		t.Errorf("after kill: %v", err)
	}
}
