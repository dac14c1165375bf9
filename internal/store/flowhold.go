package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	squad "agentsquad"
)

// Hold is the right to write for one flow: this owner, under this fence. Every
// write that takes one is refused with CodeStale once the flow changed hands.
type Hold struct {
	FlowID string
	Owner  string
	Fence  int64
}

// Recipe names a workflow function that a node can run.
type Recipe struct {
	Name    string
	Version int
}

// clocked puts the database's clock, in microseconds, in place of {now}.
func (q *Query) clocked(query string) string {
	clock := `CAST(unixepoch('subsec') * 1000000 AS BIGINT)`
	if q.dialect == Postgres {
		clock = `(extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT`
	}
	return strings.ReplaceAll(query, "{now}", clock)
}

// ClaimFlows takes up to n ready flows of a queue that one of the recipes can
// run, the highest priority first, and holds them for the lease.
func (s *Store) ClaimFlows(ctx context.Context, owner, queue string, recipes []Recipe, n int, lease time.Duration) ([]Flow, error) {
	if len(recipes) == 0 || n <= 0 {
		return nil, nil
	}
	args := []any{clean(owner), lease.Microseconds(), clean(queue)}
	var known []string
	for _, r := range recipes {
		args = append(args, r.Name, r.Version)
		known = append(known, fmt.Sprintf("(name = $%d AND version = $%d)", len(args)-1, len(args)))
	}
	args = append(args, n)
	skip := ""
	if s.dialect == Postgres {
		skip = " FOR UPDATE SKIP LOCKED"
	}
	query := s.clocked(`UPDATE flows SET status = 'running', owner = $1, fence = fence + 1, attempt = attempt + 1,
		lease_until = {now} + $2, updated_at = {now}, wake_at = NULL, awaits = NULL
		WHERE id IN (SELECT id FROM flows WHERE status = 'ready' AND queue = $3 AND (` + strings.Join(known, " OR ") + `)
			ORDER BY priority DESC, created_at, id LIMIT ` + fmt.Sprintf("$%d", len(args)) + skip + `)
		RETURNING ` + flows.columns)
	return s.flowRows(ctx, "claim flows", query, args...)
}

