package runner_test

import (
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// After a merge the task's branch goes, or stays where the squad keeps branches.
func TestMerge_BranchGoesOrStaysByPolicy(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", `echo hi > hi-$SQUAD_TASK_NUMBER.txt`)
	for _, keep := range []bool{false, true} {
		h.tx(func(tx *store.Tx) error {
			s, err := tx.Squad(t.Context(), h.squad.ID)
			if err != nil {
				return err
			}
			s.Config.Cleanup.KeepBranch = keep
			return tx.UpdateSquad(t.Context(), &s)
		})
		k := h.task("Say hi", ada)
		e := h.start(k)
		k = h.untilTask(k, inReview)
		_, err := h.runner.Merge(t.Context(), squad.System(), k.ID, squad.MergeOptions{})
		h.must(err)
		h.untilTask(k, func(k squad.Task) bool { return k.Status == squad.TaskDone })
		h.cleaned(e)
		if there := h.git("branch", "--list", "task-*") != ""; there != keep {
			t.Errorf("kept by policy: %v; there: %v", keep, there)
		}
	}
}

// cleaned waits for the end of the clean-up after an execution.
func (h *house) cleaned(e squad.Execution) {
	h.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		f, err := h.store.Flow(h.t.Context(), "cleanup-"+e.ID)
		if err == nil && f.Status == store.FlowSucceeded {
			return
		}
		if time.Since(began) > time.Minute {
			h.t.Fatalf("the clean-up is %q: %s %v", f.Status, f.Error, err)
		}
	}
}
