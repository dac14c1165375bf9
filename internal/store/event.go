package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	squad "agentsquad"
)

// maxEvents bounds one read of the log; who wants more reads on.
const maxEvents = 5000

// insertBatch is how many events one statement writes. SQLite looks a numbered
// parameter up among all that came before it, so that long statements cost by
// the square.
const insertBatch = 16

var events = newTable("event", "events", func(e *squad.Event) []field {
	return []field{
		{name: "seq", at: &e.Seq},
		{name: "type", at: wordOf(&e.Type)},
		{name: "at", at: moment{&e.At}},
		{name: "squad_id", at: ref{&e.SquadID}},
		{name: "task_id", at: ref{&e.TaskID}},
		{name: "execution_id", at: ref{&e.ExecutionID}},
		{name: "member_id", at: ref{&e.MemberID}},
		{name: "sandbox_id", at: ref{&e.SandboxID}},
		{name: "repository_id", at: ref{&e.RepositoryID}},
		{name: "payload", at: checked{&e.Payload}},
	}
})

// EventFilter says which events, and from where. Zero fields are no filter.
type EventFilter struct {
	After       int64 // the last number already known
	Limit       int   // at most this many; 0 means 1000
	SquadID     string
	TaskID      string
	ExecutionID string
	MemberID    string
	SandboxID   string
	Types       []squad.EventType
}

// Match says whether an event passes the filter; After and Limit play no part.
func (f EventFilter) Match(e *squad.Event) bool {
	if f.SquadID != "" && f.SquadID != e.SquadID || f.TaskID != "" && f.TaskID != e.TaskID ||
		f.ExecutionID != "" && f.ExecutionID != e.ExecutionID || f.MemberID != "" && f.MemberID != e.MemberID ||
		f.SandboxID != "" && f.SandboxID != e.SandboxID {
		return false
	}
	if len(f.Types) == 0 {
		return true
	}
	for _, t := range f.Types {
		if t == e.Type {
			return true
		}
	}
	return false
}

// Events lists events after f.After in their order.
func (q *Query) Events(ctx context.Context, f EventFilter) ([]squad.Event, error) {
	w := &where{order: "seq", limit: f.Limit}
	if w.limit <= 0 {
		w.limit = 1000
	}
	w.limit = min(w.limit, maxEvents)
	w.add("seq > ?", f.After)
	w.eq("squad_id", f.SquadID)
	w.eq("task_id", f.TaskID)
	w.eq("execution_id", f.ExecutionID)
	w.eq("member_id", f.MemberID)
	w.eq("sandbox_id", f.SandboxID)
	in(w, "type", f.Types)
	return events.list(ctx, q, w)
}

// LastSeq is the number of the newest event, 0 when there is none.
func (q *Query) LastSeq(ctx context.Context) (int64, error) {
	var n int64
	if err := q.db.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'events'`).Scan(&n); err != nil {
		return 0, fmt.Errorf("read last event number: %w", err)
	}
	return n, nil
}

// Append adds events to the log with this transaction. Numbers and missing times
// are given just before the commit, so that the counter is held for the shortest
// time; within the transaction the events cannot be read yet.
func (tx *Tx) Append(_ context.Context, es ...squad.Event) error {
	for _, e := range es {
		if e.Type == "" {
			return squad.Invalid("type", "an event needs a type")
		}
		if len(e.Payload) == 0 {
			e.Payload = json.RawMessage("{}")
		} else if !json.Valid(e.Payload) {
			return errBadJSON
		}
		if e.At.IsZero() {
			e.At = tx.Now
		}
		tx.events = append(tx.events, e)
	}
	return nil
}

// flush numbers and writes the events, and returns the last number or 0.
func (tx *Tx) flush(ctx context.Context) (int64, error) {
	if len(tx.events) == 0 {
		return 0, nil
	}
	var last int64
	const next = `UPDATE counters SET value = value + $1 WHERE name = 'events' RETURNING value`
	if err := tx.db.QueryRowContext(ctx, next, int64(len(tx.events))).Scan(&last); err != nil {
		return 0, fmt.Errorf("number events: %w", err)
	}
	for i := range tx.events {
		tx.events[i].Seq = last - int64(len(tx.events)-1-i)
	}
	for rest := tx.events; len(rest) > 0; {
		n := min(len(rest), insertBatch)
		if err := tx.insertEvents(ctx, rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return last, nil
}

func (tx *Tx) insertEvents(ctx context.Context, batch []squad.Event) error {
	query := events.insert
	args := make([]any, 0, 10*len(batch))
	if len(batch) > 1 {
		head, _, _ := strings.Cut(events.insert, "VALUES")
		var b strings.Builder
		b.WriteString(head + "VALUES ")
		for i := range batch {
			if i > 0 {
				b.WriteByte(',')
			}
			n := 10 * i
			fmt.Fprintf(&b, "($%d,$%d,$%d,$%d,$%d,$%d,$%d,$%d,$%d,$%d)", n+1, n+2, n+3, n+4, n+5, n+6, n+7, n+8, n+9, n+10)
		}
		query = b.String()
	}
	for i := range batch {
		args = append(args, values(events.fields(&batch[i]))...)
	}
	if _, err := tx.exec(ctx, query, args...); err != nil {
		return fmt.Errorf("append events: %w", translate(err, "event"))
	}
	return nil
}

// LastSeqBefore is the number of the newest event that is older than before and not
// among the newest keep, 0 where there is none.
func (q *Query) LastSeqBefore(ctx context.Context, before time.Time, keep int64) (last int64, err error) {
	const find = `SELECT COALESCE(MAX(seq), 0) FROM events WHERE at < $1 AND seq <= (SELECT value FROM counters WHERE name = 'events') - $2`
	if err := q.db.QueryRowContext(ctx, find, before.UnixMicro(), keep).Scan(&last); err != nil {
		return 0, fmt.Errorf("find old events: %w", err)
	}
	return last, nil
}

// DeleteEventsTo drops the events up to a number. Numbers go on; readers that resume
// from a dropped one get what is left.
func (tx *Tx) DeleteEventsTo(ctx context.Context, last int64) error {
	if _, err := tx.exec(ctx, `DELETE FROM events WHERE seq <= $1`, last); err != nil {
		return fmt.Errorf("drop old events: %w", err)
	}
	return nil
}
