package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	squad "agentsquad"
)

// FlowStatus is where a flow stands.
type FlowStatus string

// States of a flow. The last three are final.
const (
	FlowReady     FlowStatus = "ready"   // may be taken up now
	FlowRunning   FlowStatus = "running" // a node holds it
	FlowParked    FlowStatus = "parked"  // waits for a time or a signal
	FlowSucceeded FlowStatus = "succeeded"
	FlowFailed    FlowStatus = "failed"
	FlowCancelled FlowStatus = "cancelled"
)

// Final says whether a flow in this state stays in it.
func (s FlowStatus) Final() bool {
	return s == FlowSucceeded || s == FlowFailed || s == FlowCancelled
}

// Flow is the row of one durable execution. The package flow gives it life.
type Flow struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Version    int             `json:"version"`
	Queue      string          `json:"queue"`
	Priority   int             `json:"priority"`
	Status     FlowStatus      `json:"status"`
	Input      json.RawMessage `json:"input,omitempty"`
	Error      string          `json:"error,omitempty"`
	Cancel     string          `json:"cancel,omitempty"` // the cause, once it was asked for
	Owner      string          `json:"owner,omitempty"`
	Fence      int64           `json:"fence"`
	LeaseUntil time.Time       `json:"lease_until,omitzero"`
	WakeAt     time.Time       `json:"wake_at,omitzero"`
	Awaits     string          `json:"awaits,omitempty"`
	Attempt    int             `json:"attempt"` // how often it was taken up
	CreatedAt  time.Time       `json:"created_at"`
	UpdatedAt  time.Time       `json:"updated_at"`
}

