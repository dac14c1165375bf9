package runner_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/forge"
	"agentsquad/internal/store"
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

// Rows tell who works where on what, and after the merge that it is over.
func TestExecution_RowsTellTheStory(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", `echo working; if [ "$SQUAD_TURN" = 1 ]; then echo '{"squad":"question","text":"now?"}'; else echo hi > hi.txt; fi`)
	k := h.task("Say hi", ada)
	e := h.start(k)
	e = h.untilExecution(k, e.ID, func(e squad.Execution) bool { return e.Status == squad.ExecutionWaiting })
	m, err := h.store.Member(t.Context(), ada.ID)
	h.must(err)
	if g := m.GitContext; m.SandboxID == "" || m.SandboxID != e.SandboxID || m.CurrentTaskID != k.ID || g.Branch != "task-1" || g.BaseBranch != "main" || g.RepositoryID != h.repo.ID {
		t.Errorf("member %+v", m)
	}
	log := h.until(k, "log", func(e squad.Event) bool { return e.Type == squad.EventLog })
	if log.SandboxID != e.SandboxID || log.ExecutionID != e.ID || log.MemberID != ada.ID {
		t.Errorf("log of sandbox %q, execution %q, member %q", log.SandboxID, log.ExecutionID, log.MemberID)
	}
	_, err = h.runner.Nudge(t.Context(), squad.System(), k.ID, "yes")
	h.must(err)
	h.untilTask(k, inReview)
	if e = h.execution(e.ID); e.GitBranch != "task-1" || e.PullRequestURL == "" || len(e.CommitHistory) != 1 || e.CommitHistory[0].SHA != e.HeadSHA {
		t.Errorf("execution %+v", e)
	}
	_, err = h.runner.Merge(t.Context(), squad.System(), k.ID, squad.MergeOptions{})
	h.must(err)
	h.untilTask(k, func(k squad.Task) bool { return k.Status == squad.TaskDone })
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for _, err := range h.events.Subscribe(ctx, store.EventFilter{MemberID: ada.ID, Types: []squad.EventType{squad.EventMemberChanged}}) {
		if err != nil {
			t.Fatalf("the member is not free: %q %q %+v", m.SandboxID, m.CurrentTaskID, m.GitContext)
		}
		m, err = h.store.Member(t.Context(), ada.ID)
		h.must(err)
		if m.SandboxID == "" && m.CurrentTaskID == "" && m.GitContext == (squad.GitContext{}) {
			return
		}
	}
}

// A review is another turn in the same sandbox; a second push brings the pull
// request up to date.
func TestExecution_ReviewBecomesAnotherTurn(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", `if [ "$SQUAD_TURN" = 1 ]; then echo hi > hi.txt; else grep -q 'be kinder' "$SQUAD_TASK_FILE" && echo 'dear all, hi' > hi.txt; fi`)
	k := h.task("Say hi", ada)
	e := h.start(k)
	k = h.untilTask(k, inReview)
	pull := h.pull(k)
	_, err := h.forges.Review(t.Context(), squad.System(), pull.ID, squad.NewReview{Path: "hi.txt", Line: 1, Verdict: "request_changes", Body: "be kinder"})
	h.must(err)
	h.until(k, "second push", func(squad.Event) bool { return h.pull(k).HeadSHA != pull.HeadSHA })
	k = h.untilTask(k, inReview)
	if got := h.git("show", "task-1:hi.txt"); got != "dear all, hi" {
		t.Errorf("branch has %q", got)
	}
	now, err := h.store.Execution(t.Context(), e.ID)
	h.must(err)
	if now.Turn != 2 || len(now.CommitHistory) != 2 {
		t.Errorf("turn %d, commits %v", now.Turn, now.CommitHistory)
	}
	if list, _ := h.store.Sandboxes(t.Context(), store.SandboxFilter{TaskID: k.ID}); len(list) != 1 {
		t.Errorf("%d sandboxes", len(list))
	}
}

