package sandbox_test

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	squad "agentsquad"
	"agentsquad/e2b/e2btest"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

func TestAcquire_MakesOneSandboxPerExecution(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	e := h.executionOf(h.task)
	req := h.request(e)
	req.Mounts = []sandbox.Mount{{Image: "/x.erofs", Path: "/home/user/repo"}}
	row, err := h.service.Acquire(bounded(t), req)
	if err != nil {
		t.Fatal(err)
	}
	if row.Status != squad.SandboxRunning || row.E2BID == "" || row.AgentID != h.member.ID || row.ExpiresAt.IsZero() {
		t.Errorf("row = %+v", row)
	}
	body := h.provider.Body(row.E2BID)
	labels := body["metadata"].(map[string]any)
	if labels[sandbox.LabelSandbox] != row.ID || labels[sandbox.LabelExecution] != e.ID || labels[sandbox.LabelEpoch] != "1" || labels[sandbox.LabelInstall] == "" {
		t.Errorf("labels = %v", labels)
	}
	if body["squadMounts"] == nil {
		t.Errorf("mounts did not reach the provider: %v", body)
	}
	if got := h.events(row.ID); !slices.Equal(got, []squad.EventType{squad.EventSandboxCreated}) {
		t.Errorf("events = %v", got)
	}
	if m, _ := h.store.Member(t.Context(), h.member.ID); m.SandboxID != row.ID {
		t.Errorf("member works in %q", m.SandboxID)
	}
	again, err := h.service.Acquire(bounded(t), req)
	if err != nil || again.ID != row.ID {
		t.Errorf("asked again: %v, %v", again.ID, err)
	}
	if found, err := h.service.OfTask(t.Context(), squad.System(), h.task.ID); err != nil || found.ID != row.ID {
		t.Errorf("of task: %v, %v", found.ID, err)
	}
	if made := h.provider.Made(); made != 1 {
		t.Errorf("provider made %d", made)
	}
}

func TestAcquire_TaskSandboxIsHandedOnOnlyWhenFree(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	first := h.executionOf(h.task)
	row, err := h.service.Acquire(bounded(t), h.request(first))
	if err != nil {
		t.Fatal(err)
	}
	by := h.request(first)
	by.ExecutionID = ""
	other, err := h.service.Acquire(bounded(t), by)
	if err != nil || other.ID == row.ID {
		t.Fatalf("the sandbox of a live execution was handed on: %s (%v)", other.ID, err)
	}
	if err := h.service.Destroy(t.Context(), squad.System(), other.ID); err != nil {
		t.Fatal(err)
	}
	first.Status, first.FinishedAt = squad.ExecutionFailed, time.Now()
	if err := h.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.UpdateExecution(t.Context(), &first) }); err != nil {
		t.Fatal(err)
	}
	third := h.request(h.executionOf(h.task))
	third.Epoch = 5
	next, err := h.service.Acquire(bounded(t), third)
	if err != nil || next.ID != row.ID || next.Epoch != 5 {
		t.Errorf("free sandbox was not handed on: %+v, %v", next, err)
	}
	third.Epoch = 4
	_, err = h.service.Acquire(bounded(t), third)
	code(t, err, squad.CodeStale)
	code(t, h.service.Release(t.Context(), row.ID, 4), squad.CodeStale)
	if err := h.service.Release(t.Context(), row.ID, 5); err != nil {
		t.Error(err)
	}
}

// TestAcquire_FailingProvider is the list of ways in which providers fail.
func TestAcquire_FailingProvider(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault e2btest.Fault
		times int64
		code  squad.Code // "" means success
		made  int
	}{
		"slow":                          {e2btest.Fault{Delay: 50 * time.Millisecond}, 1, "", 1},
		"rate limited, then well":       {e2btest.Fault{Status: 429, Message: "rate", Header: http.Header{"Retry-After": {"1"}}}, 1, "", 1},
		"rate limited for long":         {e2btest.Fault{Status: 429, Message: "rate", Header: http.Header{"Retry-After": {"60"}}}, 9, squad.CodeQuota, 0},
		"quota":                         {e2btest.Fault{Status: 429, Message: "maximum number of concurrent sandboxes"}, 9, squad.CodeQuota, 0},
		"500 once":                      {e2btest.Fault{Status: 500}, 1, "", 1},
		"500 after having created":      {e2btest.Fault{Status: 500, After: true}, 1, "", 1},
		"503 after having created":      {e2btest.Fault{Status: 503, After: true}, 1, "", 1},
		"cut after having created":      {e2btest.Fault{After: true}, 1, "", 1},
		"cut before":                    {e2btest.Fault{}, 1, "", 1},
		"500 always":                    {e2btest.Fault{Status: 500}, 9, squad.CodeProvider, 0},
		"500 always, created each time": {e2btest.Fault{Status: 500, After: true}, 9, "", 1},
		"bad request":                   {e2btest.Fault{Status: 400, Message: "no such size"}, 9, squad.CodeInvalid, 0},
		"bad key":                       {e2btest.Fault{Status: 401}, 9, squad.CodeProvider, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t, e2btest.Options{}, nil)
			var n atomic.Int64
			h.provider.Fail(func(r *http.Request) *e2btest.Fault {
				if r.Method == http.MethodPost && r.URL.Path == "/v2/sandboxes" && n.Add(1) <= test.times {
					return &test.fault
				}
				return nil
			})
			row, err := h.service.Acquire(bounded(t), h.request(h.execution()))
			code(t, err, test.code)
			if got := len(h.provider.Running()); got != test.made {
				t.Errorf("provider has %d sandboxes, want %d", got, test.made)
			}
			stored, err := h.store.Sandbox(t.Context(), row.ID)
			switch test.code {
			case "":
				if stored.Status != squad.SandboxRunning {
					t.Errorf("row is %s (%s)", stored.Status, stored.Error)
				}
			case squad.CodeQuota:
				if code(t, err, squad.CodeNotFound); len(h.events(row.ID)) != 0 {
					t.Error("waiting for room leaves traces")
				}
			default:
				if stored.Status != squad.SandboxError {
					t.Errorf("row is %s (%s)", stored.Status, stored.Error)
				}
			}
		})
	}
}

