package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgresConns is how many connections one node opens at most for writing, and
// again for reading. They are apart so that transactions, all begun, cannot wait
// for each other's connections to read on.
const postgresConns = 12

// minPostgres is the oldest major version that is tested.
const minPostgres = 15

func openPostgres(ctx context.Context, rawURL string) (*Store, error) {
	cfg, err := pgx.ParseConfig(rawURL)
	if err != nil {
		// pgx may quote the string, password and all.
		return nil, errors.New("the postgres connection string cannot be read")
	}
	cfg.RuntimeParams["timezone"] = "UTC"
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "squad"
	}
	write, read := postgresPool(*cfg), postgresPool(*cfg)
	if err := checkPostgres(ctx, write); err != nil {
		return nil, errors.Join(err, write.Close(), read.Close())
	}
	return &Store{Query: &Query{db: read, dialect: Postgres}, write: write, read: read}, nil
}

func postgresPool(cfg pgx.ConnConfig) *sql.DB {
	db := stdlib.OpenDB(cfg)
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db
}

func checkPostgres(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var version int
	if err := db.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::INTEGER`).Scan(&version); err != nil {
		return fmt.Errorf("reach postgres: %w", err)
	}
	if version/10000 < minPostgres {
		return fmt.Errorf("postgres %d is too old, want %d or newer", version/10000, minPostgres)
	}
	return nil
}

// postgresFault sorts an error of PostgreSQL.
func postgresFault(err error) (kind fault, constraint string) {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return faultNone, ""
	}
	switch e.Code {
	case "23505":
		return faultUnique, e.ConstraintName
	case "23503":
		return faultReference, e.ConstraintName
	case "23514":
		return faultRule, e.ConstraintName
	case "23502":
		return faultRule, e.ColumnName
	case "22021", "22P05", "22P02", "22003", "54000":
		return faultRule, ""
	case "40001", "40P01":
		return faultRace, ""
	}
	return faultNone, ""
}

// Notify tells every node that listens on the channel. It is a hint: the
// database's rows are the truth. On SQLite there is no other node.
func (s *Store) Notify(ctx context.Context, channel, payload string) error {
	if s.dialect == SQLite {
		return nil
	}
	if _, err := s.write.ExecContext(ctx, `SELECT pg_notify($1, $2)`, channel, payload); err != nil {
		return fmt.Errorf("notify %s: %w", channel, err)
	}
	return nil
}

// Listen calls f for each notice on the channels until ctx ends, on a connection
// of its own that is opened again when it breaks. f is also called, with an empty
// channel, whenever listening begins: what came before was not heard. It returns
// the cause of ctx; on SQLite it just waits for that.
func (s *Store) Listen(ctx context.Context, channels []string, f func(channel, payload string)) error {
	if s.dialect == SQLite {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	pause := 100 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := s.listenOnce(ctx, channels, f)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > time.Minute {
			pause = 100 * time.Millisecond
		}
		s.log.WarnContext(ctx, "listening broke, trying again", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 10*time.Second)
	}
	return context.Cause(ctx)
}

func (s *Store) listenOnce(ctx context.Context, channels []string, f func(channel, payload string)) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		// The connection is to be closed even though ctx is over.
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(c)
	}()
	for _, c := range channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{c}.Sanitize()); err != nil {
			return fmt.Errorf("listen %s: %w", c, err)
		}
	}
	f("", "")
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for notice: %w", err)
		}
		f(n.Channel, n.Payload)
	}
}
