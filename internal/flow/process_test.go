package flow_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/flow"
	"agentsquad/internal/store"
)

// workerURL makes the test binary a node on that database, until it is killed.
const workerURL = "SQUAD_TEST_FLOW_URL"

const (
	chainSteps  = 6
	workerLease = 700 * time.Millisecond
	frozen      = 3 * workerLease
)

func TestMain(m *testing.M) {
	if url := os.Getenv(workerURL); url != "" {
		if err := work(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func work(url string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{URL: url})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e := flow.New(flow.Config{
		Store: s, Lease: workerLease, Concurrency: map[string]int{"default": 8}, Log: log,
		OnEnd: func(ctx context.Context, tx *store.Tx, end flow.End) error {
			return tx.Append(ctx, squad.Event{Type: "ended", TaskID: end.ID})
		},
	})
	e.Register("chain", 1, func(c flow.Context) error { return chain(c, s) })
	fmt.Println("ready")
	return e.Run(ctx)
}

// chain is a row of steps, each of which builds on what the one before returned
// and on chance: had two holders both their way, the journal would not fit
// together. Half-way it waits for a signal and sleeps.
func chain(c flow.Context, s *store.Store) error {
	so := ""
	for i := range chainSteps {
		err := c.Do(fmt.Sprint("step", i), func(ctx context.Context) (any, error) {
			// The work: it takes a while, and has an effect outside the journal.
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Duration(rand.IntN(40)) * time.Millisecond):
			}
			err := s.Tx(ctx, func(tx *store.Tx) error {
				return tx.Append(ctx, squad.Event{Type: "step", TaskID: c.ID(), Payload: fmt.Appendf(nil, `{"step":%d,"fence":%d}`, i, c.Fence())})
			})
			return fmt.Sprintf("%s/%d:%x", so, i, rand.Uint32()), err
		}, &so, flow.Retry{Attempts: -1, Backoff: time.Millisecond})
		if err != nil {
			return err
		}
		if i == chainSteps/2 {
			if ok, err := c.Await("on", 0, nil); err != nil || !ok {
				return fmt.Errorf("await: %v %w", ok, err)
			}
			if err := c.Sleep("nap", 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// worker is a node in a process of its own.
type worker struct {
	cmd    *exec.Cmd
	lost   atomic.Int64 // writes that were refused
	closed chan struct{}
}

func spawn(t *testing.T, url string) *worker {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd: exec.CommandContext(t.Context(), exe), closed: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerURL+"="+url)
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kill)
	ready := make(chan struct{})
	go w.read(out, ready)
	receive(t, ready)
	return w
}

func (w *worker) read(out io.Reader, ready chan struct{}) {
	defer close(w.closed)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "ready":
			close(ready)
		case strings.Contains(line, "flow was lost"):
			w.lost.Add(1)
		}
	}
}

// kill ends the process without warning; a second call does nothing.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	<-w.closed
	_ = w.cmd.Wait()
}

