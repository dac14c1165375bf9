package sandbox_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	squad "agentsquad"
	"agentsquad/e2b/e2btest"
	"agentsquad/internal/pgtest"
	"agentsquad/internal/sandbox"
)

func TestPool_HandsEachSandboxToOneOwner(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		poolStory(t, "sqlite:"+t.TempDir()+"/squad.db")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		poolStory(t, pgtest.URL(t))
	})
}

func poolStory(t *testing.T, database string) {
	h := buildOn(t, database, e2btest.Options{}, func(c *sandbox.Config) { c.Pools = []sandbox.Pool{{Provider: "fake", Min: 3, Max: 6}} })
	ctx, stop := contextUntil(t, nil)
	var running sync.WaitGroup
	running.Go(func() { _ = h.service.Run(ctx) })
	defer running.Wait()
	defer stop()
	h.waitPool(3)
	var mu sync.Mutex
	owners := map[string]string{}
	var group sync.WaitGroup
	for range 6 {
		e := h.execution()
		group.Go(func() {
			row, err := h.service.Acquire(bounded(t), h.request(e))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if other, taken := owners[row.ID]; taken {
				t.Errorf("sandbox %s went to %s and %s", row.ID, other, e.ID)
			}
			owners[row.ID] = e.ID
			if row.Pooled || row.ExecutionID != e.ID || row.SquadID != h.squad.ID {
				t.Errorf("claimed row = %+v", row)
			}
		})
	}
	group.Wait()
	h.waitPool(6) // refilled to the burst, bounded by Max
	states, err := h.service.Pool(t.Context())
	if err != nil || len(states) != 1 || states[0].Hits < 3 || states[0].Hits+states[0].Misses != 6 {
		t.Errorf("pool = %+v, %v", states, err)
	}
	if n := h.metric("squad_sandbox_pool_claims_total"); n != 6 {
		t.Errorf("metrics know of %v claims", n)
	}
}

func TestPool_DeadWaitingSandboxIsSteppedOver(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, func(c *sandbox.Config) { c.Pools = []sandbox.Pool{{Provider: "fake", Min: 1}} })
	ctx, stop := contextUntil(t, nil)
	var running sync.WaitGroup
	running.Go(func() { _ = h.service.Run(ctx) })
	h.waitPool(1)
	stop()
	running.Wait()
	dead := h.provider.Running()[0]
	h.provider.Vanish(dead)
	row, err := h.service.Acquire(bounded(t), h.request(h.execution()))
	if err != nil || row.E2BID == dead {
		t.Errorf("acquired %s, %v", row.E2BID, err)
	}
}

func TestPool_MakesRoomForThoseWhoWork(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{Limit: 2}, func(c *sandbox.Config) { c.Pools = []sandbox.Pool{{Provider: "fake", Template: "other", Min: 2}} })
	ctx, stop := contextUntil(t, nil)
	var running sync.WaitGroup
	running.Go(func() { _ = h.service.Run(ctx) })
	defer running.Wait()
	defer stop()
	h.waitPool(2)
	for range 2 {
		if _, err := h.service.Acquire(bounded(t), h.request(h.execution())); err != nil {
			t.Fatal(err)
		}
	}
	_, err := h.service.Acquire(bounded(t), h.request(h.execution()))
	code(t, err, squad.CodeQuota)
	if n := h.provider.Made(); n != 4 {
		t.Errorf("provider made %d sandboxes, want 4", n)
	}
}

// At a stop the pool of this machine is emptied; whoever works is left alone, and so
// is a pool elsewhere.
func TestPool_DrainEndsOnlyWhatWaitsHere(t *testing.T) {
	t.Parallel()
	for node, want := range map[string]int{"here": 1, "": 3} {
		h := build(t, e2btest.Options{}, func(c *sandbox.Config) {
			p := c.Providers["fake"]
			p.Node = node
			c.Providers["fake"], c.Pools = p, []sandbox.Pool{{Provider: "fake", Min: 2, Max: 2}}
		})
		ctx, stop := contextUntil(t, nil)
		var running sync.WaitGroup
		running.Go(func() { _ = h.service.Run(ctx) })
		h.waitPool(2)
		row, err := h.service.Acquire(bounded(t), h.request(h.execution()))
		if err != nil {
			t.Fatal(err)
		}
		h.waitPool(2)
		stop()
		running.Wait()
		if err := h.service.Drain(bounded(t)); err != nil {
			t.Error(err)
		}
		if left := h.provider.Running(); len(left) != want || !slices.Contains(left, row.E2BID) {
			t.Errorf("node %q: %v are left, %s works", node, left, row.E2BID)
		}
	}
}