// An agent that says success and changed nothing has not done the task.
func TestExecution_NoChangeIsAFailure(t *testing.T) {
	h := newHouse(t)
	boss := squad.Member{SquadID: h.squad.ID, Name: "Pat", Role: squad.RoleProjectManager, IsActive: true}
	h.tx(func(tx *store.Tx) error { return tx.CreateMember(t.Context(), &boss) })
	k := h.task("Do it", h.member("Lazy", "echo all done"))
	h.start(k)
	k = h.untilTask(k, func(k squad.Task) bool { return k.Flag != "" })
	if k.Flag != squad.FlagFailed || !strings.Contains(k.Cause, "changed nothing") {
		t.Errorf("task %s: %s", k.Flag, k.Cause)
	}
	list, err := h.store.Messages(t.Context(), store.MessageFilter{To: "member:" + boss.ID})
	h.must(err)
	if len(list) != 1 || list[0].Kind != "escalation" {
		t.Errorf("escalations %+v", list)
	}
	h.until(k, "end of sandbox", func(e squad.Event) bool { return e.Type == squad.EventSandboxTerminated })
}

// The work of an agent that fails is kept, and a retry continues from it.
func TestExecution_RetryContinuesFromTheCheckpoint(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", `if [ -f half.txt ]; then echo whole > whole.txt; else echo half > half.txt; exit 3; fi`)
	k := h.task("Do it in two", ada)
	h.start(k)
	k = h.untilTask(k, func(k squad.Task) bool { return k.Flag != "" })
	h.until(k, "end of sandbox", func(e squad.Event) bool { return e.Type == squad.EventSandboxTerminated })
	_, err := h.runner.Retry(t.Context(), squad.System(), k.ID, squad.RunOptions{})
	h.must(err)
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" {
		h.story(k)
		t.Fatalf("retry: %s", k.Cause)
	}
	if got := h.git("show", "task-1:half.txt", "task-1:whole.txt"); got != "half\nwhole" {
		t.Errorf("branch has %q", got)
	}
}

// Two tasks change the same line: radar sees it, and after the first is merged the
// second gets the clash with both sides and solves it.
func TestExecution_ClashGoesToTheAgentWithBothSides(t *testing.T) {
	h := newHouse(t)
	first := h.task("Greet the world", h.member("Ada", `echo 'hello world' > README.md`))
	h.start(first)
	h.untilTask(first, inReview)
	second := h.task("Greet the moon", h.member("Bob", `
if [ "$SQUAD_TURN" = 1 ]; then echo 'hello moon' > README.md; exit; fi
grep -q 'hello world' "$SQUAD_TASK_FILE" && grep -q 'hello moon' "$SQUAD_TASK_FILE" || exit 9
echo 'hello world and moon' > README.md
git add README.md && GIT_EDITOR=true git rebase --continue`))
	h.start(second)
	h.untilTask(second, inReview)
	h.until(first, "conflict", func(e squad.Event) bool { return e.Type == squad.EventConflictDetected })
	_, err := h.runner.Merge(t.Context(), squad.System(), first.ID, squad.MergeOptions{})
	h.must(err)
	h.untilTask(first, func(k squad.Task) bool { return k.Status == squad.TaskDone })
	h.until(second, "merged text", func(squad.Event) bool {
		out, err := exec.Command("git", "-C", forge.LocalDir(filepath.Join(h.data, "repos"), h.repo.ID), "show", "task-2:README.md").Output()
		return err == nil && strings.TrimSpace(string(out)) == "hello world and moon"
	})
	second = h.untilTask(second, inReview)
	if pull := h.pull(second); pull.Mergeable != "clean" {
		t.Errorf("pull request is %s", pull.Mergeable)
	}
}

// Cancelling stops the agent, keeps its work and leaves no sandbox.
func TestCancel_KeepsTheWorkAndLeavesNoSandbox(t *testing.T) {
	h := newHouse(t)
	k := h.task("Never end", h.member("Slow", `echo begun > begun.txt; echo waiting; sleep 600`))
	e := h.start(k)
	h.until(k, "output", func(e squad.Event) bool {
		return e.Type == squad.EventLog && strings.Contains(string(e.Payload), "waiting")
	})
	_, err := h.runner.Cancel(t.Context(), squad.System(), k.ID, "not needed")
	h.must(err)
	h.until(k, "end of sandbox", func(e squad.Event) bool { return e.Type == squad.EventSandboxTerminated })
	now, err := h.store.Execution(t.Context(), e.ID)
	h.must(err)
	if now.Status != squad.ExecutionCancelled || now.HeadSHA == "" {
		t.Errorf("execution %s, head %q", now.Status, now.HeadSHA)
	}
	if got := h.git("show", now.HeadSHA+":begun.txt"); got != "begun" {
		t.Errorf("kept %q", got)
	}
}

