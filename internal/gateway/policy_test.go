package gateway_test

import (
	"fmt"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/gateway"
	"agentsquad/internal/git/gittest"
	"agentsquad/internal/store"
)

func TestAllow_ByListAndNeverInside(t *testing.T) {
	t.Parallel()
	k := newKit(t, func(c *gateway.Config) {
		c.Egress = []string{"allowed.example", "*.deep.example", "odd.example:8443", "10.0.0.9", "metadata.internal", "*.local"}
		c.TemplateEgress = map[string][]string{"base": {"template.example"}}
	})
	for address, want := range map[string]bool{
		"allowed.example:443": true, "ALLOWED.example.:80": true, "allowed.example:22": false, "not-allowed.example:443": false, "x.allowed.example:443": false,
		"a.deep.example:443": true, "a.b.deep.example:443": true, "deep.example:443": false, "evildeep.example:443": false,
		"odd.example:8443": true, "odd.example:443": false, "template.example:443": true,
		"10.0.0.9:80": false, "169.254.169.254:80": false, "127.0.0.1:80": false, "[::1]:80": false, "[::ffff:10.0.0.9]:80": false, "8.8.8.8:443": false,
		"localhost:80": false, "metadata.internal:80": false, "printer.local:80": false, "intranet:80": false,
	} {
		i := len(address) - 1
		for address[i] != ':' {
			i--
		}
		var port int
		if _, err := fmt.Sscan(address[i+1:], &port); err != nil {
			t.Fatal(err)
		}
		if got, rule := k.g.Allow(k.sandbox.E2BID, address[:i], port); got != want || rule == "" {
			t.Errorf("%s: %v by %q", address, got, rule)
		}
	}
	if ok, _ := k.g.Allow("unknown", "allowed.example", 443); ok {
		t.Error("an unknown sandbox may go out")
	}
}

func TestAllow_SquadsOwnListAndFewEvents(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	ctx := t.Context()
	k.squad.Config.Egress = []string{"only.example"}
	must(t, k.store.Tx(ctx, func(tx *store.Tx) error { return tx.UpdateSquad(ctx, &k.squad) }))
	if ok, _ := k.g.Allow(k.sandbox.ID, "only.example", 443); !ok {
		t.Error("the squad's own host is refused")
	}
	for range 50 {
		if ok, _ := k.g.Allow(k.sandbox.ID, "github.com", 443); ok {
			t.Fatal("the default list holds beside the squad's")
		}
	}
	for i := range 100 {
		k.g.Allow(k.sandbox.ID, fmt.Sprintf("h%d.example", i), 443)
	}
	events := k.events(t, squad.EventEgressRefused)
	if len(events) < 2 || len(events) > 30 {
		t.Errorf("%d events", len(events))
	}
}

func TestRadar_TellsWhatClashesAndWhenItIsOver(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	ctx := t.Context()
	dir := k.clone(t)
	other := k.newPlace(t, k.repo)
	gittest.Commit(t, dir, "README.md", "# my shop\n", "docs: mine")
	k.push(t, false, "origin", k.branch())
	// The other task has only a checkpoint yet.
	gittest.Git(t, dir, "checkout", "-q", "-b", "theirs", "main")
	gittest.Commit(t, dir, "README.md", "# their shop\n", "docs: theirs")
	m, err := k.g.Mirror(k.repo)
	must(t, err)
	gittest.Git(t, dir, "push", "-q", m.Dir(), "HEAD:refs/squad/checkpoints/"+other.execution.ID+"/1")
	must(t, k.g.ScanConflicts(ctx))
	must(t, k.g.ScanConflicts(ctx))
	if n := len(k.events(t, squad.EventConflictDetected)); n != 1 {
		t.Fatalf("%d events", n)
	}
	list, err := k.g.Conflicts(ctx, k.repo.ID)
	must(t, err)
	if len(list) != 1 || list[0].TaskID != k.task.ID || list[0].OtherTaskID != other.task.ID || list[0].Files[0] != "README.md" {
		t.Errorf("got %+v", list)
	}
	gittest.Git(t, dir, "reset", "-q", "--hard", "main")
	gittest.Commit(t, dir, "other.md", "# their shop\n", "docs: elsewhere")
	gittest.Git(t, dir, "push", "-q", m.Dir(), "HEAD:refs/squad/checkpoints/"+other.execution.ID+"/2")
	must(t, k.g.ScanConflicts(ctx))
	if n := len(k.events(t, squad.EventConflictCleared)); n != 1 {
		t.Errorf("%d events of the end", n)
	}
	// The base moves on and touches the same.
	gittest.Git(t, dir, "checkout", "-q", "-B", "base", "origin/main")
	gittest.Commit(t, dir, "README.md", "# everybody's shop\n", "docs: all")
	gittest.Git(t, dir, "push", "-q", k.bare, "HEAD:main")
	k.g.Moved(k.repo.ID)
	must(t, k.g.ScanConflicts(ctx))
	if list, err = k.g.Conflicts(ctx, k.repo.ID); err != nil || len(list) != 1 || list[0].TaskID != k.task.ID || list[0].OtherTaskID != "" {
		t.Errorf("with the base: %+v, %v", list, err)
	}
	must(t, k.store.Tx(ctx, func(tx *store.Tx) error {
		task, err := tx.Task(ctx, k.task.ID)
		if err != nil {
			return err
		}
		task.Status = squad.TaskDone
		return tx.UpdateTask(ctx, &task)
	}))
	must(t, k.g.ScanConflicts(ctx))
	if began, ended := len(k.events(t, squad.EventConflictDetected)), len(k.events(t, squad.EventConflictCleared)); began != 2 || ended != 2 {
		t.Errorf("%d began, %d ended", began, ended)
	}
}
