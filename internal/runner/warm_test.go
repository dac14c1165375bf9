package runner_test

import (
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/runner"
	"agentsquad/internal/store"
)

// A merge moves the base: the sandbox that waits for the next task has the new one.
func TestWarm_WaitsOnTheNewestHead(t *testing.T) {
	h := newHouse(t, func(l *runner.Limits) { l.Warm = 1 })
	k := h.task("Write a file", h.member("Ada", "echo one > one.txt"))
	h.start(k)
	h.untilTask(k, func(k squad.Task) bool { return k.Status == squad.TaskInReview })
	_, err := h.runner.Merge(t.Context(), squad.System(), k.ID, squad.MergeOptions{})
	h.must(err)
	h.untilTask(k, func(k squad.Task) bool { return k.Status == squad.TaskDone })
	key := h.repo.ID + "@" + h.git("rev-parse", "main")
	pooled := true
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		rows, err := h.store.Sandboxes(t.Context(), store.SandboxFilter{Pooled: &pooled, Statuses: []squad.SandboxStatus{squad.SandboxRunning}})
		h.must(err)
		if len(rows) == 1 && rows[0].RepoURL == key {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no sandbox waits for %s: %+v", key, rows)
		}
	}
	// The next task takes it.
	next := h.task("Write another", h.member("Bob", "test -f one.txt && echo two > two.txt"))
	h.start(next)
	h.untilTask(next, func(k squad.Task) bool { return k.Status == squad.TaskInReview })
	states, err := h.boxes.Pool(t.Context())
	h.must(err)
	var hits int64
	for _, s := range states {
		if s.Key == key {
			hits += s.Hits
		}
	}
	if hits != 1 {
		t.Errorf("the pool was hit %d times: %+v", hits, states)
	}
}
