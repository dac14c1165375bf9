package task_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

func (h *house) move(id string, to squad.TaskStatus) error {
	return h.try(func(ctx context.Context, tx *store.Tx) error {
		_, err := h.life.Move(ctx, tx, id, to, squad.FlagNone, "")
		return err
	})
}

func (h *house) start(id string) (e squad.Execution, err error) {
	err = h.try(func(ctx context.Context, tx *store.Tx) error {
		e, err = h.life.StartExecution(ctx, tx, id, h.member.ID)
		return err
	})
	return e, err
}

// says is what an execution tells of its wait, and whether the queue would begin it.
func (h *house) says(e squad.Execution) (text string, ready bool) {
	h.t.Helper()
	now, err := h.store.Execution(h.t.Context(), e.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	queue, err := h.store.Queue(h.t.Context(), 100, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	if text = now.Liveness.Detail; (text != "") != (now.Liveness.State == "dependency") {
		h.t.Fatalf("%+v", now.Liveness)
	}
	return text, slices.ContainsFunc(queue, func(q squad.Execution) bool { return q.ID == e.ID })
}

func (h *house) wantSays(e squad.Execution, want string) {
	h.t.Helper()
	if text, ready := h.says(e); text != want || ready != (want == "") {
		h.t.Fatalf("says %q, ready %v; want %q", text, ready, want)
	}
}

func TestStartExecution_WaitsInTheQueueForDependencies(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		one, two := h.task(), h.task()
		third := h.task(one.ID, two.ID)
		e, err := h.start(third.ID)
		if err != nil || e.Status != squad.ExecutionQueued || e.Attempt != 1 || e.GitBranch != "task-3" || e.MemberID != h.member.ID {
			h.t.Fatalf("%+v, %v", e, err)
		}
		got, err := h.store.Task(h.t.Context(), third.ID)
		if err != nil || got.Status != squad.TaskInProgress || got.ExecutionID != e.ID || got.AssigneeID != h.member.ID {
			h.t.Fatalf("%+v, %v", got, err)
		}
		h.wantSays(e, "waits for #1 do it, #2 do it")
		if err := h.move(one.ID, squad.TaskDone); err != nil {
			h.t.Fatal(err)
		}
		h.wantSays(e, "waits for #2 do it")
		h.must(func(ctx context.Context, tx *store.Tx) error {
			_, err := h.life.Move(ctx, tx, two.ID, squad.TaskBacklog, squad.FlagCancelled, "not now")
			return err
		})
		h.wantSays(e, "waits for #2 do it (cancelled)")
		if _, err := h.start(two.ID); err != nil { // taken up again
			h.t.Fatal(err)
		}
		h.wantSays(e, "waits for #2 do it")
		if err := h.move(two.ID, squad.TaskDone); err != nil {
			h.t.Fatal(err)
		}
		h.wantSays(e, "")
		if err := h.move(one.ID, squad.TaskTodo); err != nil { // reopened before the third began
			h.t.Fatal(err)
		}
		h.wantSays(e, "waits for #1 do it")
	})
}

func TestEdit_DependenciesOfOneThatWaitsAreItsOwn(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		one, two := h.task(), h.task()
		third := h.task()
		e, err := h.start(third.ID)
		if err != nil {
			h.t.Fatal(err)
		}
		h.wantSays(e, "")
		edit := func(id string, change func(*squad.Task)) {
			h.t.Helper()
			h.must(func(ctx context.Context, tx *store.Tx) error {
				_, err := h.life.Edit(ctx, tx, id, 0, func(t *squad.Task) error { change(t); return nil })
				return err
			})
		}
		edit(third.ID, func(t *squad.Task) { t.DependsOn = []string{one.ID, two.ID} })
		edit(one.ID, func(t *squad.Task) { t.Title = strings.Repeat("é", 100) })
		h.wantSays(e, "waits for #1 "+strings.Repeat("é", 80)+"…, #2 do it")
		edit(third.ID, func(t *squad.Task) { t.DependsOn = []string{two.ID} })
		h.wantSays(e, "waits for #2 do it")
		h.must(func(ctx context.Context, tx *store.Tx) error { return h.life.Delete(ctx, tx, two.ID) })
		h.wantSays(e, "")
		var many []string
		for range 7 {
			many = append(many, h.task().ID)
		}
		edit(third.ID, func(t *squad.Task) { t.DependsOn = many })
		h.wantSays(e, "waits for #4 do it, #5 do it, #6 do it, #7 do it, #8 do it, and 2 more")
		// One that has begun waits for nobody: it may be in its second turn.
		for _, to := range []squad.ExecutionStatus{squad.ExecutionRunning, squad.ExecutionWaiting, squad.ExecutionQueued} {
			h.must(func(ctx context.Context, tx *store.Tx) error {
				_, err := h.life.MoveExecution(ctx, tx, e.ID, to, func(e *squad.Execution) { e.Liveness = squad.Liveness{} })
				return err
			})
		}
		edit(third.ID, func(t *squad.Task) { t.DependsOn = many[:3] })
		h.wantSays(e, "")
	})
}

// A task that is put back before its execution began does not begin later by itself.
func TestMove_BackOutOfTheQueue(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		first := h.task()
		second := h.task(first.ID)
		for _, to := range []squad.TaskStatus{squad.TaskTodo, squad.TaskBacklog, squad.TaskDone} {
			e, err := h.start(second.ID)
			if err != nil {
				h.t.Fatal(err)
			}
			if err := h.move(second.ID, to); err != nil {
				h.t.Fatal(err)
			}
			if e, err = h.store.Execution(h.t.Context(), e.ID); err != nil || e.Status != squad.ExecutionCancelled || e.Error != "the task was moved to "+string(to) {
				h.t.Fatalf("%+v, %v", e, err)
			}
		}
		e, err := h.start(first.ID)
		if err != nil {
			h.t.Fatal(err)
		}
		h.must(func(ctx context.Context, tx *store.Tx) error {
			_, err := h.life.Move(ctx, tx, first.ID, squad.TaskInProgress, squad.FlagCancelled, "not now")
			return err
		})
		if e, err = h.store.Execution(h.t.Context(), e.ID); err != nil || e.Status != squad.ExecutionCancelled || e.Error != "not now" {
			h.t.Fatalf("%+v, %v", e, err)
		}
	})
}

