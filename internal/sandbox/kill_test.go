package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	squad "agentsquad"
	"agentsquad/e2b/e2btest"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

// TestMain is also the server process that the kill test kills.
func TestMain(m *testing.M) {
	if url := os.Getenv("SANDBOX_TEST_PROVIDER"); url != "" {
		if err := work(context.Background(), url, os.Getenv("SANDBOX_TEST_DATABASE")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work brings every execution to its sandbox, and ends the sandboxes of those
// whose task asks for it, as a flow does that is begun again after a crash.
func work(ctx context.Context, provider, database string) error {
	st, err := store.Open(ctx, store.Config{URL: database})
	if err != nil {
		return err
	}
	defer st.Close()
	s, err := sandbox.New(ctx, sandbox.Config{
		Store: st, Providers: map[string]sandbox.Provider{"fake": {Client: must(provider)}}, Retry: fast, Grace: time.Millisecond, Owner: "server",
	})
	if err != nil {
		return err
	}
	if err := again(func() error { _, err := s.Sweep(ctx, ""); return err }); err != nil {
		return err
	}
	fmt.Println("ready")
	todo, err := st.Executions(ctx, store.ExecutionFilter{})
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
				if err := again(func() error { return finish(ctx, st, s, e) }); err != nil {
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

// again repeats a step as a flow and the sweep's clock do: this provider loses
// every eighth answer, also three in a row.
func again(step func() error) (err error) {
	for range 5 {
		if err = step(); err == nil {
			return nil
		}
	}
	return err
}

func finish(ctx context.Context, st *store.Store, s *sandbox.Service, e squad.Execution) error {
	rows, err := st.Sandboxes(ctx, store.SandboxFilter{ExecutionID: e.ID, Statuses: []squad.SandboxStatus{squad.SandboxTerminated}})
	if err != nil || len(rows) > 0 {
		return err
	}
	row, err := s.Acquire(ctx, sandbox.AcquireRequest{SquadID: e.SquadID, MemberID: e.MemberID, TaskID: e.TaskID, ExecutionID: e.ID, Epoch: 1})
	if err != nil {
		return fmt.Errorf("acquire for %s: %w", e.ID, err)
	}
	if e.Turn == 0 {
		return nil // this one keeps its sandbox
	}
	return s.Release(ctx, row.ID, 1)
}

// TestKill_ServerDiesAtRandomAndNothingIsLeftOver kills the server process
// again and again while it makes 75 sandboxes and destroys 50 of them, at a
// provider that is slow and loses answers. In the end provider and database must
// agree to the last sandbox.
func TestKill_ServerDiesAtRandomAndNothingIsLeftOver(t *testing.T) {
	t.Parallel()
	provider := e2btest.New(e2btest.Options{})
	defer provider.Close()
	provider.Fail(func(r *http.Request) *e2btest.Fault {
		switch {
		case r.Method == http.MethodGet:
			return nil
		case rand.IntN(8) == 0:
			return &e2btest.Fault{After: true} // done, and nobody hears of it
		}
		return &e2btest.Fault{Delay: rand.N(30 * time.Millisecond)}
	})
	database := "sqlite:" + t.TempDir() + "/squad.db"
	st, err := store.Open(t.Context(), store.Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	h := &house{t: t, store: st, provider: provider, metrics: prometheus.NewRegistry()}
	h.squad, h.member, h.task = h.people("killed")
	const destroyed, kept = 50, 25
	for i := range destroyed + kept {
		e := h.execution()
		if e.Turn = 1; i >= destroyed {
			e.Turn = 0
		}
		if err := st.Tx(t.Context(), func(tx *store.Tx) error { return tx.UpdateExecution(t.Context(), &e) }); err != nil {
			t.Fatal(err)
		}
	}
	kills := 0
	for finished := false; !finished; {
		finished = serve(t, provider.URL, database, kills < 30)
		if !finished {
			kills++
		}
		if kills > 200 {
			t.Fatal("the work is never done")
		}
	}
	if kills < 10 {
		t.Errorf("only %d kills: the test proves little", kills)
	}
	provider.Fail(nil)
	last := h.start(func(c *sandbox.Config) { c.Grace, c.Owner = time.Nanosecond, "server" })
	sweep(t, last)
	have := provider.Running()
	if want := h.running(); !slices.Equal(have, want) || len(have) != kept {
		t.Errorf("after %d kills provider has %d sandboxes, database %d, want %d each", kills, len(have), len(want), kept)
	}
	t.Logf("%d kills, %d sandboxes made, %d requests", kills, provider.Made(), len(provider.Requests()))
	rows, err := st.Sandboxes(t.Context(), store.SandboxFilter{Statuses: []squad.SandboxStatus{squad.SandboxCreated, squad.SandboxRunning, squad.SandboxPaused}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := last.Destroy(bounded(t), squad.System(), row.ID); err != nil {
			t.Error(err)
		}
	}
	if left := provider.Running(); len(left) != 0 || len(h.running()) != 0 {
		t.Errorf("left over: %v", left)
	}
}

// serve runs the server process, and kills it after a random time where it may.
// It says whether the process came to the end of its work.
func serve(t *testing.T, provider, database string, mortal bool) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_PROVIDER="+provider, "SANDBOX_TEST_DATABASE="+database)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if mortal && lines.Scan() {
		time.AfterFunc(rand.N(120*time.Millisecond), func() { _ = cmd.Process.Kill() })
	}
	for lines.Scan() {
	}
	err = cmd.Wait()
	if err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("server process failed: %v", err)
	}
	return err == nil
}

// running returns the provider's ids of the rows that are not over, in the order
// in which the provider lists them.
func (h *house) running() []string {
	h.t.Helper()
	rows, err := h.store.Sandboxes(h.t.Context(), store.SandboxFilter{Statuses: []squad.SandboxStatus{squad.SandboxCreated, squad.SandboxRunning, squad.SandboxPaused}})
	if err != nil {
		h.t.Fatal(err)
	}
	byID := map[string]bool{}
	for _, r := range rows {
		byID[r.E2BID] = true
	}
	var ids []string
	for _, id := range h.provider.Running() {
		if byID[id] {
			ids = append(ids, id)
			delete(byID, id)
		}
	}
	for id := range byID {
		ids = append(ids, "only in the database: "+id)
	}
	return ids
}
