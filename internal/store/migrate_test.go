package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// rawDB opens the database behind the store's back.
func rawDB(t *testing.T, url string) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, dsn = "sqlite", path
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestOpen_NewerDatabaseIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := freshURL(t, dialect)
			s := open(t, url)
			w := newWorld()
			write(t, s, w.create)
			if _, err := rawDB(t, url).ExecContext(t.Context(), `INSERT INTO schema_migrations (version, name, at) VALUES (9999, 'future', 0)`); err != nil {
				t.Fatal(err)
			}
			_, err := store.Open(t.Context(), store.Config{URL: url})
			if squad.CodeOf(err) != squad.CodeConflict || !strings.Contains(err.Error(), "newer version") {
				t.Fatalf("opened: %v", err)
			}
			w.check(t, s.Query)
		})
	}
}

// Each migration is applied to a database that holds data of the schema before
// it; nothing may be lost.
func TestMigrate_FilledDatabaseStepByStep(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := freshURL(t, dialect)
			known, err := store.MigrateTo(t.Context(), store.Config{URL: url}, 1)
			if err != nil {
				t.Fatal(err)
			}
			db := rawDB(t, url)
			for _, q := range []string{
				`INSERT INTO squads (id, name, description, status, config, created_at, updated_at) VALUES ('s1', 'old', 'd', 'active', '{}', 1, 1)`,
				`INSERT INTO events (seq, type, at, payload) VALUES (1, 'log', 1, '{}')`,
				`UPDATE counters SET value = 1 WHERE name = 'events'`,
			} {
				if _, err := db.ExecContext(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
			for v := 2; v <= known; v++ {
				if _, err := store.MigrateTo(t.Context(), store.Config{URL: url}, v); err != nil {
					t.Fatalf("migration %d: %v", v, err)
				}
			}
			s := open(t, url)
			if got, err := s.Squad(t.Context(), "s1"); err != nil || got.Name != "old" {
				t.Fatalf("%+v, %v", got, err)
			}
			w := newWorld()
			w.Before.Number, w.Task.Number = 1, 2
			write(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateUser(ctx, &w.User) })
			write(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.Append(ctx, squad.Event{Type: squad.EventLog})
			})
			if n, err := s.LastSeq(t.Context()); err != nil || n != 2 {
				t.Fatalf("last event %d, %v", n, err)
			}
		})
	}
}

func TestMigrations_EveryTableIsBackedUp(t *testing.T) {
	t.Parallel()
	url := freshURL(t, store.SQLite)
	s := open(t, url)
	rows, err := rawDB(t, url).QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'schema_migrations'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var file bytes.Buffer
	if err := s.Backup(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	text := unzip(t, &file)
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, `"table":"`+name+`"`) {
			t.Errorf("table %s is not backed up", name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
