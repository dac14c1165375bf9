// Package store keeps everything in one database: SQLite (embedded, the default)
// or PostgreSQL 15 and newer, from the same SQL and the same migrations.
//
// All SQL of the house is here, one file per noun. Reads are methods of [Query],
// which both [Store] and [Tx] embed; writes are methods of [Tx] and happen only
// inside [Store.Tx]. An event is written by [Tx.Append] in the transaction of the
// change it tells about; its number is given out just before commit from a
// counter row, so that numbers have no gap and follow commit order on any number
// of nodes. [Store.OnCommit] rings after the commit.
//
// Errors that a caller caused are *squad.Error: CodeNotFound for a missing row,
// CodeConflict for a uniqueness breach, CodeInvalid for a broken reference or
// rule, CodeStale for an outdated version. Others are driver errors, wrapped.
//
// The package starts no goroutine of its own, except inside [Store.Listen].
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// The dialects.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Config says where the database is.
type Config struct {
	// URL is "sqlite:PATH", or a postgres:// connection string.
	URL string
	// Log receives what is worth knowing (migrations, retries); nil is silence.
	Log *slog.Logger
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	*Query
	url   string
	write *sql.DB
	read  *sql.DB
	log   *slog.Logger
	turn  chan struct{} // held by the one write transaction of SQLite; else nil
	board boardMemory

	mu    sync.Mutex
	bells []func(lastSeq int64)
}

// Open opens the database, creates it where it is missing and may be (SQLite),
// and brings the schema up to date. A database newer than this program is
// refused and left as it is.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx, latest); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect opens the database without touching its schema.
func connect(ctx context.Context, cfg Config) (*Store, error) {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var s *Store
	var err error
	switch {
	case strings.HasPrefix(cfg.URL, "sqlite:"):
		s, err = openSQLite(ctx, strings.TrimPrefix(cfg.URL, "sqlite:"))
	case strings.HasPrefix(cfg.URL, "postgres://"), strings.HasPrefix(cfg.URL, "postgresql://"):
		s, err = openPostgres(ctx, cfg.URL)
	default:
		// The URL may hold a password, so the message shows only its scheme.
		scheme, _, _ := strings.Cut(cfg.URL, ":")
		return nil, fmt.Errorf("open database: unknown kind %q, want sqlite:PATH or postgres://…", scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	s.url, s.log = cfg.URL, log
	return s, nil
}

// Close closes all connections. The store is of no use afterwards.
func (s *Store) Close() error {
	return errors.Join(s.read.Close(), s.write.Close())
}

// Dialect is [SQLite] or [Postgres].
func (s *Store) Dialect() string { return s.dialect }

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.read.PingContext(ctx) }

// OnCommit has f called after each commit that appended events, with the number
// of the last one. f must be quick and must not call the store.
func (s *Store) OnCommit(f func(lastSeq int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bells = append(s.bells, f)
}

func (s *Store) ring(lastSeq int64) {
	s.mu.Lock()
	bells := s.bells
	s.mu.Unlock()
	for _, f := range bells {
		f(lastSeq)
	}
}

// View runs f on one snapshot: all its reads see the same moment.
func (s *Store) View(ctx context.Context, f func(q *Query) error) error {
	opts := &sql.TxOptions{ReadOnly: true}
	if s.dialect == Postgres {
		opts.Isolation = sql.LevelRepeatableRead
	}
	t, err := s.read.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("begin view: %w", err)
	}
	defer t.Rollback() //nolint:errcheck // a read has nothing to lose
	return f(&Query{db: t, dialect: s.dialect})
}

// Query holds all reads. Inside a [Tx], reading one row by its key also locks
// it until the end of the transaction, so that read, decide, write is safe.
type Query struct {
	db      runner
	dialect string
	locks   bool
}

// runner is what *sql.DB and *sql.Tx share.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Now is the time by the clock that all nodes share: PostgreSQL's own, or this
// machine's for SQLite.
func (q *Query) Now(ctx context.Context) (time.Time, error) {
	if q.dialect == SQLite {
		return now(), nil
	}
	var t time.Time
	const micros = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT`
	if err := q.db.QueryRowContext(ctx, micros).Scan(moment{&t}); err != nil {
		return time.Time{}, fmt.Errorf("read database clock: %w", err)
	}
	return t, nil
}

// now is this machine's time in the precision that the database keeps.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