// FlowStep is an entry of a flow's journal.
type FlowStep struct {
	FlowID  string          `json:"flow_id"`
	Key     string          `json:"key"`
	Kind    string          `json:"kind"` // do, sleep or await
	Done    bool            `json:"done"`
	Attempt int             `json:"attempt"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
	WakeAt  time.Time       `json:"wake_at,omitzero"`
	Fence   int64           `json:"fence"`
	At      time.Time       `json:"at"`
}

var flows = newTable("flow", "flows", func(f *Flow) []field {
	return []field{
		{name: "id", at: &f.ID},
		{name: "name", at: &f.Name},
		{name: "version", at: &f.Version},
		{name: "queue", at: &f.Queue},
		{name: "priority", at: &f.Priority},
		{name: "status", at: wordOf(&f.Status)},
		{name: "input", at: raw{&f.Input}},
		{name: "error", at: &f.Error},
		{name: "cancel", at: ref{&f.Cancel}},
		{name: "owner", at: &f.Owner},
		{name: "fence", at: &f.Fence},
		{name: "lease_until", at: moment{&f.LeaseUntil}},
		{name: "wake_at", at: moment{&f.WakeAt}},
		{name: "awaits", at: ref{&f.Awaits}},
		{name: "attempt", at: &f.Attempt},
		{name: "created_at", at: moment{&f.CreatedAt}},
		{name: "updated_at", at: moment{&f.UpdatedAt}},
	}
})

var flowSteps = newTable("flow step", "flow_steps", func(s *FlowStep) []field {
	return []field{
		{name: "flow_id", at: &s.FlowID},
		{name: "key", at: &s.Key},
		{name: "kind", at: &s.Kind},
		{name: "done", at: &s.Done},
		{name: "attempt", at: &s.Attempt},
		{name: "result", at: raw{&s.Result}},
		{name: "error", at: raw{&s.Error}},
		{name: "wake_at", at: moment{&s.WakeAt}},
		{name: "fence", at: &s.Fence},
		{name: "at", at: moment{&s.At}},
	}
})

// FlowFilter narrows a list of flows.
type FlowFilter struct {
	Name     string
	Queue    string
	Owner    string
	Statuses []FlowStatus

	Limit  int
	After  string
	Newest bool
}

// Flow reads one flow.
func (q *Query) Flow(ctx context.Context, id string) (Flow, error) {
	return flows.get(ctx, q, "id", id)
}

// Flows lists flows by id.
func (q *Query) Flows(ctx context.Context, f FlowFilter) ([]Flow, error) {
	w := f.where()
	w.page("id", f.After, f.Limit, f.Newest)
	return flows.list(ctx, q, w)
}

// CountFlows counts what [Query.Flows] would list without limit.
func (q *Query) CountFlows(ctx context.Context, f FlowFilter) (int, error) {
	return q.count(ctx, "flows", f.where())
}

func (f FlowFilter) where() *where {
	w := &where{}
	w.eq("name", f.Name)
	w.eq("queue", f.Queue)
	w.eq("owner", f.Owner)
	in(w, "status", f.Statuses)
	return w
}

// FlowSteps reads the journal of a flow.
func (q *Query) FlowSteps(ctx context.Context, flowID string) ([]FlowStep, error) {
	w := &where{order: "at, key"}
	w.text("flow_id", flowID)
	return flowSteps.list(ctx, q, w)
}

// CreateFlow writes a new flow, ready to be taken up. When one with this ID is
// there already it writes nothing and returns false.
func (tx *Tx) CreateFlow(ctx context.Context, f *Flow) (created bool, err error) {
	const add = `INSERT INTO flows (id, name, version, queue, priority, status, input, error, owner, fence, lease_until, attempt, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 'ready', $6, '', '', 0, 0, 0, $7, $8) ON CONFLICT (id) DO NOTHING`
	tx.stamp(&f.ID, &f.CreatedAt, &f.UpdatedAt)
	f.Status = FlowReady
	if len(f.Input) == 0 {
		f.Input = json.RawMessage("null")
	}
	n, err := tx.exec(ctx, add, clean(f.ID), clean(f.Name), f.Version, clean(f.Queue), f.Priority,
		valueOf(raw{&f.Input}), f.CreatedAt.UnixMicro(), f.UpdatedAt.UnixMicro())
	if err != nil {
		return false, fmt.Errorf("create flow: %w", translate(err, "flow"))
	}
	return n == 1, nil
}

// SignalFlow keeps a signal for a flow and makes the flow ready if it waits for
// it. One that has ended is CodeConflict.
func (tx *Tx) SignalFlow(ctx context.Context, id, name string, payload json.RawMessage) error {
	// The row is locked first: else a flow about to park might look for the
	// signal before we wrote it, and we for a parked flow before it was one.
	f, err := tx.Flow(ctx, id)
	if err != nil {
		return err
	}
	if f.Status.Final() {
		return squad.Errorf(squad.CodeConflict, "flow %s has ended (%s) and takes no signal", id, f.Status)
	}
	const add = `INSERT INTO flow_signals (id, flow_id, name, payload, at) VALUES ($1, $2, $3, $4, $5)`
	if _, err := tx.exec(ctx, add, squad.NewID(), clean(id), clean(name), valueOf(raw{&payload}), tx.Now.UnixMicro()); err != nil {
		return fmt.Errorf("signal flow: %w", translate(err, "signal"))
	}
	if f.Status != FlowParked || f.Awaits != name {
		return nil
	}
	return tx.readyFlow(ctx, id)
}

// CancelFlow asks a flow to end and makes it ready if it is parked. It returns
// the flow as it was. A second request keeps the first cause; one that has ended
// is left alone.
func (tx *Tx) CancelFlow(ctx context.Context, id, cause string) (Flow, error) {
	f, err := tx.Flow(ctx, id)
	if err != nil || f.Status.Final() || f.Cancel != "" {
		return f, err
	}
	if cause == "" {
		cause = "cancelled"
	}
	if _, err := tx.exec(ctx, `UPDATE flows SET cancel = $1 WHERE id = $2`, clean(cause), clean(id)); err != nil {
		return f, fmt.Errorf("cancel flow: %w", err)
	}
	if f.Status != FlowParked {
		return f, nil
	}
	return f, tx.readyFlow(ctx, id)
}

func (tx *Tx) readyFlow(ctx context.Context, id string) error {
	const wake = `UPDATE flows SET status = 'ready', wake_at = NULL, awaits = NULL, updated_at = $1 WHERE id = $2`
	if _, err := tx.exec(ctx, wake, tx.Now.UnixMicro(), clean(id)); err != nil {
		return fmt.Errorf("wake flow: %w", err)
	}
	return nil
}

// DeleteFlowsBefore drops flows that ended before the given time, with their
// journals, and returns how many.
func (tx *Tx) DeleteFlowsBefore(ctx context.Context, before time.Time) (int64, error) {
	const drop = `DELETE FROM flows WHERE status IN ('succeeded', 'failed', 'cancelled') AND updated_at < $1`
	n, err := tx.exec(ctx, drop, before.UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("drop old flows: %w", err)
	}
	return n, nil
}
