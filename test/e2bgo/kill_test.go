package e2bgo_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/e2bserver"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
	"agentsquad/internal/tunnel"
	"agentsquad/test/e2bsdk/e2btest"
)

// serverEnv makes the test program a whole server in that folder; envdEnv names
// the daemon for its sandboxes.
const (
	serverEnv = "E2BGO_TEST_SERVER"
	envdEnv   = "E2BGO_TEST_ENVD"
)

// house is runtime, E2B server, database and sandbox service in one process, as
// in the real program.
type house struct {
	runtime *gvisor.Runtime
	server  *e2bserver.Server
	store   *store.Store
	service *sandbox.Service
	client  *e2b.Client
}

func open(ctx context.Context, dir, envd string) (*house, error) {
	h := &house{}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var err error
	h.runtime, err = gvisor.New(gvisor.Config{
		Dir: filepath.Join(dir, "gv"), EnvdPath: envd, Log: log,
		Accept: func(id string, hd tunnel.Header, c net.Conn) { h.server.Accept(id, hd, c) },
	})
	if err != nil {
		return nil, err
	}
	h.server, err = e2bserver.New(e2bserver.Config{
		Runtime: h.runtime, Dir: filepath.Join(dir, "e2b"), Log: log,
		Keys: func(context.Context, string) (string, bool) { return e2bserver.OwnerSquad, true },
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		if err := h.server.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "e2b server:", err)
		}
	}()
	go func() { _ = http.Serve(listener, h.server) }()
	url := "http://" + listener.Addr().String()
	if h.client, err = e2b.New(e2b.Config{APIKey: e2btest.SquadKey, APIURL: url, SandboxURL: url}); err != nil {
		return nil, err
	}
	if h.store, err = store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(dir, "squad.db")}); err != nil {
		return nil, err
	}
	h.service, err = sandbox.New(ctx, sandbox.Config{
		Store: h.store, Grace: time.Millisecond, Owner: "server", Log: log,
		Providers: map[string]sandbox.Provider{"local": {Client: h.client, Node: "here"}},
	})
	return h, err
}

// server works until all is done: every task has had its sandbox, used it, and
// seen it destroyed.
func server(ctx context.Context, dir string) error {
	h, err := open(ctx, dir, os.Getenv(envdEnv))
	if err != nil {
		return err
	}
	if _, err := h.service.Sweep(ctx, ""); err != nil {
		return err
	}
	fmt.Println("ready")
	todo, err := h.store.Executions(ctx, store.ExecutionFilter{})
	if err != nil {
		return err
	}
	rand.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	queue := make(chan squad.Execution)
	failed := make(chan error, len(todo))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for e := range queue {
				if err := h.finish(ctx, e); err != nil {
					failed <- err
				}
			}
		})
	}
	for _, e := range todo {
		queue <- e
	}
	close(queue)
	group.Wait()
	close(failed)
	return <-failed
}

func (h *house) finish(ctx context.Context, e squad.Execution) error {
	done, err := h.store.Sandboxes(ctx, store.SandboxFilter{ExecutionID: e.ID, Statuses: []squad.SandboxStatus{squad.SandboxTerminated}})
	if err != nil || len(done) > 0 {
		return err
	}
	row, err := h.service.Acquire(ctx, sandbox.AcquireRequest{SquadID: e.SquadID, TaskID: e.TaskID, ExecutionID: e.ID, Epoch: 1})
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	res, err := h.service.Execute(ctx, squad.System(), row.ID, squad.Command{Shell: "echo alive"}, nil)
	if err != nil || res.Stdout != "alive\n" {
		return errors.Join(fmt.Errorf("execute: %+v", res), err)
	}
	return h.service.Release(ctx, row.ID, 1)
}

// TestKill_RealServerDiesAtRandom kills the whole server process, runtime and
// all, while it makes and destroys real sandboxes. In the end no process, no
// folder and no row may be left over.
func TestKill_RealServerDiesAtRandom(t *testing.T) {
	t.Parallel()
	count := 50
	if v, err := strconv.Atoi(os.Getenv("E2BGO_KILL_CREATES")); err == nil {
		count = v
	}
	dir, err := os.MkdirTemp("", "kill") //nolint:usetesting // short: it holds unix sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if rt, err := gvisor.New(gvisor.Config{Dir: filepath.Join(dir, "gv"), EnvdPath: e2btest.Envd(t)}); err != nil {
		t.Skipf("SKIPPED, NOT PASSED: %v", err)
	} else if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	prepare(t, dir, count)
	envd := e2btest.Envd(t)
	kills := 0
	for finished := false; !finished; {
		finished = once(t, dir, envd, kills < 12)
		if !finished {
			kills++
		}
		if kills > 100 {
			t.Fatal("the work is never done")
		}
	}
	h, err := open(t.Context(), dir, envd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.service.Sweep(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if left := h.runtime.List(); len(left) != 0 {
		t.Errorf("after %d kills the runtime has %d sandboxes", kills, len(left))
	}
	if rows, err := h.store.CountSandboxes(t.Context(), store.SandboxFilter{Statuses: []squad.SandboxStatus{squad.SandboxCreated, squad.SandboxRunning, squad.SandboxPaused}}); err != nil || rows != 0 {
		t.Errorf("the database has %d live rows, %v", rows, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "gv", "sandboxes")); err != nil || len(entries) != 0 {
		t.Errorf("%d folders of sandboxes left over, %v", len(entries), err)
	}
	if procs := processes(dir); len(procs) != 0 {
		t.Errorf("processes left over:\n%s", strings.Join(procs, "\n"))
	}
	ended, err := h.store.CountSandboxes(t.Context(), store.SandboxFilter{Statuses: []squad.SandboxStatus{squad.SandboxTerminated}})
	if err != nil || ended < count {
		t.Errorf("%d sandboxes came to their wished end, want %d (%v)", ended, count, err)
	}
	t.Logf("%d kills, %d sandboxes used and destroyed", kills, ended)
}

// prepare writes the work of the server: one execution per sandbox.
func prepare(t *testing.T, dir string, count int) {
	t.Helper()
	ctx := t.Context()
	st, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(dir, "squad.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	err = st.Tx(ctx, func(tx *store.Tx) error {
		sq := squad.Squad{Name: "killed", Status: squad.SquadActive}
		if err := tx.CreateSquad(ctx, &sq); err != nil {
			return err
		}
		for range count {
			task := squad.Task{SquadID: sq.ID, Title: "work", Status: squad.TaskTodo}
			if err := tx.CreateTask(ctx, &task); err != nil {
				return err
			}
			if err := tx.CreateExecution(ctx, &squad.Execution{TaskID: task.ID, SquadID: sq.ID, Status: squad.ExecutionRunning, Attempt: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// once runs the server process, and kills it after a random time where it may.
// It says whether the process came to the end of its work.
func once(t *testing.T, dir, envd string, mortal bool) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), serverEnv+"="+dir, envdEnv+"="+envd)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Sandboxes inherit nothing of it, but a scan would wait for all who did.
	ready, _ := bufio.NewReader(out).ReadString('\n')
	if mortal && ready != "" {
		time.AfterFunc(rand.N(2*time.Second), func() { _ = cmd.Process.Kill() })
	}
	err = cmd.Wait()
	if err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("server process failed: %v", err)
	}
	return err == nil
}

// processes lists what still runs in the name of a data folder.
func processes(dir string) (found []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if text := strings.ReplaceAll(string(raw), "\x00", " "); err == nil && strings.Contains(text, dir) {
			found = append(found, filepath.Base(filepath.Dir(path))+" "+text)
		}
	}
	return found
}
