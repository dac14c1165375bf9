package e2bsdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestBinary runs a part of the suite against the built program, started as a
// user starts it: page, API and E2B on one port, a key made on the command line.
func TestBinary(t *testing.T) {
	bin := os.Getenv("SQUAD_BIN")
	if bin == "" {
		t.Skip("SKIPPED: set SQUAD_BIN to the built program (make test does)")
	}
	install(t)
	dir, err := os.MkdirTemp("", "e2b") //nolint:usetesting // short: it holds unix sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	url := startBinary(t, bin, dir)
	out, err := squadCommand(t.Context(), bin, dir, "keys", "create", "--json").Output()
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	var made struct{ Key string }
	if err := json.Unmarshal(out, &made); err != nil || !strings.HasPrefix(made.Key, "e2b_") {
		t.Fatalf("make a key: %v: %s", err, out)
	}
	for _, name := range []string{"commands", "lifecycle", "template"} {
		t.Run(name, func(t *testing.T) { runSuite(t, filepath.Join("suite", name+".test.mjs"), url, made.Key, "") })
	}
}

// squadCommand is the program with an environment of its own: settings of the
// caller's shell are not the test's.
func squadCommand(ctx context.Context, bin, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, append([]string{"--data", dir}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir()}
	return cmd
}

// startBinary starts the server and returns its address once it answers.
func startBinary(t *testing.T, bin, dir string) string {
	t.Helper()
	cmd := squadCommand(context.Background(), bin, dir, "up", "--listen", "127.0.0.1:0")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
			t.Error("the server did not stop within 30 s")
		}
		if t.Failed() {
			t.Logf("log of the server:\n%s", log.String())
		}
	})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for {
		var info struct{ URL string }
		if data, err := os.ReadFile(filepath.Join(dir, "server.json")); err == nil && json.Unmarshal(data, &info) == nil && info.URL != "" {
			return info.URL
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the server ended: %v\n%s", err, log.String())
		case <-late:
			t.Fatal("the server does not start")
		case <-tick.C:
		}
	}
}
