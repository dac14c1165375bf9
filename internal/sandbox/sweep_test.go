package sandbox_test

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
	"agentsquad/internal/pgtest"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

func sweep(t *testing.T, s *sandbox.Service) sandbox.Report {
	t.Helper()
	report, err := s.Sweep(bounded(t), "")
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (h *house) acquire() squad.Sandbox {
	h.t.Helper()
	row, err := h.service.Acquire(bounded(h.t), h.request(h.execution()))
	if err != nil {
		h.t.Fatal(err)
	}
	return row
}

func TestSweep_MarksWhatTheProviderLost(t *testing.T) {
	t.Parallel()
	var told atomic.Value
	h := build(t, e2btest.Options{PageSize: 2}, func(c *sandbox.Config) {
		c.OnLost = func(_ context.Context, row squad.Sandbox) { told.Store(row.ID) }
	})
	var rows []squad.Sandbox
	for range 5 {
		rows = append(rows, h.acquire())
	}
	before := len(h.provider.Requests())
	if report := sweep(t, h.service); report.Seen != 5 || report.Lost+report.Orphans+report.Stale != 0 {
		t.Errorf("first sweep = %+v", report)
	}
	if asked := len(h.provider.Requests()) - before; asked > 4 { // three pages, and one try for samples
		t.Errorf("health of 5 sandboxes took %d requests", asked)
	}
	h.provider.Vanish(rows[2].E2BID)
	if report := sweep(t, h.service); report.Lost != 1 {
		t.Errorf("second sweep = %+v", report)
	}
	if got := h.row(rows[2].ID); got.Status != squad.SandboxError || got.Error == "" || told.Load() != got.ID {
		t.Errorf("lost row = %+v, told %v", got, told.Load())
	}
	if m, _ := h.store.Member(t.Context(), h.member.ID); m.SandboxID == rows[2].ID {
		t.Error("the member still names a lost sandbox")
	}
	if got := h.metric("squad_sandboxes"); got != 4 {
		t.Errorf("gauge of live sandboxes = %v", got)
	}
}

func TestSweep_DestroysWhatNobodyOwnsAndNothingElse(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, func(c *sandbox.Config) { c.Installation, c.Grace = "here", time.Nanosecond })
	kept := h.acquire()
	other := client(t, h.provider.URL)
	make := func(labels map[string]string) *e2b.Sandbox {
		sb, err := other.Create(t.Context(), e2b.CreateOptions{Metadata: labels})
		if err != nil {
			t.Fatal(err)
		}
		return sb
	}
	make(map[string]string{sandbox.LabelInstall: "here", sandbox.LabelSandbox: squad.NewID()}) // no row
	make(map[string]string{sandbox.LabelInstall: "here", sandbox.LabelSandbox: kept.ID})       // a second of one row
	strangers := []*e2b.Sandbox{make(map[string]string{sandbox.LabelInstall: "elsewhere"}), make(nil)}
	if report := sweep(t, h.service); report.Orphans != 2 || report.Lost != 0 {
		t.Errorf("sweep = %+v", report)
	}
	told, err := h.store.Sandboxes(t.Context(), store.SandboxFilter{Statuses: []squad.SandboxStatus{squad.SandboxError}})
	if err != nil || len(told) != 2 {
		t.Fatalf("orphans written down = %v, %v", told, err)
	}
	for _, row := range told {
		if !strings.Contains(row.Error, "orphan") || row.SquadID != "" || row.E2BID == kept.E2BID || row.TerminatedAt.IsZero() {
			t.Errorf("orphan's row = %+v", row)
		}
		if last := h.events(row.ID); len(last) != 1 || last[0] != squad.EventSandboxTerminated {
			t.Errorf("events of an orphan = %v", last)
		}
	}
	left := h.provider.Running()
	if len(left) != 3 {
		t.Errorf("left = %v, want ours and those of others: %s %s %s", left, kept.E2BID, strangers[0].ID, strangers[1].ID)
	}
	if got := h.row(kept.ID); got.Status != squad.SandboxRunning {
		t.Errorf("kept row = %s", got.Status)
	}
}

func TestSweep_YoungOnesAreLeftAlone(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, func(c *sandbox.Config) { c.Installation = "here" })
	if _, err := client(t, h.provider.URL).Create(t.Context(), e2b.CreateOptions{Metadata: map[string]string{sandbox.LabelInstall: "here"}}); err != nil {
		t.Fatal(err)
	}
	row := squad.Sandbox{Provider: "fake", Template: "base"}
	if err := h.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.CreateSandbox(t.Context(), &row) }); err != nil {
		t.Fatal(err)
	}
	if report := sweep(t, h.service); report.Orphans+report.Lost != 0 {
		t.Errorf("a sweep in the middle of a creation = %+v", report)
	}
	late := h.start(func(c *sandbox.Config) { c.Installation, c.Grace, c.Owner = "here", time.Nanosecond, "late" })
	h.release()
	if report := sweep(t, late); report.Orphans != 1 || report.Lost != 1 {
		t.Errorf("a sweep after the grace = %+v", report)
	}
}

