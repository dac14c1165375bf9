package nodes

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/test/house"
)

// check looks at what became of a crew's tasks.
func (c *cluster) check(s, victim *server, w *crew) {
	c.t.Helper()
	bare := filepath.Join(c.repos, w.repo.ID+".git")
	branches := strings.Fields(house.Sh(c.t, bare, "git for-each-ref --format='%(refname:short)' 'refs/heads/task-*'"))
	if len(branches) != len(w.tasks) {
		c.t.Errorf("%s: %d branches for %d tasks: %v", w.provider, len(branches), len(w.tasks), branches)
	}
	for _, k := range w.tasks {
		pulls, err := client.Collect(s.Pulls(c.t.Context(), client.Values{"task_id": k.ID}))
		house.Must(c.t, err)
		if len(pulls) != 1 {
			c.t.Errorf("%s task #%d has %d pull requests", w.provider, k.Number, len(pulls))
		}
		branch := fmt.Sprintf("task-%d", k.Number)
		for _, file := range []string{fmt.Sprintf("first-%d.txt", k.Number), fmt.Sprintf("second-%d.txt", k.Number)} {
			if got := house.Sh(c.t, bare, "git show "+branch+":"+file); got != strconv.FormatInt(k.Number, 10) {
				c.t.Errorf("%s %s: %s has %q", w.provider, branch, file, got)
			}
		}
		if got := house.Sh(c.t, bare, "git log --format=%s main.."+branch); got != "feat: "+strings.ToLower(k.Title) {
			c.t.Errorf("%s %s has commits %q", w.provider, branch, got)
		}
		c.checkPlace(s, victim, w, k)
	}
}

// checkPlace wants the same execution in the same sandbox where that outlived the
// node, and a new sandbox, filled from the checkpoint, where it did not.
func (c *cluster) checkPlace(s, victim *server, w *crew, k squad.Task) {
	c.t.Helper()
	now, err := s.Task(c.t.Context(), k.ID)
	house.Must(c.t, err)
	e, err := s.Execution(c.t.Context(), now.ExecutionID)
	house.Must(c.t, err)
	old := w.before[k.ID]
	if w.boxes[k.ID].Node == victim.name {
		sb, err := s.Sandbox(c.t.Context(), e.SandboxID)
		house.Must(c.t, err)
		if e.SandboxID == old.SandboxID || sb.Node != s.name {
			c.t.Errorf("task #%d: its sandbox %s went with %s, and the work is in %s on node %q", k.Number, old.SandboxID, victim.name, e.SandboxID, sb.Node)
		}
		return
	}
	if e.ID != old.ID || e.SandboxID != old.SandboxID {
		c.t.Errorf("%s task #%d: execution %s in sandbox %s became %s in %s", w.provider, k.Number, old.ID, old.SandboxID, e.ID, e.SandboxID)
	}
	var log strings.Builder
	from := int64(0)
	for ev, err := range s.StoredEvents(c.t.Context(), client.EventQuery{ExecutionID: e.ID, Types: []squad.EventType{squad.EventLog}, After: &from}) {
		house.Must(c.t, err)
		log.Write(ev.Payload)
	}
	for i := 1; i <= 60; i++ {
		if n := strings.Count(log.String(), fmt.Sprintf("line %d\\n", i)); n != 1 {
			c.t.Errorf("%s task #%d: line %d was told %d times", w.provider, k.Number, i, n)
		}
	}
}

// checkEvents wants the log without a gap, and the stream to have told all of it.
func (c *cluster) checkEvents(s *server, seen <-chan int64) {
	c.t.Helper()
	last, err := s.LastSeq(c.t.Context())
	house.Must(c.t, err)
	limit := time.After(30 * time.Second)
	for want := int64(1); want <= last; want++ {
		select {
		case got := <-seen:
			if got != want {
				c.t.Fatalf("the stream told event %d after %d", got, want-1)
			}
		case <-limit:
			c.t.Fatalf("the stream ended at event %d of %d", want-1, last)
		}
	}
}

// endAll ends everything, and wants no sandbox of the tasks to be left.
func (c *cluster) endAll(s *server) {
	c.t.Helper()
	ctx := c.t.Context()
	for _, w := range c.crews {
		for _, k := range w.tasks {
			if _, err := s.CancelTask(ctx, k.ID, "the test is over"); err != nil {
				now, _ := s.Task(ctx, k.ID)
				e, _ := s.Execution(ctx, now.ExecutionID)
				c.t.Errorf("cancel task #%d (%s, %s): %v; its execution on %s: step %s, %s: %s", k.Number, now.Status, now.Cause, err, w.provider, e.Step, e.ErrorCode, e.Error)
			}
		}
	}
	left := func() (names []string) {
		for sb, err := range s.Sandboxes(ctx, nil) {
			house.Must(c.t, err)
			if !sb.Status.Final() {
				names = append(names, sb.Provider+" "+sb.ID+" "+string(sb.Status))
			}
		}
		return names
	}
	for deadline := time.Now().Add(60 * time.Second); len(left()) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("sandboxes are left: %v", left())
		}
	}
}
