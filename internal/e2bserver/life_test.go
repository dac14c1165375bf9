package e2bserver_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsquad/internal/e2bserver"
)

func limitOf(n int) func(*e2bserver.Config) {
	return func(c *e2bserver.Config) { c.MaxRunning = n }
}

// bubble runs a test in fake time and ends its sandboxes.
func bubble(t *testing.T, test func(t *testing.T, r *rig, host *fakeHost), change ...func(*e2bserver.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		host := newFakeHost()
		r := newRig(t, host, change...)
		synctest.Wait()
		test(t, r, host)
		r.clear()
		r.stop()
	})
}

func (r *rig) state(key, id string) string {
	r.t.Helper()
	w := r.call(key, "GET", "/sandboxes/"+id, "")
	if w.Code == http.StatusNotFound {
		return "gone"
	}
	for _, state := range []string{"running", "paused"} {
		if strings.Contains(w.Body.String(), `"state":"`+state+`"`) {
			return state
		}
	}
	r.t.Fatalf("state: %d %s", w.Code, w.Body)
	return ""
}

func TestLifetime_EndsInKillOrPause(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, host *fakeHost) {
		killed := r.create(alice, `{"templateID":"base","timeout":60}`).SandboxID
		stored := r.create(alice, `{"templateID":"base","timeout":60,"autoPause":true}`).SandboxID
		byDefault := r.create(alice, `{"templateID":"base"}`).SandboxID
		time.Sleep(59 * time.Second)
		if r.state(alice, killed) != "running" || r.state(alice, stored) != "running" {
			t.Fatal("ended too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := r.state(alice, killed); got != "gone" || host.get(killed) != nil {
			t.Errorf("sandbox is %s after its time", got)
		}
		if got := r.state(alice, stored); got != "paused" {
			t.Errorf("sandbox with autoPause is %s after its time", got)
		}
		time.Sleep(240 * time.Second)
		synctest.Wait()
		if got := r.state(alice, byDefault); got != "gone" {
			t.Errorf("sandbox is %s after the default of 300 s", got)
		}
	})
}

func TestConnect_ExtendsAndNeverShortens(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *fakeHost) {
		id := r.create(alice, `{"templateID":"base","timeout":100}`).SandboxID
		r.must(http.StatusOK, nil, alice, "POST", "/v2/sandboxes/"+id+"/connect", `{"timeout":10}`)
		time.Sleep(99 * time.Second)
		if r.state(alice, id) != "running" {
			t.Fatal("connect shortened the life")
		}
		r.must(http.StatusOK, nil, alice, "POST", "/v2/sandboxes/"+id+"/connect", `{"timeout":100}`)
		time.Sleep(50 * time.Second)
		if r.state(alice, id) != "running" {
			t.Fatal("connect did not extend the life")
		}
		r.must(http.StatusNoContent, nil, alice, "POST", "/sandboxes/"+id+"/timeout", `{"timeout":1}`)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r.state(alice, id) != "gone" {
			t.Error("timeout did not shorten the life")
		}
	})
}

func TestLifetime_IsBoundedSinceTheLastStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *fakeHost) {
		id := r.create(alice, `{"templateID":"base","timeout":3600}`).SandboxID
		time.Sleep(50 * time.Minute)
		r.must(http.StatusNoContent, nil, alice, "POST", "/sandboxes/"+id+"/timeout", `{"timeout":3600}`)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if r.state(alice, id) != "gone" {
			t.Error("lived longer than an hour")
		}
	}, func(c *e2bserver.Config) { c.MaxLifetime = time.Hour })
}

func TestRaces_KillBeatsConnectAndSecondKillFindsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, host *fakeHost) {
		id := r.create(alice, `{"templateID":"base"}`).SandboxID
		host.hold = make(chan struct{})
		codes := make(chan int, 3)
		go func() { codes <- r.call(alice, "DELETE", "/sandboxes/"+id, "").Code }()
		synctest.Wait()
		go func() { codes <- r.call(alice, "POST", "/v2/sandboxes/"+id+"/connect", "").Code }()
		synctest.Wait()
		if got := r.call(alice, "DELETE", "/sandboxes/"+id, "").Code; got != http.StatusNotFound {
			t.Errorf("second kill: status %d", got)
		}
		close(host.hold)
		if a, b := <-codes, <-codes; a+b != http.StatusNoContent+http.StatusConflict {
			t.Errorf("kill and connect: statuses %d and %d", a, b)
		}
	})
}

func TestRaces_ConnectWaitsForPauseAndResumes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, host *fakeHost) {
		id := r.create(alice, `{"templateID":"base"}`).SandboxID
		host.hold = make(chan struct{})
		paused, second, connected := make(chan int, 1), make(chan int, 1), make(chan int, 1)
		go func() { paused <- r.call(alice, "POST", "/sandboxes/"+id+"/pause", "").Code }()
		synctest.Wait()
		go func() { second <- r.call(alice, "POST", "/sandboxes/"+id+"/pause", "").Code }()
		synctest.Wait()
		go func() { connected <- r.call(alice, "POST", "/v2/sandboxes/"+id+"/connect", "").Code }()
		synctest.Wait()
		close(host.hold)
		if got := <-paused; got != http.StatusNoContent {
			t.Errorf("pause: status %d", got)
		}
		if got := <-second; got != http.StatusConflict {
			t.Errorf("second pause: status %d", got)
		}
		if got := <-connected; got != http.StatusCreated {
			t.Errorf("connect: status %d", got)
		}
	})
}

func TestDeath_OfASandboxIsReported(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, host *fakeHost) {
		id := r.create(alice, `{"templateID":"base"}`).SandboxID
		close(host.get(id).done)
		synctest.Wait()
		if r.state(alice, id) != "gone" || r.server.Lost()[id] == "" || host.count() != 0 {
			t.Errorf("state %s, lost %v, %d machines left", r.state(alice, id), r.server.Lost(), host.count())
		}
	})
}

