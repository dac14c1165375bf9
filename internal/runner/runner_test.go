package runner_test

import (
	"testing"

	squad "agentsquad"
)

func TestExecution_TaskBecomesAMergedPullRequest(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", `echo hi > hi.txt; echo '{"squad":"message","text":"said hi"}'`)
	k := h.task("Say hi", ada)
	h.start(k)
	k = h.untilTask(k, func(k squad.Task) bool { return k.Status == squad.TaskInReview || k.Flag != "" })
	if k.Flag != "" || k.PullRequestURL == "" {
		h.story(k)
		t.Fatalf("task %+v", k)
	}
	if got := h.git("show", "task-1:hi.txt"); got != "hi" {
		t.Errorf("branch has %q", got)
	}
	if got := h.git("log", "-1", "--format='%an: %s'", "task-1"); got != "Ada: feat: say hi" {
		t.Errorf("commit %q", got)
	}
	if _, err := h.runner.Merge(t.Context(), squad.System(), k.ID, squad.MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	k = h.untilTask(k, func(k squad.Task) bool { return k.Status == squad.TaskDone })
	h.until(k, "end of sandbox", func(e squad.Event) bool { return e.Type == squad.EventSandboxTerminated })
	if got := h.git("show", "main:hi.txt"); got != "hi" {
		t.Errorf("main has %q", got)
	}
	if t.Failed() || testing.Verbose() {
		h.story(k)
	}
}
