package task_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/pgtest"
	"agentsquad/internal/store"
	"agentsquad/internal/task"
)

// house is a squad with a member, and the door to its tasks.
type house struct {
	t      *testing.T
	store  *store.Store
	life   *task.Life
	squad  squad.Squad
	member squad.Member
}

func both(t *testing.T, f func(h *house)) {
	t.Helper()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := "sqlite:" + filepath.Join(t.TempDir(), "squad.db")
			if dialect == store.Postgres {
				url = pgtest.URL(t)
			}
			s, err := store.Open(t.Context(), store.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			h := &house{t: t, store: s, life: task.New(s), squad: squad.Squad{Name: "s"}}
			h.must(func(ctx context.Context, tx *store.Tx) error {
				if err := tx.CreateSquad(ctx, &h.squad); err != nil {
					return err
				}
				h.member = squad.Member{SquadID: h.squad.ID, Name: "ada", Role: "developer", IsActive: true}
				return tx.CreateMember(ctx, &h.member)
			})
			f(h)
		})
	}
}

func (h *house) try(f func(ctx context.Context, tx *store.Tx) error) error {
	return h.store.Tx(h.t.Context(), func(tx *store.Tx) error { return f(h.t.Context(), tx) })
}

func (h *house) must(f func(ctx context.Context, tx *store.Tx) error) {
	h.t.Helper()
	if err := h.try(f); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) task(dependsOn ...string) squad.Task {
	h.t.Helper()
	n := squad.Task{SquadID: h.squad.ID, Title: "do it", DependsOn: dependsOn}
	h.must(func(ctx context.Context, tx *store.Tx) error { return h.life.Create(ctx, tx, &n) })
	return n
}

func (h *house) lastEvents(after int64) []squad.Event {
	h.t.Helper()
	es, err := h.store.Events(h.t.Context(), store.EventFilter{After: after})
	if err != nil {
		h.t.Fatal(err)
	}
	return es
}

// legal is written out once more, by hand, so that a slip in the table shows.
func legal(from, to task.State) bool {
	none, blocked, failed, cancelled := squad.FlagNone, squad.FlagBlocked, squad.FlagFailed, squad.FlagCancelled
	columns := map[squad.TaskStatus]string{
		squad.TaskBacklog: "backlog todo in_progress done", squad.TaskTodo: "backlog todo in_progress done",
		squad.TaskInProgress: "backlog todo in_progress in_review done", squad.TaskInReview: "todo in_progress in_review done",
		squad.TaskDone: "todo in_review done",
	}
	if !slices.Contains(strings.Fields(columns[from.Status]), string(to.Status)) {
		return false
	}
	switch {
	case to.Status == squad.TaskDone && (to.Flag == blocked || to.Flag == failed):
		return false
	case to.Status == squad.TaskBacklog && to.Flag == failed:
		return false
	case from == to:
		return true
	case from.Flag == cancelled:
		return to.Flag == none
	}
	return true
}

// Every pair of states, legal or not, through the door: a legal move changes
// row and log together, an illegal one changes neither.
func TestMove_EveryPair(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		n := h.task()
		for _, from := range task.States() {
			for _, to := range task.States() {
				if (task.Check(from, to) == nil) != legal(from, to) {
					h.t.Errorf("the table says %v for %v to %v", task.Check(from, to), from, to)
				}
			}
		}
		if h.store.Dialect() == store.Postgres {
			return // the database's part is the same for each pair
		}
		pairs := 0
		for _, from := range task.States() {
			if task.Check(from, from) != nil {
				continue // cannot stand there
			}
			for _, to := range task.States() {
				pairs++
				h.walk(n.ID, from, to)
			}
		}
		if pairs != 17*20 {
			h.t.Fatalf("walked %d pairs", pairs)
		}
	})
}