func TestAcquire_HangIsCutByTheCallerAndLeavesNothing(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	var hung atomic.Bool
	h.provider.Fail(func(r *http.Request) *e2btest.Fault {
		if r.Method == http.MethodPost && !hung.Swap(true) {
			return &e2btest.Fault{Hang: true, After: true}
		}
		return nil
	})
	ctx, cancel := contextUntil(t, hung.Load)
	defer cancel()
	row, err := h.service.Acquire(ctx, h.request(h.execution()))
	if err == nil {
		t.Fatal("a hanging create succeeded")
	}
	if got := h.row(row.ID).Status; got != squad.SandboxError {
		t.Errorf("row is %s", got)
	}
	if left := h.provider.Running(); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

// After a restart the sweep may end a half-made row at the moment in which the step that
// began it goes on: that is no failure, there is another.
func TestAcquire_RowThatTheSweepEndedIsReplaced(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	var swept atomic.Bool
	h.provider.Fail(func(r *http.Request) *e2btest.Fault {
		if r.Method != http.MethodPost || swept.Swap(true) {
			return nil
		}
		err := h.store.Tx(t.Context(), func(tx *store.Tx) error {
			made, err := tx.Sandboxes(t.Context(), store.SandboxFilter{Statuses: []squad.SandboxStatus{squad.SandboxCreated}})
			if err != nil || len(made) != 1 {
				t.Errorf("half made: %v, %v", made, err)
				return err
			}
			made[0].Status, made[0].Error = squad.SandboxError, "its making was interrupted"
			return tx.UpdateSandbox(t.Context(), &made[0])
		})
		if err != nil {
			t.Error(err)
		}
		return nil
	})
	row, err := h.service.Acquire(bounded(t), h.request(h.execution()))
	if err != nil || h.row(row.ID).Status != squad.SandboxRunning {
		t.Errorf("%+v, %v", row, err)
	}
	if left := h.provider.Running(); len(left) != 1 || left[0] != row.E2BID {
		t.Errorf("at the provider: %v", left)
	}
}

func TestBreaker_LeavesAFailingProviderAlone(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	h.provider.Fail(func(*http.Request) *e2btest.Fault { return &e2btest.Fault{Status: 503} })
	var last error
	for range 4 {
		_, last = h.service.Acquire(bounded(t), h.request(h.execution()))
	}
	code(t, last, squad.CodeUnavailable)
	before := len(h.provider.Requests())
	h.provider.Fail(nil)
	_, err := h.service.Acquire(bounded(t), h.request(h.execution()))
	code(t, err, squad.CodeUnavailable)
	if asked := len(h.provider.Requests()) - before; asked != 0 {
		t.Errorf("an open breaker let %d requests pass", asked)
	}
}

func TestLimit_OfOurOwnIsAQuota(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, func(c *sandbox.Config) {
		p := c.Providers["fake"]
		p.Max = 3
		c.Providers["fake"] = p
	})
	var refused atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		e := h.execution()
		group.Go(func() {
			if _, err := h.service.Acquire(bounded(t), h.request(e)); squad.CodeOf(err) == squad.CodeQuota {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if refused.Load() != 5 || h.provider.Made() != 3 {
		t.Errorf("%d refused, %d made, want 5 and 3", refused.Load(), h.provider.Made())
	}
}

func TestAcquire_IsASpanBelowItsCaller(t *testing.T) {
	t.Parallel()
	h := build(t, e2btest.Options{}, nil)
	spans := tracetest.NewSpanRecorder()
	ctx, parent := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test").Start(bounded(t), "step sandbox")
	if _, err := h.service.Acquire(ctx, h.request(h.execution())); err != nil {
		t.Fatal(err)
	}
	var own sdk.ReadOnlySpan
	transactions := 0
	for _, span := range spans.Ended() {
		switch span.Name() {
		case "sandbox.Acquire":
			own = span
		case "store.Tx":
			transactions++
		}
	}
	if own == nil || own.Parent().SpanID() != parent.SpanContext().SpanID() || transactions == 0 {
		t.Errorf("span %v with %d transactions", own, transactions)
	}
}