func TestSweep_OfOurOwnWhatADeadProcessLeftIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, func(c *sandbox.Config) { c.Installation = "here" })
	if _, err := client(t, h.provider.URL).Create(t.Context(), e2b.CreateOptions{Metadata: map[string]string{sandbox.LabelInstall: "here"}}); err != nil {
		t.Fatal(err)
	}
	row := squad.Sandbox{Provider: "fake", Template: "base"}
	if err := h.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.CreateSandbox(t.Context(), &row) }); err != nil {
		t.Fatal(err)
	}
	own := func(c *sandbox.Config) {
		p := c.Providers["fake"]
		p.Own = true
		c.Installation, c.Owner, c.Providers = "here", squad.NewID(), map[string]sandbox.Provider{"fake": p}
	}
	dead := h.start(own) // its lease stands
	if report := sweep(t, dead); report.Orphans != 1 || report.Lost != 1 {
		t.Errorf("the first sweep after a start = %+v", report)
	}
	kept := h.acquire()
	if report := sweep(t, h.start(own)); report.Orphans+report.Lost != 0 {
		t.Errorf("a sweep of the next process = %+v", report)
	}
	if got := h.row(kept.ID); got.Status != squad.SandboxRunning {
		t.Errorf("kept row = %s", got.Status)
	}
}

// release lets another take the lease of the provider.
func (h *house) release() {
	h.t.Helper()
	err := h.store.Tx(h.t.Context(), func(tx *store.Tx) error {
		l, err := tx.Lease(h.t.Context(), "sandboxes/fake/")
		if err != nil {
			return err
		}
		return tx.ReleaseLease(h.t.Context(), l)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestSweep_OnlyTheHolderOfTheLeaseActs(t *testing.T) {
	t.Parallel()
	onBoth(t, leaseStory)
}

// onBoth tells a story on both databases.
func onBoth(t *testing.T, story func(t *testing.T, database string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		story(t, "sqlite:"+t.TempDir()+"/squad.db")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		story(t, pgtest.URL(t))
	})
}

func TestSweep_WhatASandboxUsesStandsOnItsRow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database string) {
		h := buildOn(t, database, e2btest.Options{}, nil)
		row, paused := h.acquire(), h.acquire()
		if _, err := h.service.Pause(t.Context(), squad.System(), paused.ID); err != nil {
			t.Fatal(err)
		}
		events := len(h.events(row.ID))
		sweep(t, h.service)
		got := h.row(row.ID)
		if use := got.Use; use.CPUPct != 12.5 || use.MemoryMB != 64 || use.DiskMB != 1 || time.Since(use.At).Abs() > time.Minute {
			t.Errorf("use = %+v", use)
		}
		if got.CostUSD <= 0 || got.CreateMS < 0 || got.Status != squad.SandboxRunning {
			t.Errorf("row = %+v", got)
		}
		if use := h.row(paused.ID).Use; !use.At.IsZero() {
			t.Errorf("a paused one uses %+v", use)
		}
		if n := len(h.events(row.ID)); n != events {
			t.Errorf("a sample made %d events", n-events)
		}
		if cpu, memory := h.metric("squad_sandbox_cpu_used_cores"), h.metric("squad_sandbox_memory_used_bytes"); cpu != 0.25 || memory != 64<<20 {
			t.Errorf("gauges: %v cores, %v bytes", cpu, memory)
		}
	})
}

func leaseStory(t *testing.T, database string) {
	h := buildOn(t, database, e2btest.Options{}, func(c *sandbox.Config) { c.Owner = "first" })
	row := h.acquire()
	sweep(t, h.service)
	second := h.start(func(c *sandbox.Config) { c.Owner = "second" })
	_, err := second.Sweep(t.Context(), "")
	code(t, err, squad.CodeStale)
	// The first stops in the middle of a sweep, as in a long pause of its machine,
	// and loses the lease to the second. When it goes on, it may write nothing.
	h.provider.Vanish(row.E2BID)
	var paused atomic.Bool
	h.provider.Fail(func(r *http.Request) *e2btest.Fault {
		if r.Method == http.MethodGet && r.URL.Path != "/v2/sandboxes" && !paused.Swap(true) {
			h.release()
			if _, err := second.Sweep(context.WithoutCancel(t.Context()), ""); err != nil {
				t.Errorf("second sweep: %v", err)
			}
		}
		return nil
	})
	_, err = h.service.Sweep(bounded(t), "")
	code(t, err, squad.CodeStale)
	if got := h.row(row.ID); got.Status != squad.SandboxError {
		t.Errorf("row = %s", got.Status)
	}
	terminated := 0
	for _, e := range h.events(row.ID) {
		if e == squad.EventSandboxTerminated {
			terminated++
		}
	}
	if terminated != 1 {
		t.Errorf("%d events of one end", terminated)
	}
}

