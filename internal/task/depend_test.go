package task_test

import (
	"context"
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

func TestStartExecution_WaitsForDependencies(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		first := h.task()
		second := h.task(first.ID)
		_, err := h.start(second.ID)
		if squad.CodeOf(err) != squad.CodeConflict || !strings.Contains(err.Error(), "#1 do it") {
			h.t.Fatalf("started: %v", err)
		}
		if err := h.move(second.ID, squad.TaskInProgress); squad.CodeOf(err) != squad.CodeConflict {
			h.t.Fatalf("moved: %v", err)
		}
		if es, _ := h.store.Executions(h.t.Context(), store.ExecutionFilter{}); len(es) != 0 {
			h.t.Fatalf("%d executions are left over", len(es))
		}
		if err := h.move(first.ID, squad.TaskDone); err != nil {
			h.t.Fatal(err)
		}
		e, err := h.start(second.ID)
		if err != nil || e.Status != squad.ExecutionQueued || e.Attempt != 1 || e.GitBranch != "task-2" || e.MemberID != h.member.ID {
			h.t.Fatalf("%+v, %v", e, err)
		}
		got, err := h.store.Task(h.t.Context(), second.ID)
		if err != nil || got.Status != squad.TaskInProgress || got.ExecutionID != e.ID || got.AssigneeID != h.member.ID {
			h.t.Fatalf("%+v, %v", got, err)
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

func TestReady_UrgentFirstAndOnlyWhatCanStart(t *testing.T) {
	t.Parallel()
	both(t, func(h *house) {
		done, low, urgent := h.task(), h.task(), h.task()
		waits := h.task(low.ID)
		free := h.task(done.ID)
		for _, id := range []string{low.ID, urgent.ID, waits.ID, free.ID} {
			if err := h.move(id, squad.TaskTodo); err != nil {
				h.t.Fatal(err)
			}
		}
		if err := h.move(done.ID, squad.TaskDone); err != nil {
			h.t.Fatal(err)
		}
		h.must(func(ctx context.Context, tx *store.Tx) error {
			_, err := h.life.Edit(ctx, tx, urgent.ID, 0, func(t *squad.Task) error { t.Priority = 3; return nil })
			return err
		})
		got, err := h.life.Ready(h.t.Context(), h.store.Query, h.squad.ID)
		if err != nil || len(got) != 3 || got[0].ID != urgent.ID || got[1].ID != low.ID || got[2].ID != free.ID {
			h.t.Fatalf("%+v, %v", got, err)
		}
		h.must(func(ctx context.Context, tx *store.Tx) error { return h.life.Delete(ctx, tx, done.ID) })
		if t, err := h.store.Task(h.t.Context(), free.ID); err != nil || len(t.DependsOn) != 0 {
			h.t.Fatalf("%+v, %v", t, err)
		}
	})
}
