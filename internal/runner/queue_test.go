package runner_test

import (
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/runner"
	"agentsquad/internal/store"
)

// one lets one execution run at a time.
func one(l *runner.Limits) { l.Running = 1 }

// busy is an agent that holds its place until it is cancelled.
const busy = "echo working; sleep 600"

func (h *house) execution(id string) squad.Execution {
	h.t.Helper()
	e, err := h.store.Execution(h.t.Context(), id)
	h.must(err)
	return e
}

// untilExecution waits until an execution of the task stands somewhere.
func (h *house) untilExecution(k squad.Task, id string, is func(squad.Execution) bool) squad.Execution {
	h.t.Helper()
	var now squad.Execution
	h.until(k, "expected state of the execution", func(squad.Event) bool { now = h.execution(id); return is(now) })
	return now
}

func (h *house) edit(k squad.Task, change func(*squad.Task)) {
	h.t.Helper()
	h.tx(func(tx *store.Tx) error {
		_, err := h.life.Edit(h.t.Context(), tx, k.ID, 0, func(k *squad.Task) error { change(k); return nil })
		return err
	})
}

func (h *house) cancel(k squad.Task) {
	h.t.Helper()
	_, err := h.runner.Cancel(h.t.Context(), squad.System(), k.ID, "make room")
	h.must(err)
}

// working waits until the agent of an execution is at work.
func (h *house) working(k squad.Task, e squad.Execution) {
	h.t.Helper()
	h.until(k, "work", func(ev squad.Event) bool {
		return ev.Type == squad.EventLog && ev.ExecutionID == e.ID && strings.Contains(string(ev.Payload), "working")
	})
}

func running(e squad.Execution) bool { return e.Status == squad.ExecutionRunning }

// A task that waits for another is in the queue without sandbox and without place,
// in nobody's way, and begins by itself when the other is merged.
func TestQueue_TaskBeginsWhenTheOneItWaitsForIsMerged(t *testing.T) {
	h := newHouse(t, one)
	ada := h.member("Ada", `echo "$SQUAD_TASK_TITLE" > "$SQUAD_TASK_NUMBER.txt"`)
	first, second, third := h.task("Lay the floor", ada), h.task("Paint the walls", ada), h.task("Plant a tree", ada)
	h.edit(second, func(k *squad.Task) { k.DependsOn, k.Priority = []string{first.ID}, 3 })
	e := h.start(second)
	if e.Liveness.Detail != "waits for #1 Lay the floor" {
		t.Errorf("says %+v", e.Liveness)
	}
	h.start(third)
	h.untilTask(third, inReview)
	h.start(first)
	h.untilTask(first, inReview)
	if e = h.execution(e.ID); e.Status != squad.ExecutionQueued || e.SandboxID != "" {
		t.Fatalf("began before it could: %s, sandbox %q", e.Status, e.SandboxID)
	}
	_, err := h.runner.Merge(t.Context(), squad.System(), first.ID, squad.MergeOptions{})
	h.must(err)
	h.untilTask(second, inReview)
	if got := h.git("show", "task-2:1.txt", "task-2:2.txt"); got != "Lay the floor\nPaint the walls" {
		t.Errorf("branch has %q", got)
	}
}

// One that waits is cancelled at once, and leaves nothing to clean up.
func TestQueue_CancelOfOneThatWaits(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", "true")
	first, second := h.task("First", ada), h.task("Second", ada)
	h.edit(second, func(k *squad.Task) { k.DependsOn = []string{first.ID} })
	e := h.start(second)
	h.cancel(second)
	if e = h.execution(e.ID); e.Status != squad.ExecutionCancelled || e.Error != "make room" {
		t.Errorf("execution is %s: %s", e.Status, e.Error)
	}
	h.tx(func(tx *store.Tx) error { return h.life.Delete(t.Context(), tx, second.ID) })
}

// The more urgent goes first when a place is free, though it came later.
func TestQueue_UrgentGoesFirst(t *testing.T) {
	h := newHouse(t, one)
	ada := h.member("Ada", busy)
	now, low, urgent := h.task("Now", ada), h.task("Low", ada), h.task("Urgent", ada)
	h.edit(urgent, func(k *squad.Task) { k.Priority = 3 })
	first := h.start(now)
	h.working(now, first)
	late, soon := h.start(low), h.start(urgent)
	h.cancel(now)
	h.working(urgent, soon)
	if e := h.execution(late.ID); e.Status != squad.ExecutionQueued {
		t.Errorf("the less urgent one is %s", e.Status)
	}
	h.cancel(urgent)
	h.working(low, late)
}

// A member's own limit holds its tasks back and nobody else's.
func TestQueue_MembersLimit(t *testing.T) {
	h := newHouse(t)
	ada, bob := h.member("Ada", busy), h.member("Bob", busy)
	ada.Config.MaxRunning = 1
	h.tx(func(tx *store.Tx) error { return tx.UpdateMember(t.Context(), &ada) })
	h.holdsBack(h.task("One", ada), h.task("Two", ada), h.task("Other", bob))
}

// A squad's limit holds its tasks back and no other squad's.
func TestQueue_SquadsLimit(t *testing.T) {
	h := newHouse(t)
	h.squad.Config.MaxRunning = 1
	h.tx(func(tx *store.Tx) error { return tx.UpdateSquad(t.Context(), &h.squad) })
	first, second := h.task("One", h.member("Ada", busy)), h.task("Two", h.member("Bob", busy))
	h.populate() // another squad
	h.holdsBack(first, second, h.task("Other", h.member("Cy", busy)))
}

