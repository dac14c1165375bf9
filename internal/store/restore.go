package store

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	squad "agentsquad"
)

// maxBackupLine bounds one row of a backup.
const maxBackupLine = 64 << 20

// Restore makes a database out of a backup, in one transaction: whole or not at
// all. The database must be empty. A backup of an older program is brought up to
// date; one of a newer program is refused.
func Restore(ctx context.Context, cfg Config, r io.Reader) (err error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	z, err := gzip.NewReader(r)
	if err != nil {
		return squad.Wrap(squad.CodeInvalid, err, "this is not a backup of Agent Squad")
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(make([]byte, 64<<10), maxBackupLine)
	head, err := readHeader(lines)
	if err != nil {
		return err
	}
	if err := s.prepareRestore(ctx, head); err != nil {
		return err
	}
	if err := s.restoreRows(ctx, lines); err != nil {
		return fmt.Errorf("restore database: %w", err)
	}
	return s.migrate(ctx, latest)
}

func readHeader(lines *bufio.Scanner) (backupHeader, error) {
	var h backupHeader
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &h) != nil || h.Format != backupFormat {
		return h, squad.Wrap(squad.CodeInvalid, lines.Err(), "this is not a backup of Agent Squad")
	}
	if h.Version > backupVersion || h.Schema < 1 {
		return h, squad.Errorf(squad.CodeInvalid, "the backup has form %d, and this program reads up to %d: use the newer program", h.Version, backupVersion)
	}
	return h, nil
}

// prepareRestore makes the schema that the backup was made from.
func (s *Store) prepareRestore(ctx context.Context, h backupHeader) error {
	known, err := migrations(s.dialect)
	if err != nil {
		return err
	}
	if h.Schema > len(known) {
		return squad.Errorf(squad.CodeConflict, "the backup has schema %d, and this program knows only up to %d: use the newer program", h.Schema, len(known))
	}
	if err := s.migrate(ctx, h.Schema); err != nil {
		return err
	}
	version, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if version != h.Schema {
		return squad.Errorf(squad.CodeConflict, "the database has schema %d already and the backup %d: restore into a fresh one", version, h.Schema)
	}
	used := false
	for _, t := range []string{"users", "squads", "events", "audit_log", "flows", "settings"} {
		n, err := s.count(ctx, t, &where{limit: 1})
		if err != nil {
			return err
		}
		used = used || n > 0
	}
	if used {
		return squad.Errorf(squad.CodeConflict, "the database is in use already: restore into an empty one")
	}
	return nil
}

func (s *Store) restoreRows(ctx context.Context, lines *bufio.Scanner) error {
	t, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer t.Rollback() //nolint:errcheck // after a commit it says only that
	deferred := `SET CONSTRAINTS ALL DEFERRED`
	if s.dialect == SQLite {
		deferred = `PRAGMA defer_foreign_keys = ON`
	}
	for _, q := range []string{deferred, `DELETE FROM counters`} {
		if _, err := t.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	l := &loader{tx: t}
	defer l.close()
	for lines.Scan() {
		done, err := l.line(ctx, lines.Bytes())
		if err != nil {
			return err
		}
		if done {
			if err := checkCounters(ctx, t); err != nil {
				return err
			}
			// Who held a lease is elsewhere; the numbers of fences stay.
			if _, err := t.ExecContext(ctx, `UPDATE leases SET expires_at = 0`); err != nil {
				return err
			}
			return t.Commit()
		}
	}
	return squad.Wrap(squad.CodeInvalid, lines.Err(), "the backup is cut off after %d rows; nothing was restored", l.rows)
}

// checkCounters wants the counters to be there and not behind what they count:
// else new rows would get numbers that are taken.
func checkCounters(ctx context.Context, t *sql.Tx) error {
	const query = `SELECT count(*) FROM counters WHERE
		name = 'events' AND value >= (SELECT COALESCE(max(seq), 0) FROM events) OR
		name = 'tasks' AND value >= (SELECT COALESCE(max(number), 0) FROM tasks)`
	var n int
	if err := t.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return err
	}
	if n != 2 {
		return squad.Errorf(squad.CodeInvalid, "the backup is damaged: its counters do not fit its rows; nothing was restored")
	}
	return nil
}

// loader takes the lines of a backup.
type loader struct {
	tx     *sql.Tx
	table  backupTable
	insert *sql.Stmt
	rows   int64
}

func (l *loader) close() {
	if l.insert != nil {
		_ = l.insert.Close()
	}
}

// line takes one line, and says whether it was the last.
func (l *loader) line(ctx context.Context, b []byte) (last bool, err error) {
	if len(b) > 0 && b[0] == '[' {
		l.rows++
		return false, l.row(ctx, b)
	}
	var head struct {
		backupTable
		Rows *int64 `json:"rows"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return false, squad.Wrap(squad.CodeInvalid, err, "the backup is damaged after %d rows", l.rows)
	}
	if head.Rows != nil {
		if *head.Rows != l.rows {
			return false, squad.Errorf(squad.CodeInvalid, "the backup has %d rows and says %d", l.rows, *head.Rows)
		}
		return true, nil
	}
	return false, l.begin(ctx, head.backupTable)
}

func (l *loader) begin(ctx context.Context, t backupTable) error {
	// Names go into SQL: only our own are taken.
	if !slices.Contains(backupTables, t.Table) && !slices.Contains(formerTables, t.Table) || len(t.Columns) == 0 || len(t.Columns) != len(t.Kinds) {
		return squad.Errorf(squad.CodeInvalid, "the backup names an unknown table %q", t.Table)
	}
	marks := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		if strings.Trim(c, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
			return squad.Errorf(squad.CodeInvalid, "the backup names an unknown column %q", c)
		}
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	l.close()
	l.table = t
	var err error
	l.insert, err = l.tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)",
		t.Table, strings.Join(t.Columns, ", "), strings.Join(marks, ", ")))
	return err
}

func (l *loader) row(ctx context.Context, b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var row []any
	if err := d.Decode(&row); err != nil || len(row) != len(l.table.Columns) {
		return squad.Wrap(squad.CodeInvalid, err, "the backup is damaged at row %d", l.rows)
	}
	for i := range row {
		var err error
		if row[i], err = stored(l.table.Kinds[i], row[i]); err != nil {
			return squad.Wrap(squad.CodeInvalid, err, "the backup is damaged at row %d (%s.%s)", l.rows, l.table.Table, l.table.Columns[i])
		}
	}
	if _, err := l.insert.ExecContext(ctx, row...); err != nil {
		return fmt.Errorf("row %d (%s): %w", l.rows, l.table.Table, translate(err, "backup"))
	}
	return nil
}

// stored is a value of the file in the form of the database.
func stored(kind string, v any) (any, error) {
	switch x := v.(type) {
	case nil:
		return nil, nil
	case bool:
		if kind == "bool" {
			return x, nil
		}
	case json.Number:
		if kind == "int" {
			return x.Int64()
		}
		if kind == "float" {
			return x.Float64()
		}
	case string:
		if kind == "bytes" {
			return base64.StdEncoding.DecodeString(x)
		}
		if kind == "text" || kind == "json" {
			return x, nil
		}
	}
	return nil, fmt.Errorf("%T is no %s", v, kind)
}