func TestStartExecution_OneAtATimeAndNumbered(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		n := h.task()
		first, err := h.start(n.ID)
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := h.start(n.ID); squad.CodeOf(err) != squad.CodeConflict {
			h.t.Fatalf("second at once: %v", err)
		}
		h.must(func(ctx context.Context, tx *store.Tx) error {
			_, err := h.life.MoveExecution(ctx, tx, first.ID, squad.ExecutionFailed, nil)
			return err
		})
		if second, err := h.start(n.ID); err != nil || second.Attempt != 2 {
			h.t.Fatalf("%+v, %v", second, err)
		}
		if err := h.try(func(ctx context.Context, tx *store.Tx) error { return h.life.Delete(ctx, tx, n.ID) }); squad.CodeOf(err) != squad.CodeConflict {
			h.t.Fatalf("deleted while worked on: %v", err)
		}
	})
}

func TestStartParallel_OneExecutionForEachMember(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		other := squad.Member{SquadID: h.squad.ID, Name: "bob", Role: "developer", IsActive: true}
		h.must(func(ctx context.Context, tx *store.Tx) error { return tx.CreateMember(ctx, &other) })
		n := h.task()
		var all []squad.Execution
		h.must(func(ctx context.Context, tx *store.Tx) (err error) {
			all, err = h.life.StartParallel(ctx, tx, n.ID, []string{h.member.ID, other.ID})
			return err
		})
		if len(all) != 2 || all[0].Lane != 0 || all[1].Lane != 1 || all[0].Attempt != 1 || all[1].Attempt != 1 {
			h.t.Fatalf("%+v", all)
		}
		// As long as one of them goes on, the task is being worked on.
		for i, e := range all {
			if _, err := h.start(n.ID); squad.CodeOf(err) != squad.CodeConflict {
				h.t.Fatalf("started beside %d others: %v", len(all)-i, err)
			}
			h.must(func(ctx context.Context, tx *store.Tx) error {
				_, err := h.life.MoveExecution(ctx, tx, e.ID, squad.ExecutionFailed, nil)
				return err
			})
		}
		if e, err := h.start(n.ID); err != nil || e.Attempt != 2 {
			h.t.Fatalf("%+v, %v", e, err)
		}
	})
}

func TestStartExecution_PausedSquadStartsNothing(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		n := h.task()
		h.squad.Status = squad.SquadPaused
		h.must(func(ctx context.Context, tx *store.Tx) error { return tx.UpdateSquad(ctx, &h.squad) })
		if _, err := h.start(n.ID); squad.CodeOf(err) != squad.CodeConflict {
			h.t.Fatalf("started: %v", err)
		}
	})
}

func TestEdit_CirclesAndStaleVersionsAreRefused(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		a := h.task()
		b := h.task(a.ID)
		c := h.task(b.ID)
		edit := func(version int64, change func(*squad.Task)) error {
			return h.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := h.life.Edit(ctx, tx, a.ID, version, func(t *squad.Task) error { change(t); return nil })
				return err
			})
		}
		for name, id := range map[string]string{"itself": a.ID, "a circle": c.ID, "a stranger": "x"} {
			if err := edit(0, func(t *squad.Task) { t.DependsOn = []string{id} }); squad.CodeOf(err) != squad.CodeInvalid {
				h.t.Errorf("%s: %v", name, err)
			}
		}
		if err := edit(a.Version+5, func(t *squad.Task) { t.Title = "x" }); squad.CodeOf(err) != squad.CodeStale {
			h.t.Errorf("stale: %v", err)
		}
		if err := edit(a.Version, func(t *squad.Task) { t.Title, t.Status = "new", squad.TaskDone }); err != nil {
			h.t.Fatal(err)
		}
		got, err := h.store.Task(h.t.Context(), a.ID)
		if err != nil || got.Title != "new" || got.Status != squad.TaskBacklog {
			h.t.Fatalf("%+v, %v", got, err)
		}
	})
}

func TestQueue_UrgentFirstThenOldest(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		low, urgent, held, later := h.task(), h.task(), h.task(), h.task()
		h.must(func(ctx context.Context, tx *store.Tx) error {
			if _, err := h.life.Edit(ctx, tx, urgent.ID, 0, func(t *squad.Task) error { t.Priority = 3; return nil }); err != nil {
				return err
			}
			_, err := h.life.Edit(ctx, tx, held.ID, 0, func(t *squad.Task) error { t.Priority, t.DependsOn = 3, []string{later.ID}; return nil })
			return err
		})
		var want []string
		for _, k := range []squad.Task{low, urgent, held, later} {
			e, err := h.start(k.ID)
			if err != nil {
				h.t.Fatal(err)
			}
			want = append(want, e.ID)
		}
		got, err := h.store.Queue(h.t.Context(), 10, 0)
		if err != nil || len(got) != 3 || got[0].ID != want[1] || got[1].ID != want[0] || got[2].ID != want[3] {
			h.t.Fatalf("%+v, %v", got, err)
		}
		if rest, err := h.store.Queue(h.t.Context(), 1, 2); err != nil || len(rest) != 1 || rest[0].ID != want[3] {
			h.t.Fatalf("%+v, %v", rest, err)
		}
	})
}