func (w *worker) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// wave starts flows and signals them, from outside any node.
func wave(t *testing.T, s *store.Store, e *flow.Engine, name string, n int) {
	t.Helper()
	err := s.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			id := fmt.Sprintf("%s-%d", name, i)
			if err := e.Start(t.Context(), tx, flow.Spec{ID: id, Name: "chain"}); err != nil {
				return err
			}
			if err := e.Signal(t.Context(), tx, id, "on", nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkChains wants each flow to have ended once, its journal to fit together,
// its fences never to go back, and no step to have begun before the one before
// it was done for the first time.
func checkChains(t *testing.T, s *store.Store, want int) (twice int) {
	t.Helper()
	until(t, "all flows ended", func() bool {
		n, err := s.CountFlows(t.Context(), store.FlowFilter{Statuses: []store.FlowStatus{store.FlowSucceeded}})
		return err == nil && n == want
	})
	ended, runs, reached := map[string]int{}, map[string]int{}, map[string]int{}
	for cursor := int64(0); ; {
		es, err := s.Events(t.Context(), store.EventFilter{After: cursor})
		if err != nil {
			t.Fatal(err)
		}
		if len(es) == 0 {
			break
		}
		cursor = es[len(es)-1].Seq
		for _, e := range es {
			if e.Type == "ended" {
				ended[e.TaskID]++
				continue
			}
			var p struct{ Step int }
			if err := json.Unmarshal(e.Payload, &p); err != nil {
				t.Fatal(err)
			}
			runs[e.TaskID]++
			if p.Step > reached[e.TaskID] {
				t.Errorf("flow %s: step %d ran before %d was done", e.TaskID, p.Step, reached[e.TaskID])
			}
			reached[e.TaskID] = max(reached[e.TaskID], p.Step+1)
		}
	}
	flows, err := s.Flows(t.Context(), store.FlowFilter{})
	if err != nil || len(flows) != want {
		t.Fatalf("%d flows, %v", len(flows), err)
	}
	for _, f := range flows {
		if ended[f.ID] != 1 {
			t.Errorf("flow %s ended %d times", f.ID, ended[f.ID])
		}
		twice += runs[f.ID] - chainSteps
		checkJournal(t, s, f.ID)
	}
	return twice
}

func checkJournal(t *testing.T, s *store.Store, id string) {
	t.Helper()
	steps, err := s.FlowSteps(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]store.FlowStep{}
	for _, st := range steps {
		byKey[st.Key] = st
	}
	so, fence := "", int64(0)
	for i := range chainSteps {
		st := byKey[fmt.Sprint("step", i)]
		var got string
		if err := json.Unmarshal(st.Result, &got); err != nil || !st.Done {
			t.Fatalf("flow %s: step %d: %+v, %v", id, i, st, err)
		}
		if !strings.HasPrefix(got, so+"/") || st.Fence < fence {
			t.Fatalf("flow %s: step %d says %q after %q, fence %d after %d", id, i, got, so, st.Fence, fence)
		}
		so, fence = got, st.Fence
	}
}

// Three nodes on one PostgreSQL; nodes are killed without warning, and frozen for
// longer than their leases and thawed. Every flow ends once, and nobody writes
// with an old fence.
func TestProcesses_KillsAndFreezes(t *testing.T) {
	t.Parallel()
	url := freshURL(t, store.Postgres)
	s := open(t, url)
	e := flow.New(flow.Config{Store: s})
	e.Register("chain", 1, func(flow.Context) error { panic("runs elsewhere") })
	nodes := []*worker{spawn(t, url), spawn(t, url), spawn(t, url)}
	lost := int64(0)
	const waves, each = 7, 40
	for i := range waves {
		wave(t, s, e, fmt.Sprint("wave", i), each)
		victim := nodes[i%3]
		if i%2 == 0 { // while it works on them
			until(t, "some progress", func() bool {
				n, err := s.CountFlows(t.Context(), store.FlowFilter{Statuses: []store.FlowStatus{store.FlowRunning}})
				return err == nil && n > 0
			})
			victim.kill()
			lost += victim.lost.Load()
			nodes[i%3] = spawn(t, url)
			continue
		}
		victim.signal(t, syscall.SIGSTOP)
		time.Sleep(frozen) // the freeze itself: its leases run out, others take over
		victim.signal(t, syscall.SIGCONT)
	}
	twice := checkChains(t, s, waves*each)
	for _, n := range nodes {
		lost += n.lost.Load()
	}
	t.Logf("%d flows of %d steps ended once each; 4 kills, 3 freezes; %d steps ran again; %d stale writes were refused", waves*each, chainSteps, twice, lost)
}

// One node on SQLite, killed in the middle of its work again and again: the next
// start goes on at once, without waiting for a lease.
func TestProcesses_SingleNodeIsKilled(t *testing.T) {
	t.Parallel()
	url := freshURL(t, store.SQLite)
	s := open(t, url)
	e := flow.New(flow.Config{Store: s})
	e.Register("chain", 1, func(flow.Context) error { panic("runs elsewhere") })
	wave(t, s, e, "w", 60)
	for round := range 3 {
		w := spawn(t, url)
		until(t, "some progress", func() bool {
			n, err := s.CountFlows(t.Context(), store.FlowFilter{Statuses: []store.FlowStatus{store.FlowSucceeded}})
			return err == nil && n > 10*round
		})
		w.kill()
	}
	spawn(t, url)
	twice := checkChains(t, s, 60)
	t.Logf("60 flows ended once each; 3 kills; %d steps ran again", twice)
}