// A retry in the same breath as the cancel waits for the work and goes on from it.
func TestCancel_RetryAtOnceLosesNothing(t *testing.T) {
	h := newHouse(t)
	k := h.task("Begin again", h.member("Ada", `if [ -f half.txt ]; then echo whole > whole.txt; exit; fi; echo half > half.txt; echo working; sleep 600`))
	e := h.start(k)
	h.working(k, e)
	_, err := h.runner.Cancel(t.Context(), squad.System(), k.ID, "try again")
	h.must(err)
	_, err = h.runner.Retry(t.Context(), squad.System(), k.ID, squad.RunOptions{})
	h.must(err)
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" {
		h.story(k)
		t.Fatalf("retry: %s", k.Cause)
	}
	if got := h.git("show", "task-1:half.txt", "task-1:whole.txt"); got != "half\nwhole" {
		t.Errorf("branch has %q", got)
	}
}

// A question waits for a person; the answer is the next turn.
func TestExecution_QuestionWaitsForAnAnswer(t *testing.T) {
	h := newHouse(t)
	k := h.task("Ask first", h.member("Ada", `
if [ "$SQUAD_TURN" = 1 ]; then echo '{"squad":"question","text":"tea or coffee?"}'; else grep -q 'tea please' "$SQUAD_TASK_FILE" && echo tea > drink.txt; fi`))
	e := h.start(k)
	h.until(k, "wait", func(squad.Event) bool {
		now, err := h.store.Execution(t.Context(), e.ID)
		return err == nil && now.Status == squad.ExecutionWaiting && now.Liveness.State == "person"
	})
	_, err := h.runner.Nudge(t.Context(), squad.System(), k.ID, "tea please")
	h.must(err)
	h.untilTask(k, inReview)
	if got := h.git("show", "task-1:drink.txt"); got != "tea" {
		t.Errorf("drink %q", got)
	}
}

func inReview(k squad.Task) bool { return k.Status == squad.TaskInReview }

func (h *house) pull(k squad.Task) squad.PullRequest {
	h.t.Helper()
	list, err := h.store.PullRequests(h.t.Context(), store.PullRequestFilter{TaskID: k.ID})
	h.must(err)
	if len(list) != 1 {
		h.t.Fatalf("%d pull requests for task #%d", len(list), k.Number)
	}
	return list[0]
}

// Several tries at once push nothing; the one that is kept becomes the pull request.
func TestFork_OneOfSeveralTriesIsKept(t *testing.T) {
	h := newHouse(t)
	ada, bob := h.member("Ada", `echo ada > who.txt`), h.member("Bob", `echo bob > who.txt`)
	k := h.task("Try both", ada)
	made, err := h.runner.Fork(t.Context(), squad.System(), k.ID, squad.ForkOptions{Members: []string{ada.ID, bob.ID}})
	h.must(err)
	for _, e := range made {
		h.until(k, "try to finish", func(squad.Event) bool {
			now, err := h.store.Execution(t.Context(), e.ID)
			return err == nil && now.Status == squad.ExecutionWaiting
		})
	}
	if out := h.git("branch", "--list", "'task-*'"); out != "" {
		t.Errorf("pushed before one was kept: %s", out)
	}
	_, err = h.runner.Keep(t.Context(), squad.System(), made[1].ID)
	h.must(err)
	h.untilTask(k, inReview)
	if got := h.git("show", "task-1:who.txt"); got != "bob" {
		t.Errorf("branch has %q", got)
	}
	if other, _ := h.store.Execution(t.Context(), made[0].ID); other.Status != squad.ExecutionCancelled {
		t.Errorf("the other try is %s", other.Status)
	}
	h.pull(k)
	var kept squad.Execution
	h.until(k, "kept try to wait for its review", func(squad.Event) bool {
		kept, err = h.store.Execution(t.Context(), made[1].ID)
		return err == nil && (kept.Status == squad.ExecutionWaiting || kept.Status.Final())
	})
	if kept.Status != squad.ExecutionWaiting {
		t.Errorf("the kept try is %s: %s", kept.Status, kept.Error)
	}
}