// walk sets the task where it is to start, behind the door's back, and moves it.
func (h *house) walk(id string, from, to task.State) {
	h.t.Helper()
	var before, after squad.Task
	var seq int64
	h.must(func(ctx context.Context, tx *store.Tx) (err error) {
		if before, err = tx.Task(ctx, id); err != nil {
			return err
		}
		before.Status, before.Flag, before.Cause = from.Status, from.Flag, ""
		if from.Flag != squad.FlagNone {
			before.Cause = "reason"
		}
		return tx.UpdateTask(ctx, &before)
	})
	seq, _ = h.store.LastSeq(h.t.Context())
	cause := ""
	if to.Flag != squad.FlagNone {
		cause = "reason"
	}
	err := h.try(func(ctx context.Context, tx *store.Tx) (err error) {
		_, err = h.life.Move(ctx, tx, id, to.Status, to.Flag, cause)
		return err
	})
	after, e := h.store.Task(h.t.Context(), id)
	if e != nil {
		h.t.Fatal(e)
	}
	events := h.lastEvents(seq)
	switch {
	case !legal(from, to):
		if squad.CodeOf(err) != squad.CodeConflict || after.Version != before.Version || len(events) != 0 {
			h.t.Errorf("%v to %v is illegal: %v, version %d to %d, %d events", from, to, err, before.Version, after.Version, len(events))
		}
	case from == to:
		if err != nil || after.Version != before.Version || len(events) != 0 {
			h.t.Errorf("%v stays: %v, version %d to %d, %d events", from, err, before.Version, after.Version, len(events))
		}
	default:
		var told squad.Task
		if len(events) != 1 || events[0].Type != squad.EventTaskUpdated || json.Unmarshal(events[0].Payload, &told) != nil {
			h.t.Fatalf("%v to %v: events %+v", from, to, events)
		}
		if err != nil || after.Status != to.Status || after.Flag != to.Flag || told.Status != to.Status || told.Version != after.Version {
			h.t.Errorf("%v to %v: %v, stands in %s %s, event says %s", from, to, err, after.Status, after.Flag, told.Status)
		}
	}
}

func TestMoveExecution_EveryPair(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		next := map[squad.ExecutionStatus]string{
			squad.ExecutionQueued:  "queued running failed cancelled",
			squad.ExecutionRunning: "queued running waiting succeeded failed cancelled",
			squad.ExecutionWaiting: "queued running waiting succeeded failed cancelled",
		}
		for _, from := range task.ExecutionStates() {
			for _, to := range task.ExecutionStates() {
				legal := slices.Contains(strings.Fields(next[from]), string(to))
				n := h.task()
				e := squad.Execution{TaskID: n.ID, SquadID: h.squad.ID, Status: from}
				h.must(func(ctx context.Context, tx *store.Tx) error { return tx.CreateExecution(ctx, &e) })
				err := h.try(func(ctx context.Context, tx *store.Tx) error {
					_, err := h.life.MoveExecution(ctx, tx, e.ID, to, func(e *squad.Execution) { e.HeadSHA = "abc" })
					return err
				})
				after, e2 := h.store.Execution(h.t.Context(), e.ID)
				if e2 != nil {
					h.t.Fatal(e2)
				}
				if !legal {
					if squad.CodeOf(err) != squad.CodeConflict || after.Status != from || after.HeadSHA != "" {
						h.t.Errorf("%s to %s is illegal: %v, %+v", from, to, err, after)
					}
					continue
				}
				if err != nil || after.Status != to || after.HeadSHA != "abc" || after.FinishedAt.IsZero() == to.Final() ||
					to == squad.ExecutionRunning && after.StartedAt.IsZero() {
					h.t.Errorf("%s to %s: %v, %+v", from, to, err, after)
				}
			}
		}
	})
}

func TestMove_FlagNeedsACause(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		n := h.task()
		for name, f := range map[string]func(ctx context.Context, tx *store.Tx) error{
			"no cause": func(ctx context.Context, tx *store.Tx) error {
				_, err := h.life.Move(ctx, tx, n.ID, squad.TaskTodo, squad.FlagBlocked, "")
				return err
			},
			"no such column": func(ctx context.Context, tx *store.Tx) error {
				_, err := h.life.Move(ctx, tx, n.ID, "limbo", squad.FlagNone, "")
				return err
			},
			"no such flag": func(ctx context.Context, tx *store.Tx) error {
				_, err := h.life.Move(ctx, tx, n.ID, squad.TaskTodo, "odd", "x")
				return err
			},
			"born done": func(ctx context.Context, tx *store.Tx) error {
				return h.life.Create(ctx, tx, &squad.Task{SquadID: h.squad.ID, Title: "t", Status: squad.TaskDone})
			},
			"born nameless": func(ctx context.Context, tx *store.Tx) error {
				return h.life.Create(ctx, tx, &squad.Task{SquadID: h.squad.ID, Title: " "})
			},
			"stranger's": func(ctx context.Context, tx *store.Tx) error {
				return h.life.Create(ctx, tx, &squad.Task{SquadID: h.squad.ID, Title: "t", AssigneeID: "x"})
			},
		} {
			if err := h.try(f); squad.CodeOf(err) != squad.CodeInvalid {
				h.t.Errorf("%s: %v", name, err)
			}
		}
	})
}