// run runs the service until the test ends.
func (h *house) run() {
	ctx, stop := contextUntil(h.t, nil)
	var running sync.WaitGroup
	running.Go(func() { _ = h.service.Run(ctx) })
	h.t.Cleanup(func() { stop(); running.Wait() })
}

// pool is the state of the pool of a key.
func (h *house) pool(key string) (state squad.PoolState, found bool) {
	h.t.Helper()
	states, err := h.service.Pool(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range states {
		if s.Key == key {
			return s, true
		}
	}
	return squad.PoolState{}, false
}

func TestPrewarm_HandsOutWhatIsPreparedForTheKey(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	h.run()
	tree := []sandbox.Mount{{Image: "/trees/1.erofs", Path: "/home/user/repo"}}
	spec := sandbox.PoolSpec{Key: "repo@1", Group: "repo/main", SquadID: h.squad.ID, Mounts: tree}
	if err := h.service.Prewarm(t.Context(), spec, 2); err != nil {
		t.Fatal(err)
	}
	h.waitPool(2)
	for _, id := range h.provider.Running() {
		if h.provider.Body(id)["squadMounts"] == nil {
			t.Errorf("prepared sandbox %s has no tree", id)
		}
	}
	req := h.request(h.execution())
	req.Mounts, req.PoolKey = tree, "repo@1"
	row, err := h.service.Acquire(bounded(t), req)
	if err != nil || row.Pooled || row.SquadID != h.squad.ID {
		t.Fatalf("acquired %+v, %v", row, err)
	}
	other := h.request(h.execution())
	other.Mounts, other.PoolKey = []sandbox.Mount{{Image: "/trees/0.erofs", Path: "/home/user/repo"}}, "repo@0"
	if _, err := h.service.Acquire(bounded(t), other); err != nil {
		t.Fatal(err)
	}
	h.waitPool(2) // what was taken is replaced
	state, _ := h.pool("repo@1")
	if state.Hits != 1 || state.Misses != 0 || state.Min != 2 {
		t.Errorf("pool of the key = %+v", state)
	}
	if _, kept := h.pool("repo@0"); kept {
		t.Error("a key that nobody wants warm is kept warm, though its template has no pool")
	}
}

func TestPrewarm_NewHeadEndsWhatWaitsForTheOld(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	h.run()
	warm := func(key, group string, n int) {
		t.Helper()
		if err := h.service.Prewarm(t.Context(), sandbox.PoolSpec{Key: key, Group: group}, n); err != nil {
			t.Fatal(err)
		}
	}
	warm("repo@1", "repo/main", 2)
	warm("other@1", "other/main", 1)
	h.waitPool(3)
	warm("repo@2", "repo/main", 1)
	waitFor(t, "the old head's end", func() bool {
		_, old := h.pool("repo@1")
		next, _ := h.pool("repo@2")
		return !old && next.Waiting == 1 && len(h.provider.Running()) == 2
	})
	if state, _ := h.pool("other@1"); state.Waiting != 1 {
		t.Errorf("another group was touched: %+v", state)
	}
	warm("repo@2", "", 0)
	warm("other@1", "", 0)
	waitFor(t, "all to end", func() bool { return len(h.provider.Running()) == 0 })
}

func TestPrewarm_WhatCannotBeMadeIsForgotten(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	h.provider.Fail(func(*http.Request) *e2btest.Fault { return &e2btest.Fault{Status: 400, Message: "no such image"} })
	h.run()
	if err := h.service.Prewarm(t.Context(), sandbox.PoolSpec{Key: "repo@1"}, 1); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the wish to be dropped", func() bool { _, kept := h.pool("repo@1"); return !kept })
	code(t, h.service.Prewarm(t.Context(), sandbox.PoolSpec{}, 1), squad.CodeInvalid)
	code(t, h.service.Prewarm(t.Context(), sandbox.PoolSpec{Key: "k"}, 99), squad.CodeInvalid)
	code(t, h.service.Prewarm(t.Context(), sandbox.PoolSpec{Key: "k", Provider: "none"}, 1), squad.CodeInvalid)
}