// holdsBack runs three tasks and wants the second to wait for the first's place, while
// the third runs.
func (h *house) holdsBack(first, second, other squad.Task) {
	h.t.Helper()
	runs := h.start(first)
	h.working(first, runs)
	waits, passes := h.start(second), h.start(other)
	h.working(other, passes)
	if e := h.execution(waits.ID); e.Status != squad.ExecutionQueued {
		h.t.Errorf("past the limit one is %s", e.Status)
	}
	h.cancel(first)
	h.working(second, waits)
}

// An agent that makes the same call again and again is shown as looping.
func TestLiveness_SameCallAgainIsALoop(t *testing.T) {
	h := newHouse(t)
	k := h.task("Go round", h.member("Ada", `
for i in 1 2 3 4 5 6; do
  echo '{"squad":"tool_call","id":"'$i'","title":"test","kind":"execute","status":"running","command":"make test"}'
  echo '{"squad":"tool_call","id":"'$i'","title":"test","kind":"execute","status":"completed","command":"make test","exit_code":2}'
done; sleep 600`))
	e := h.start(k)
	e = h.untilExecution(k, e.ID, func(e squad.Execution) bool { return e.Liveness.State == "looping" })
	if e.Liveness.Detail != "make test" || e.Liveness.Since.IsZero() || !running(e) {
		t.Errorf("%s: %+v", e.Status, e.Liveness)
	}
}

// The work goes on with another member, from where the first one left it.
func TestReassign_GoesOnFromTheCheckpoint(t *testing.T) {
	h := newHouse(t)
	ada, bob := h.member("Ada", "echo half > half.txt; "+busy), h.member("Bob", "cat half.txt > whole.txt")
	k := h.task("Do it in two", ada)
	e := h.start(k)
	h.working(k, e)
	again, err := h.runner.Reassign(t.Context(), squad.System(), e.ID, bob.ID)
	h.must(err)
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" || k.AssigneeID != bob.ID || again.Attempt != 2 {
		h.story(k)
		t.Fatalf("task %s (%s), attempt %d", k.Flag, k.Cause, again.Attempt)
	}
	if got := h.git("show", "task-1:half.txt", "task-1:whole.txt"); got != "half\nhalf" {
		t.Errorf("branch has %q", got)
	}
	if e = h.execution(e.ID); e.Status != squad.ExecutionCancelled || !strings.HasPrefix(e.Error, "reassigned by ") {
		t.Errorf("the first one is %s: %s", e.Status, e.Error)
	}
	if got := h.git("log", "-1", "--format=%an", "task-1"); got != "Bob" {
		t.Errorf("commit of %q", got)
	}
}

// So it does after a pull request was opened: half a second turn is not lost.
func TestReassign_GoesOnWithHalfASecondTurn(t *testing.T) {
	h := newHouse(t)
	ada := h.member("Ada", `if [ "$SQUAD_TURN" = 1 ]; then echo one > one.txt; else echo half > half.txt; `+busy+`; fi`)
	bob := h.member("Bob", "cat one.txt half.txt > whole.txt")
	k := h.task("Do it in two", ada)
	e := h.start(k)
	h.untilTask(k, inReview)
	pull := h.pull(k)
	_, err := h.runner.Nudge(t.Context(), squad.System(), k.ID, "and the other half")
	h.must(err)
	h.working(k, e)
	_, err = h.runner.Reassign(t.Context(), squad.System(), e.ID, bob.ID)
	h.must(err)
	h.until(k, "second push", func(squad.Event) bool { return h.pull(k).HeadSHA != pull.HeadSHA })
	if got := h.git("show", "task-1:half.txt", "task-1:whole.txt"); got != "half\none\nhalf" {
		t.Errorf("branch has %q", got)
	}
}

// After as many attempts as the squad allows the task is blocked with the cause, and
// the project manager hears what was tried.
func TestEscalation_AfterTheLastAttempt(t *testing.T) {
	h := newHouse(t)
	boss := squad.Member{SquadID: h.squad.ID, Name: "Pat", Role: squad.RoleProjectManager, IsActive: true}
	h.squad.Config.MaxAttempts = 2
	h.tx(func(tx *store.Tx) error {
		if err := tx.CreateMember(t.Context(), &boss); err != nil {
			return err
		}
		return tx.UpdateSquad(t.Context(), &h.squad)
	})
	k := h.task("Hold on", h.member("Ada", busy))
	h.start(k)
	killed := map[string]bool{}
	h.until(k, "end of the last attempt", func(e squad.Event) bool {
		if e.Type == squad.EventLog && strings.Contains(string(e.Payload), "working") && !killed[e.SandboxID] {
			killed[h.killBox(k)] = true
		}
		now, err := h.store.Task(t.Context(), k.ID)
		h.must(err)
		return now.Flag != ""
	})
	now, err := h.store.Task(t.Context(), k.ID)
	h.must(err)
	if now.Flag != squad.FlagBlocked || !strings.Contains(now.Cause, "the sandbox was lost") {
		t.Errorf("task is %s: %s", now.Flag, now.Cause)
	}
	list, err := h.store.Messages(t.Context(), store.MessageFilter{To: "member:" + boss.ID})
	h.must(err)
	if len(list) != 1 || list[0].Kind != "escalation" {
		t.Fatalf("escalations %+v", list)
	}
	for _, want := range []string{`Task #1 "Hold on" is stuck`, "- attempt 1, 1 turn(s), failed: the sandbox was lost", "- attempt 2, 1 turn(s), failed: "} {
		if !strings.Contains(list[0].Body, want) {
			t.Errorf("%q is not in %q", want, list[0].Body)
		}
	}
}
