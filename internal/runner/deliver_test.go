package runner_test

import (
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// A push of the server's own is one operation in the books, not one of each side.
func TestPush_IsOneRow(t *testing.T) {
	h := newHouse(t)
	k := h.task("Write a file", h.member("Ada", "echo one > one.txt"))
	e := h.start(k)
	h.untilTask(k, func(k squad.Task) bool { return k.Status == squad.TaskInReview })
	rows, err := h.store.GitOperations(t.Context(), store.GitOperationFilter{ExecutionID: e.ID})
	h.must(err)
	count := map[string]int{}
	for _, r := range rows {
		if r.Status != "succeeded" {
			t.Errorf("%+v", r)
		}
		count[r.Kind]++
	}
	if count["push"] != 1 || count["commit"] != 1 || count["branch"] != 1 {
		t.Errorf("rows %v", count)
	}
	now, err := h.store.Execution(t.Context(), e.ID)
	h.must(err)
	if now.HeadSHA == "" || len(now.CommitHistory) != 1 {
		t.Errorf("execution %+v", now)
	}
}