func TestRestart_TakesUpRunningAndPausedAndReportsLost(t *testing.T) {
	t.Parallel()
	host, dir := newFakeHost(), t.TempDir()
	inDir := func(c *e2bserver.Config) { c.Dir = dir }
	r := newRig(t, host, inDir)
	up := r.create(alice, `{"templateID":"base","metadata":{"k":"v"}}`)
	stored := r.create(alice, `{"templateID":"base"}`)
	lost := r.create(alice, `{"templateID":"base"}`)
	r.must(http.StatusNoContent, nil, alice, "POST", "/sandboxes/"+stored.SandboxID+"/pause", "")
	r.stop()
	host.mu.Lock()
	delete(host.machines, lost.SandboxID)
	host.machines["istray"] = &fakeMachine{host: host, id: "istray", done: make(chan struct{})}
	host.mu.Unlock()

	r = newRig(t, host, inDir)
	var again sandbox
	r.must(http.StatusOK, &again, alice, "GET", "/sandboxes/"+up.SandboxID, "")
	if again.State != "running" || again.EnvdAccessToken != up.EnvdAccessToken || again.Metadata["k"] != "v" {
		t.Errorf("after restart %+v", again)
	}
	r.must(http.StatusCreated, nil, alice, "POST", "/v2/sandboxes/"+stored.SandboxID+"/connect", "")
	if r.state(alice, lost.SandboxID) != "gone" || r.server.Lost()[lost.SandboxID] == "" {
		t.Errorf("lost sandbox not reported: %v", r.server.Lost())
	}
	if host.get("istray") != nil {
		t.Error("a sandbox that nobody knows was left running")
	}
}

func TestFork_GivesOneResultEach(t *testing.T) {
	t.Parallel()
	r := newRig(t, newFakeHost())
	id := r.create(alice, `{"templateID":"base","metadata":{"k":"v"}}`).SandboxID
	var forks []struct {
		Sandbox *sandbox
		Error   *struct {
			Code    int
			Message string
		}
	}
	r.must(http.StatusCreated, &forks, alice, "POST", "/sandboxes/"+id+"/fork", `{"count":3,"timeout":60}`)
	if len(forks) != 3 || forks[0].Sandbox == nil || forks[2].Sandbox == nil || forks[1].Error == nil || forks[1].Error.Code != 503 {
		t.Fatalf("forks %+v", forks)
	}
	var child sandbox
	r.must(http.StatusOK, &child, alice, "GET", "/sandboxes/"+forks[0].Sandbox.SandboxID, "")
	if child.Metadata["k"] != "v" || child.SandboxID == id || child.EnvdAccessToken == "" {
		t.Errorf("child %+v", child)
	}
}

func TestSnapshots_AreTemplatesUntilDeleted(t *testing.T) {
	t.Parallel()
	host := newFakeHost()
	r := newRig(t, host)
	id := r.create(alice, `{"templateID":"base"}`).SandboxID
	type info struct {
		SnapshotID string
		Names      []string
	}
	var named, unnamed info
	r.must(http.StatusCreated, &named, alice, "POST", "/sandboxes/"+id+"/snapshots", `{"name":"mine"}`)
	r.must(http.StatusCreated, &unnamed, alice, "POST", "/sandboxes/"+id+"/snapshots", ``)
	if named.SnapshotID != "alice/mine:default" || len(named.Names) != 1 || len(unnamed.Names) != 0 {
		t.Fatalf("snapshots %+v %+v", named, unnamed)
	}
	for _, ref := range []string{named.SnapshotID, unnamed.SnapshotID, "mine"} {
		r.create(alice, `{"templateID":"`+ref+`"}`)
	}
	if w := r.call(bob, "POST", "/v2/sandboxes", `{"templateID":"alice/mine"}`); w.Code != http.StatusNotFound {
		t.Errorf("another owner starts from it: status %d", w.Code)
	}
	var list []info
	r.must(http.StatusOK, &list, alice, "GET", "/snapshots?limit=1", "")
	if len(list) != 1 {
		t.Errorf("page %+v", list)
	}
	r.must(http.StatusOK, &list, alice, "GET", "/snapshots?sandboxID="+id, "")
	if len(list) != 2 {
		t.Errorf("list %+v", list)
	}
	r.must(http.StatusOK, &list, alice, "GET", "/snapshots?name=none", "")
	if len(list) != 0 {
		t.Errorf("unknown name gives %+v", list)
	}
	for _, c := range []struct {
		key    string
		status int
	}{{bob, 404}, {alice, 204}, {alice, 404}} {
		if w := r.call(c.key, "DELETE", "/templates/alice%2Fmine%3Adefault", ""); w.Code != c.status {
			t.Errorf("delete by %s: status %d, want %d: %s", c.key, w.Code, c.status, w.Body)
		}
	}
}

func TestKill_ThatFailsIsTriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, host *fakeHost) {
		id := r.create(alice, `{"templateID":"base","timeout":3600}`).SandboxID
		host.mu.Lock()
		host.fail = errors.New("the disk is on fire")
		host.mu.Unlock()
		if w := r.call(alice, "DELETE", "/sandboxes/"+id, ""); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "fire") {
			t.Errorf("status %d %s", w.Code, w.Body)
		}
		time.Sleep(15 * time.Second)
		host.mu.Lock()
		host.fail = nil
		host.mu.Unlock()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if r.state(alice, id) != "gone" || host.count() != 0 {
			t.Errorf("state %s, %d machines left", r.state(alice, id), host.count())
		}
	})
}
