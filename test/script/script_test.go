// Package script runs the txtar scripts of testdata against the built binary:
// stories with three actors, the owner of the installation, a guest, and an
// attacker.
package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agentsquad/internal/pgtest"
)

// binary is the program under test: SQUAD_BIN (make test sets it), or one built
// here, statically as the runtime wants it.
func binary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SQUAD_BIN"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "squad")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "agentsquad/cmd/squad")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func TestScripts_SQLite(t *testing.T) {
	t.Parallel()
	run(t, binary(t), func() string { return "" })
}

// TestScripts_PostgreSQL tells the same stories on a database of their own each.
func TestScripts_PostgreSQL(t *testing.T) {
	t.Parallel()
	pgtest.URL(t) // skips here where there is none
	run(t, binary(t), func() string { return pgtest.URL(t) })
}

// run runs every script with the database that the function names, "" for SQLite in
// the data folder.
func run(t *testing.T, bin string, database func() string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "postgres":
				return strings.HasSuffix(t.Name(), "PostgreSQL"), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(bin)+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("SQUAD_DATA", filepath.Join(e.WorkDir, "data"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("BIN", bin)
			e.Setenv("DATABASE_URL", database())
			e.Setenv("OTHER_DATABASE_URL", database())
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"up":    up,
			"down":  down,
			"await": await,
			"field": field,
		},
	})
}

// up starts a server in the background of the script and waits until it is
// ready: up [ARGS...]. The script knows it as $URL.
func up(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("up cannot be negated; use exec squad up")
	}
	log, err := os.Create(ts.MkAbs("server.log"))
	ts.Check(err)
	cmd := exec.Command(ts.Getenv("BIN"), append([]string{"up", "--listen", "127.0.0.1:0", "--log-format", "json"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.Getenv("WORK"), log, log
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "SQUAD_DATA=" + ts.Getenv("SQUAD_DATA"), "DATABASE_URL=" + ts.Getenv("DATABASE_URL")}
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = log.Close()
	})
	ts.Setenv("SERVER_PID", fmt.Sprint(cmd.Process.Pid))
	file := filepath.Join(ts.Getenv("SQUAD_DATA"), "server.json")
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		select {
		case err := <-ended:
			ts.Fatalf("the server ended: %v\n%s", err, ts.ReadFile("server.log"))
		case <-time.After(20 * time.Millisecond):
		}
		var server struct {
			URL string
			PID int
		}
		if raw, err := os.ReadFile(file); err != nil || json.Unmarshal(raw, &server) != nil || server.PID != cmd.Process.Pid {
			continue
		}
		if strings.Contains(ts.ReadFile("server.log"), "is ready after") {
			ts.Setenv("URL", server.URL)
			return
		}
	}
	ts.Fatalf("the server is not ready:\n%s", ts.ReadFile("server.log"))
}

// down asks the server to stop and waits for it: down [KILL].
func down(ts *testscript.TestScript, neg bool, args []string) {
	var pid int
	_, err := fmt.Sscan(ts.Getenv("SERVER_PID"), &pid)
	ts.Check(err)
	sig := syscall.SIGTERM
	if len(args) > 0 && args[0] == "KILL" {
		sig = syscall.SIGKILL
	}
	ts.Check(syscall.Kill(pid, sig))
	address := strings.TrimPrefix(ts.Getenv("URL"), "http://")
	deadline := time.Now().Add(40 * time.Second)
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		cancel()
		if err != nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if err == nil {
			_ = conn.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("the server did not stop:\n%s", ts.ReadFile("server.log"))
}

// await runs a command again and again until it succeeds: await 30s squad …
func await(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if (err == nil) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v did not come true in %s: %v", args[1:], limit, err)
		}
	}
}

// field puts a field of JSON printed by the last command into a variable:
// field NAME path.to.field
func field(ts *testscript.TestScript, neg bool, args []string) {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for part := range strings.SplitSeq(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			var i int
			_, err := fmt.Sscan(part, &i)
			ts.Check(err)
			if i >= len(x) {
				ts.Fatalf("no element %d in %v", i, args[1])
			}
			v = x[i]
		}
	}
	if v == nil {
		ts.Fatalf("no field %s in %s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}