// flowRows runs a statement on the writer that returns flows.
func (s *Store) flowRows(ctx context.Context, verb, query string, args ...any) ([]Flow, error) {
	rows, err := s.write.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	defer rows.Close()
	var out []Flow
	for rows.Next() {
		var f Flow
		if err := rows.Scan(places(flows.fields(&f))...); err != nil {
			return nil, fmt.Errorf("%s: %w", verb, err)
		}
		out = append(out, f)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	return out, nil
}

// ReadyQueues names the queues that have a flow to take up.
func (s *Store) ReadyQueues(ctx context.Context) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT DISTINCT queue FROM flows WHERE status = 'ready'`)
	if err != nil {
		return nil, fmt.Errorf("list ready queues: %w", err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list ready queues: %w", err)
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

// RenewFlows gives all flows of an owner a full lease and returns them. A flow
// that the owner thinks it holds and that is not among them was lost.
func (s *Store) RenewFlows(ctx context.Context, owner string, lease time.Duration) ([]Flow, error) {
	query := s.clocked(`UPDATE flows SET lease_until = {now} + $1 WHERE owner = $2 AND status = 'running' RETURNING ` + flows.columns)
	return s.flowRows(ctx, "renew flows", query, lease.Microseconds(), clean(owner))
}

// WakeFlows makes ready what is due: parked flows whose time has come, and
// running ones whose lease ran out. It returns how long it is until the next
// parked flow is due, 0 when none has a time.
func (s *Store) WakeFlows(ctx context.Context) (next time.Duration, err error) {
	var due, lost sql.NullInt64
	query := s.clocked(`SELECT (SELECT min(wake_at) FROM flows WHERE status = 'parked' AND wake_at IS NOT NULL) - {now},
		(SELECT min(lease_until) FROM flows WHERE status = 'running') - {now}`)
	if err := s.read.QueryRowContext(ctx, query).Scan(&due, &lost); err != nil {
		return 0, fmt.Errorf("find due flows: %w", err)
	}
	if due.Valid && due.Int64 <= 0 {
		const wake = `UPDATE flows SET status = 'ready', wake_at = NULL, awaits = NULL, updated_at = {now}
			WHERE status = 'parked' AND wake_at <= {now}`
		if _, err := s.write.ExecContext(ctx, s.clocked(wake)); err != nil {
			return 0, fmt.Errorf("wake flows: %w", err)
		}
		next = time.Millisecond // another may be due right after
	} else if due.Valid {
		next = time.Duration(due.Int64) * time.Microsecond
	}
	if lost.Valid && lost.Int64 <= 0 {
		const free = `UPDATE flows SET status = 'ready', owner = '', updated_at = {now} WHERE status = 'running' AND lease_until <= {now}`
		if _, err := s.write.ExecContext(ctx, s.clocked(free)); err != nil {
			return 0, fmt.Errorf("free lost flows: %w", err)
		}
	}
	return next, nil
}

// ReleaseFlows makes ready, at once, what the owner holds; with owner empty, what
// anybody holds, for a database that has one node only.
func (s *Store) ReleaseFlows(ctx context.Context, owner string) (int64, error) {
	query := `UPDATE flows SET status = 'ready', owner = '', lease_until = 0, updated_at = {now} WHERE status = 'running' AND owner = $1`
	args := []any{clean(owner)}
	if owner == "" {
		query, args = strings.TrimSuffix(query, " AND owner = $1"), nil
	}
	res, err := s.write.ExecContext(ctx, s.clocked(query), args...)
	if err != nil {
		return 0, fmt.Errorf("release flows: %w", err)
	}
	return res.RowsAffected()
}

// ReleaseFlow makes one held flow ready; a hold that was lost is no error.
func (s *Store) ReleaseFlow(ctx context.Context, h Hold) error {
	query := s.clocked(`UPDATE flows SET status = 'ready', owner = '', lease_until = 0, updated_at = {now}
		WHERE id = $1 AND owner = $2 AND fence = $3 AND status = 'running'`)
	if _, err := s.write.ExecContext(ctx, query, h.FlowID, h.Owner, h.Fence); err != nil {
		return fmt.Errorf("release flow: %w", err)
	}
	return nil
}

// WriteFlowStep writes an entry of the journal under a hold, in one statement.
// The hold's row is locked, so that the flow cannot change hands between the
// look and the write.
func (s *Store) WriteFlowStep(ctx context.Context, h Hold, step FlowStep) error {
	lock := ""
	if s.dialect == Postgres {
		lock = " FOR SHARE"
	}
	query := s.clocked(`INSERT INTO flow_steps (flow_id, key, kind, done, attempt, result, error, wake_at, fence, at)
		SELECT id, CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS BOOLEAN), CAST($4 AS INTEGER), CAST($5 AS TEXT),
			CAST($6 AS TEXT), CAST($7 AS BIGINT), fence, {now}
		FROM flows WHERE id = $8 AND owner = $9 AND fence = $10 AND status = 'running'` + lock + `
		ON CONFLICT (flow_id, key) DO UPDATE SET done = excluded.done, attempt = excluded.attempt, result = excluded.result,
			error = excluded.error, wake_at = excluded.wake_at, fence = excluded.fence, at = excluded.at`)
	res, err := s.write.ExecContext(ctx, query, clean(step.Key), step.Kind, step.Done, step.Attempt, valueOf(raw{&step.Result}),
		valueOf(raw{&step.Error}), valueOf(moment{&step.WakeAt}), h.FlowID, h.Owner, h.Fence)
	if err != nil {
		return fmt.Errorf("write flow step: %w", translate(err, "flow step"))
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, h.stale())
	}
	return nil
}

func (h Hold) stale() error {
	return squad.Errorf(squad.CodeStale, "flow %s is no longer held by %s (fence %d)", h.FlowID, h.Owner, h.Fence)
}
