package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
)

// HeldFlow reads a flow under a hold and locks it; CodeStale when it was lost.
func (tx *Tx) HeldFlow(ctx context.Context, h Hold) (Flow, error) {
	f, err := tx.Flow(ctx, h.FlowID)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return f, h.stale()
	}
	if err == nil && (f.Owner != h.Owner || f.Fence != h.Fence || f.Status != FlowRunning) {
		err = h.stale()
	}
	return f, err
}

// ParkFlow writes a step and lets the flow go until wakeAt, or until a signal
// named awaits, whichever is first; either may be zero.
func (tx *Tx) ParkFlow(ctx context.Context, h Hold, step FlowStep, wakeAt time.Time, awaits string) error {
	if err := tx.putFlowStep(ctx, h, step); err != nil {
		return err
	}
	const park = `UPDATE flows SET status = 'parked', owner = '', lease_until = 0, wake_at = $1, awaits = $2, updated_at = $3
		WHERE id = $4 AND owner = $5 AND fence = $6 AND status = 'running'`
	n, err := tx.exec(ctx, park, valueOf(moment{&wakeAt}), valueOf(ref{&awaits}), tx.Now.UnixMicro(), h.FlowID, h.Owner, h.Fence)
	if err == nil && n == 0 {
		err = h.stale()
	}
	if err != nil {
		return fmt.Errorf("park flow: %w", err)
	}
	return nil
}

func (tx *Tx) putFlowStep(ctx context.Context, h Hold, step FlowStep) error {
	const put = `INSERT INTO flow_steps (flow_id, key, kind, done, attempt, result, error, wake_at, fence, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (flow_id, key) DO UPDATE SET done = excluded.done, attempt = excluded.attempt, result = excluded.result,
			error = excluded.error, wake_at = excluded.wake_at, fence = excluded.fence, at = excluded.at`
	step.FlowID, step.Fence, step.At = h.FlowID, h.Fence, tx.Now
	if _, err := tx.exec(ctx, put, values(flowSteps.fields(&step))...); err != nil {
		return fmt.Errorf("write flow step: %w", translate(err, "flow step"))
	}
	return nil
}

// TakeSignal removes the oldest signal of that name and writes it as the result
// of the step, both or neither; false when there is none. The flow must be held
// and locked by [Tx.HeldFlow].
func (tx *Tx) TakeSignal(ctx context.Context, h Hold, name string, step FlowStep) (json.RawMessage, bool, error) {
	const take = `DELETE FROM flow_signals WHERE id = (
		SELECT id FROM flow_signals WHERE flow_id = $1 AND name = $2 ORDER BY id LIMIT 1) RETURNING payload`
	var payload string
	err := tx.db.QueryRowContext(ctx, take, h.FlowID, clean(name)).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("take signal: %w", err)
	}
	step.Done, step.Result = true, json.RawMessage(payload)
	return step.Result, true, tx.putFlowStep(ctx, h, step)
}

// PutHeldStep writes an entry of the journal in a transaction that checked the
// hold with [Tx.HeldFlow].
func (tx *Tx) PutHeldStep(ctx context.Context, h Hold, step FlowStep) error {
	return tx.putFlowStep(ctx, h, step)
}

// EndFlow gives a held flow its last state.
func (tx *Tx) EndFlow(ctx context.Context, h Hold, status FlowStatus, reason string) error {
	const end = `UPDATE flows SET status = $1, error = $2, owner = '', lease_until = 0, updated_at = $3
		WHERE id = $4 AND owner = $5 AND fence = $6 AND status = 'running'`
	n, err := tx.exec(ctx, end, string(status), clean(reason), tx.Now.UnixMicro(), h.FlowID, h.Owner, h.Fence)
	if err == nil && n == 0 {
		err = h.stale()
	}
	if err != nil {
		return fmt.Errorf("end flow: %w", err)
	}
	return nil
}

// EndIdleFlow gives a flow that nobody holds its last state; false when somebody
// took it up or ended it meanwhile.
func (tx *Tx) EndIdleFlow(ctx context.Context, id string, status FlowStatus, reason string) (bool, error) {
	const end = `UPDATE flows SET status = $1, error = $2, wake_at = NULL, awaits = NULL, updated_at = $3
		WHERE id = $4 AND status IN ('ready', 'parked')`
	n, err := tx.exec(ctx, end, string(status), clean(reason), tx.Now.UnixMicro(), clean(id))
	if err != nil {
		return false, fmt.Errorf("end flow: %w", err)
	}
	return n == 1, nil
}

// ShareRecipes tells other nodes, for the given time, what this one can run.
func (tx *Tx) ShareRecipes(ctx context.Context, owner string, recipes []Recipe, ttl time.Duration) error {
	put := tx.clocked(`INSERT INTO flow_recipes (owner, name, version, until) VALUES ($1, $2, $3, {now} + $4)
		ON CONFLICT (name, version, owner) DO UPDATE SET until = excluded.until`)
	for _, r := range recipes {
		if _, err := tx.exec(ctx, put, clean(owner), r.Name, r.Version, ttl.Microseconds()); err != nil {
			return fmt.Errorf("share recipes: %w", err)
		}
	}
	if _, err := tx.exec(ctx, tx.clocked(`DELETE FROM flow_recipes WHERE until < {now}`)); err != nil {
		return fmt.Errorf("forget recipes: %w", err)
	}
	return nil
}

// UnshareRecipes takes back what [Tx.ShareRecipes] told.
func (tx *Tx) UnshareRecipes(ctx context.Context, owner string) error {
	if _, err := tx.exec(ctx, `DELETE FROM flow_recipes WHERE owner = $1`, clean(owner)); err != nil {
		return fmt.Errorf("unshare recipes: %w", err)
	}
	return nil
}

// OrphanFlows lists flows that have been ready for longer than grace and that no
// living node can run.
func (q *Query) OrphanFlows(ctx context.Context, grace time.Duration) ([]Flow, error) {
	w := &where{order: "id", limit: 100}
	w.raw("status = 'ready'")
	w.add(q.clocked("updated_at < {now} - ?"), grace.Microseconds())
	w.raw(q.clocked(`NOT EXISTS (SELECT 1 FROM flow_recipes r
		WHERE r.name = flows.name AND r.version = flows.version AND r.until >= {now})`))
	return flows.list(ctx, q, w)
}

// DueSchedule says whether a schedule is to run now, and if so puts its next
// turn one interval later. A schedule not seen before is due.
func (tx *Tx) DueSchedule(ctx context.Context, name string, interval time.Duration) (bool, error) {
	query := tx.clocked(`INSERT INTO flow_schedules (name, next_at, runs) VALUES ($1, {now} + $2, 1)
		ON CONFLICT (name) DO UPDATE SET next_at = excluded.next_at, runs = flow_schedules.runs + 1
		WHERE flow_schedules.next_at <= {now}`)
	n, err := tx.exec(ctx, query, clean(name), interval.Microseconds())
	if err != nil {
		return false, fmt.Errorf("ask schedule %s: %w", name, err)
	}
	return n == 1, nil
}

// NextSchedule is how long it is until a schedule's next turn; 0 or less means
// that it is due, as one not seen before is.
func (q *Query) NextSchedule(ctx context.Context, name string) (time.Duration, error) {
	var micros int64
	query := q.clocked(`SELECT next_at - {now} FROM flow_schedules WHERE name = $1`)
	err := q.db.QueryRowContext(ctx, query, clean(name)).Scan(&micros)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("ask schedule %s: %w", name, err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}
