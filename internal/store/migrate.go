package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	squad "agentsquad"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// latest asks for every migration that this program knows.
const latest = 1 << 30

// migration is one numbered step of the schema, forward only.
type migration struct {
	version int
	name    string
	sql     string
}

// migrations reads the folder; names are NNNN_what.sql, without a gap.
func migrations(dialect string) ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var out []migration
	for i, path := range names { // Glob sorts
		name := strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s is out of order", name)
		}
		text, err := migrationFiles.ReadFile(path)
		if err != nil {
			return nil, err
		}
		out = append(out, migration{version, name, forDialect(string(text), dialect)})
	}
	return out, nil
}

// forDialect drops the lines marked for the other database.
func forDialect(text, dialect string) string {
	other := Postgres
	if dialect == Postgres {
		other = SQLite
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(strings.TrimSpace(line), "--"+other) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// migrate applies what is missing up to the wanted version, all in one
// transaction: either the schema is whole or it is as before.
func (s *Store) migrate(ctx context.Context, want int) error {
	known, err := migrations(s.dialect)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	t, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin migration: %w", err)
	}
	defer t.Rollback() //nolint:errcheck // after a commit it says only that
	if s.dialect == Postgres {
		// Nodes that start together migrate one after the other.
		if _, err := t.ExecContext(ctx, `SELECT pg_advisory_xact_lock(7285091)`); err != nil {
			return fmt.Errorf("lock migrations: %w", err)
		}
	}
	have, err := schemaVersion(ctx, t)
	if err != nil {
		return err
	}
	if have > len(known) {
		return squad.Errorf(squad.CodeConflict, "the database has schema %d, and this program knows only up to %d: "+
			"it was used by a newer version; start that one, or restore a backup made before", have, len(known))
	}
	for _, m := range known[have:] {
		if m.version > want {
			break
		}
		if _, err := t.ExecContext(ctx, m.sql); err != nil {
			return fmt.Errorf("apply migration %s: %w", m.name, err)
		}
		const note = `INSERT INTO schema_migrations (version, name, at) VALUES ($1, $2, $3)`
		if _, err := t.ExecContext(ctx, note, m.version, m.name, now().UnixMicro()); err != nil {
			return fmt.Errorf("note migration %s: %w", m.name, err)
		}
		s.log.InfoContext(ctx, "migration applied", "name", m.name)
	}
	if err := t.Commit(); err != nil {
		return fmt.Errorf("commit migrations: %w", err)
	}
	return nil
}

func schemaVersion(ctx context.Context, t *sql.Tx) (int, error) {
	const table = `CREATE TABLE IF NOT EXISTS schema_migrations (
		version INTEGER PRIMARY KEY, name TEXT NOT NULL, at BIGINT NOT NULL)`
	if _, err := t.ExecContext(ctx, table); err != nil {
		return 0, fmt.Errorf("make table of migrations: %w", err)
	}
	var v sql.NullInt64
	err := t.QueryRowContext(ctx, `SELECT max(version) FROM schema_migrations`).Scan(&v)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return int(v.Int64), nil
}

// SchemaVersion is the number of the newest migration in the database.
func (q *Query) SchemaVersion(ctx context.Context) (int, error) {
	var v int
	if err := q.db.QueryRowContext(ctx, `SELECT max(version) FROM schema_migrations`).Scan(&v); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return v, nil
}