func TestSweep_EndsStaleKeepsHeldExtendsUsed(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, func(c *sandbox.Config) {
		p := c.Providers["fake"]
		p.Lifetime = time.Hour
		c.Providers["fake"] = p
	})
	held, old, unused := h.acquire(), h.acquire(), h.acquire()
	if _, err := h.service.Pause(t.Context(), squad.System(), unused.ID); err != nil {
		t.Fatal(err)
	}
	h.age(held, 30*time.Hour, 30*time.Hour)
	h.age(old, 30*time.Hour, 0)
	h.age(unused, 30*time.Hour, 30*time.Hour)
	e, err := h.store.Execution(t.Context(), old.ExecutionID)
	if err != nil {
		t.Fatal(err)
	}
	e.Status, e.FinishedAt = squad.ExecutionSucceeded, time.Now()
	if err := h.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.UpdateExecution(t.Context(), &e) }); err != nil {
		t.Fatal(err)
	}
	if err := client(t, h.provider.URL).SetTimeout(t.Context(), held.E2BID, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if report := sweep(t, h.service); report.Stale != 2 || report.Extended != 1 {
		t.Errorf("sweep = %+v", report)
	}
	for row, want := range map[string]squad.SandboxStatus{
		held.ID: squad.SandboxRunning, old.ID: squad.SandboxTerminated, unused.ID: squad.SandboxTerminated,
	} {
		if got := h.row(row).Status; got != want {
			t.Errorf("%s is %s, want %s", row, got, want)
		}
	}
	if info, err := client(t, h.provider.URL).Get(t.Context(), held.E2BID); err != nil || time.Until(info.EndAt) < 50*time.Minute {
		t.Errorf("held one ends at %v, %v", info.EndAt, err)
	}
	h.age(old, 30*24*time.Hour, 30*24*time.Hour)
	if report := sweep(t, h.service); report.Pruned != 1 {
		t.Errorf("sweep = %+v, want one old row pruned", report)
	}
}

// age moves a row into the past: made, and last used or ended, so long ago.
func (h *house) age(row squad.Sandbox, made, used time.Duration) {
	h.t.Helper()
	err := h.store.Tx(h.t.Context(), func(tx *store.Tx) error {
		r, err := tx.Sandbox(h.t.Context(), row.ID)
		if err != nil {
			return err
		}
		if err := tx.DeleteSandbox(h.t.Context(), row.ID); err != nil { // the time of making is fixed
			return err
		}
		r.CreatedAt, r.LastUsedAt = tx.Now.Add(-made), tx.Now.Add(-used)
		if !r.TerminatedAt.IsZero() {
			r.TerminatedAt = tx.Now.Add(-used)
		}
		return tx.CreateSandbox(h.t.Context(), &r)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestSweep_SeesPausesThatOthersMade(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	row := h.acquire()
	if err := client(t, h.provider.URL).Pause(t.Context(), row.E2BID, e2b.PauseOptions{}); err != nil {
		t.Fatal(err)
	}
	sweep(t, h.service)
	if got := h.row(row.ID); got.Status != squad.SandboxPaused {
		t.Errorf("row = %s", got.Status)
	}
	events := h.events(row.ID)
	sweep(t, h.service)
	if again := h.events(row.ID); len(again) != len(events) {
		t.Errorf("a sweep that saw nothing new told something: %v", again)
	}
}

func TestRun_GivesItsLeaseBack(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, func(c *sandbox.Config) { c.Owner = "first" })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.service.Run(ctx) }()
	waitFor(t, "the first sweep", func() bool {
		l, err := h.store.Lease(t.Context(), "sandboxes/fake/")
		return err == nil && l.Owner == "first"
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	next := h.start(func(c *sandbox.Config) { c.Owner = "second" })
	sweep(t, next)
}

func TestCost_IsBookedByTheSecondAndNotWhilePaused(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	row := h.acquire()
	h.age(row, 1000*time.Second, 0)
	rate := 2*sandbox.E2BPerVCPUSecond + 0.5*sandbox.E2BPerGiBSecond
	restarted := h.start(func(c *sandbox.Config) { c.Owner = "restarted" })
	sweep(t, restarted)
	got := h.row(row.ID).CostUSD
	if want := 1000 * rate; math.Abs(got-want) > want/10 {
		t.Errorf("cost of 1000 s = %v, want %v", got, want)
	}
	e, err := h.store.Execution(t.Context(), row.ExecutionID)
	if err != nil || math.Abs(e.SandboxCostUSD-got) > 1e-9 {
		t.Errorf("execution bears %v of %v, %v", e.SandboxCostUSD, got, err)
	}
	if _, err := restarted.Pause(bounded(t), squad.System(), row.ID); err != nil {
		t.Fatal(err)
	}
	paused := h.row(row.ID).CostUSD
	sweep(t, restarted)
	if err := restarted.Destroy(bounded(t), squad.System(), row.ID); err != nil {
		t.Fatal(err)
	}
	if ended := h.row(row.ID).CostUSD; ended != paused || paused < got {
		t.Errorf("cost went from %v to %v while paused", paused, ended)
	}
}
