package runner_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// A sandbox that is killed from outside while the agent works is replaced, with the
// work of the turns before it, and the turn is taken again there.
func TestExecution_GoesOnInANewSandboxWhenItsOwnIsKilled(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", `
if [ "$SQUAD_TURN" = 1 ]; then echo first > first.txt; echo '{"squad":"question","text":"which name?"}'; exit; fi
echo working; sleep 600`)
	k := h.task("Survive", ada)
	e := h.start(k)
	h.until(k, "wait", func(squad.Event) bool {
		now, err := h.store.Execution(t.Context(), e.ID)
		return err == nil && now.Status == squad.ExecutionWaiting
	})
	_, err := h.runner.Nudge(t.Context(), squad.System(), k.ID, "second.txt")
	h.must(err)
	h.until(k, "second turn", func(e squad.Event) bool {
		return e.Type == squad.EventLog && strings.Contains(string(e.Payload), "working")
	})
	ada.Config.Command = `cat first.txt > second.txt` // what the next agent that starts does
	h.tx(func(tx *store.Tx) error { return tx.UpdateMember(t.Context(), &ada) })
	lost := h.killBox(k)
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" {
		h.story(k)
		t.Fatalf("execution failed: %s", k.Cause)
	}
	h.until(k, "word of the loss", func(e squad.Event) bool {
		return e.Type == squad.EventExecutionUpdated && strings.Contains(string(e.Payload), `"state":"sandbox_lost"`)
	})
	if k.ExecutionID != e.ID {
		first, _ := h.store.Execution(t.Context(), e.ID)
		t.Errorf("another attempt was made: %s %s", first.ErrorCode, first.Error)
	}
	if got := h.git("show", "task-1:second.txt"); got != "first" {
		t.Errorf("branch has %q", got)
	}
	row, err := h.store.Sandbox(t.Context(), lost)
	h.must(err)
	if row.Status != squad.SandboxError || row.Error == "" {
		t.Errorf("the killed sandbox is %s (%s)", row.Status, row.Error)
	}
}

// A provider that loses a machine does not end its connections: they fall silent.
// The sweep finds out, and tells the execution, which goes on in a new sandbox.
func TestExecution_IsToldOfASandboxThatItsProviderLost(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", "echo working; sleep 600")
	k := h.task("Hear of it", ada)
	e := h.start(k)
	h.until(k, "working", func(e squad.Event) bool {
		return e.Type == squad.EventLog && strings.Contains(string(e.Payload), "working")
	})
	ada.Config.Command = "echo done > done.txt"
	h.tx(func(tx *store.Tx) error { return tx.UpdateMember(t.Context(), &ada) })
	h.mute.Store(true)
	lost := h.killBox(k)
	told := h.until(k, "the sweep finds out", func(e squad.Event) bool {
		if e.Type == squad.EventSandboxTerminated && e.SandboxID == lost {
			return true
		}
		_, err := h.boxes.Sweep(t.Context(), "local")
		h.must(err)
		return false
	})
	h.mute.Store(false)
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" || k.ExecutionID != e.ID {
		h.story(k)
		t.Fatalf("flag %q (%s), execution %s, want %s", k.Flag, k.Cause, k.ExecutionID, e.ID)
	}
	if got := h.git("show", "task-1:done.txt"); got != "done" {
		t.Errorf("branch has %q", got)
	}
	row, err := h.store.Sandbox(t.Context(), lost)
	h.must(err)
	if row.Status != squad.SandboxError || row.Error == "" || told.ExecutionID != e.ID {
		t.Errorf("the lost sandbox is %s (%s), its event of execution %q", row.Status, row.Error, told.ExecutionID)
	}
}

// mutable has the streams of processes fall silent, when the house says so, where
// they would end. One that begins after that is of the next sandbox, and speaks.
func (h *house) mutable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/process.Process/") || h.mute.Load() {
			next.ServeHTTP(w, r)
			return
		}
		func() {
			defer func() {
				if v := recover(); v != nil && !h.mute.Load() {
					panic(v) // of the proxy, to cut the connection
				}
			}()
			next.ServeHTTP(&muted{w, &h.mute}, r)
		}()
		if h.mute.Load() {
			<-r.Context().Done()
		}
	})
}

type muted struct {
	http.ResponseWriter
	mute *atomic.Bool
}

func (m *muted) Write(p []byte) (int, error) {
	if m.mute.Load() {
		return len(p), nil
	}
	return m.ResponseWriter.Write(p)
}

func (m *muted) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// killBox ends the process of a task's sandbox as the host's out-of-memory killer
// would, and returns the row's name.
func (h *house) killBox(k squad.Task) string {
	h.t.Helper()
	row, err := h.store.RunningSandboxOfTask(h.t.Context(), k.ID)
	h.must(err)
	data, err := os.ReadFile(filepath.Join(h.data, "sandboxes", row.E2BID, "state.json"))
	h.must(err)
	var state struct{ PID int }
	h.must(json.Unmarshal(data, &state))
	h.must(syscall.Kill(state.PID, syscall.SIGKILL))
	return row.ID
}

// A task's own provider goes before the squad's: one that is not configured here
// fails it with that cause, though the squad's would do.
func TestExecution_TaskOrItsSquadNamesTheProvider(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", "true")
	for _, name := range []string{"e2b", ""} {
		k := squad.Task{SquadID: h.squad.ID, RepositoryID: h.repo.ID, Title: "Elsewhere", Status: squad.TaskTodo, Provider: name, AssigneeID: ada.ID}
		want := `provider "e2b"`
		h.tx(func(tx *store.Tx) error {
			if name == "" {
				s, err := tx.Squad(t.Context(), h.squad.ID)
				if err != nil {
					return err
				}
				s.Config.Provider, want = "far", `provider "far"`
				if err := tx.UpdateSquad(t.Context(), &s); err != nil {
					return err
				}
			}
			return h.life.Create(t.Context(), tx, &k)
		})
		h.start(k)
		k = h.untilTask(k, func(k squad.Task) bool { return k.Flag != "" })
		if !strings.Contains(k.Cause, want) {
			t.Errorf("cause %q, want %s", k.Cause, want)
		}
	}
}
