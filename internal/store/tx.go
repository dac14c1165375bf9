package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/trace"

	squad "agentsquad"
)

const (
	// maxTries bounds how often a transaction that lost a race is run again.
	maxTries = 8
	// maxTurn bounds the wait for SQLite's one writer. Who waits longer has most
	// likely begun a transaction inside another.
	maxTurn = 30 * time.Second
)

// Tx is one write transaction. It must not be used after its function returned,
// nor by two goroutines at once.
type Tx struct {
	*Query
	// Now is the one time of everything this transaction writes.
	Now time.Time

	events []squad.Event
	after  []func()
}

// Tx runs f in one write transaction and commits if f returns nil. When the
// database aborts it because of a race with another, f is run again from the
// start, so f must not have effects outside the transaction. f must not call
// [Store.Tx] of the same store: on SQLite there is one writer. After an error
// from a write the transaction is spent, as PostgreSQL has it: return the error.
func (s *Store) Tx(ctx context.Context, f func(tx *Tx) error) error {
	// Below the span of whoever asks; without one this costs nothing and is told to nobody.
	ctx, span := trace.SpanFromContext(ctx).TracerProvider().Tracer("agentsquad/store").Start(ctx, "store.Tx")
	defer span.End()
	for try := 1; ; try++ {
		err := s.tryTx(ctx, f)
		if err == nil || try == maxTries || !isRace(err) {
			return err
		}
		s.log.DebugContext(ctx, "transaction lost a race", "try", try, "error", err)
		pause := time.Duration(rand.Int64N(int64(5*time.Millisecond) << try))
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// takeTurn waits for the writer; the caller must give it back.
func (s *Store) takeTurn(ctx context.Context) (giveBack func(), err error) {
	if s.turn == nil {
		return func() {}, nil
	}
	select {
	case s.turn <- struct{}{}: // mostly free
		return func() { <-s.turn }, nil
	default:
	}
	t := time.NewTimer(maxTurn)
	defer t.Stop()
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-t.C:
		return nil, squad.Errorf(squad.CodeUnavailable, "the database is busy: another change took longer than %s", maxTurn)
	}
}

func (s *Store) tryTx(ctx context.Context, f func(tx *Tx) error) error {
	giveBack, err := s.takeTurn(ctx)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer giveBack()
	t, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer t.Rollback() //nolint:errcheck // after a commit it says only that
	tx := &Tx{Query: &Query{db: t, dialect: s.dialect, locks: s.dialect == Postgres}, Now: now()}
	if err := f(tx); err != nil {
		return err
	}
	last, err := tx.flush(ctx)
	if err != nil {
		return err
	}
	if err := t.Commit(); err != nil {
		return fmt.Errorf("commit transaction: %w", translate(err, "change"))
	}
	if last > 0 {
		s.ring(last)
	}
	for _, g := range tx.after {
		g()
	}
	return nil
}

// AfterCommit has f called once the transaction is committed, in order; never
// if it is not. f must be quick and must not call the store.
func (tx *Tx) AfterCommit(f func()) { tx.after = append(tx.after, f) }

// Lock makes transactions that name the same lock run one after the other, on
// all nodes: for rules about many rows, such as "at most N running". On SQLite
// write transactions are single anyway.
func (tx *Tx) Lock(ctx context.Context, name string) error {
	if tx.dialect == SQLite {
		return nil
	}
	if _, err := tx.db.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, name); err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	return nil
}

// exec runs a statement and returns how many rows it touched.
func (q *Query) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := q.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

var _ runner = (*sql.Tx)(nil)
