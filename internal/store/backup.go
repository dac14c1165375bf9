package store

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// backupFormat names the kind of file, and its version.
const (
	backupFormat  = "agent-squad-backup"
	backupVersion = 1
)

// backupTables is every table, in an order that people like to read. Order does
// not matter to the database: references are checked at the end.
var backupTables = []string{
	"counters", "settings", "users", "squads", "squad_users", "credentials", "repositories", "squad_members", "tasks",
	"task_dependencies", "sandboxes", "task_executions", "api_tokens", "git_operations", "messages", "pull_requests",
	"review_comments", "usage", "leases", "audit_log", "webhooks_seen", "idempotency_keys", "events",
	"flows", "flow_steps", "flow_signals", "flow_schedules", "flow_recipes",
}

// formerTables were in backups of older schemas.
var formerTables = []string{"templates"}

// backupHeader is the first line of a backup.
type backupHeader struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Schema  int       `json:"schema"`
	Dialect string    `json:"dialect"` // where it came from; it can go to either
	At      time.Time `json:"at"`
}

// backupTable begins the rows of a table.
type backupTable struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
	Kinds   []string `json:"kinds"` // text, int, float, bool, json or bytes
}

// backupEnd is the last line: without it the file is cut off.
type backupEnd struct {
	Rows int64 `json:"rows"`
}

// Backup writes the whole database, as it was at one moment, to w: compressed
// lines of JSON that [Restore] takes into SQLite or PostgreSQL. Work goes on
// meanwhile. Secrets in it are sealed as they are in the database; the key is
// not part of it.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	z := gzip.NewWriter(w)
	out := json.NewEncoder(z)
	out.SetEscapeHTML(false)
	err := s.View(ctx, func(q *Query) error {
		schema, err := q.SchemaVersion(ctx)
		if err != nil {
			return err
		}
		h := backupHeader{Format: backupFormat, Version: backupVersion, Schema: schema, Dialect: q.dialect, At: now()}
		if err := out.Encode(h); err != nil {
			return err
		}
		var end backupEnd
		for _, name := range backupTables {
			n, err := q.dump(ctx, name, out)
			if err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
			end.Rows += n
		}
		return out.Encode(end)
	})
	if err != nil {
		return fmt.Errorf("back up database: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("back up database: %w", err)
	}
	return nil
}

// dump writes one table: its columns, then a list for each row.
func (q *Query) dump(ctx context.Context, name string, out *json.Encoder) (int64, error) {
	rows, err := q.db.QueryContext(ctx, "SELECT * FROM "+name) // columns are named in the file
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return 0, err
	}
	head := backupTable{Table: name}
	for _, t := range types {
		head.Columns = append(head.Columns, t.Name())
		head.Kinds = append(head.Kinds, kindOf(t.DatabaseTypeName()))
	}
	if err := out.Encode(head); err != nil {
		return 0, err
	}
	row := make([]any, len(types))
	places := make([]any, len(types))
	for i := range row {
		places[i] = &row[i]
	}
	var n int64
	for ; rows.Next(); n++ {
		if err := rows.Scan(places...); err != nil {
			return n, err
		}
		for i := range row {
			if row[i], err = portable(head.Kinds[i], row[i]); err != nil {
				return n, fmt.Errorf("column %s: %w", head.Columns[i], err)
			}
		}
		if err := out.Encode(row); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// kindOf reads the declared type as either database names it.
func kindOf(declared string) string {
	switch t := strings.ToUpper(declared); {
	case strings.Contains(t, "BOOL"):
		return "bool"
	case strings.Contains(t, "INT"):
		return "int"
	case strings.Contains(t, "DOUBLE"), strings.Contains(t, "FLOAT"):
		return "float"
	case strings.Contains(t, "JSON"):
		return "json"
	case t == "BYTEA":
		return "bytes"
	}
	return "text"
}

// portable is a value in the form of the file.
func portable(kind string, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch kind {
	case "bool":
		switch b := v.(type) {
		case bool:
			return b, nil
		case int64:
			return b != 0, nil
		}
	case "int":
		if n, ok := v.(int64); ok {
			return n, nil
		}
	case "float":
		switch n := v.(type) {
		case float64:
			return n, nil
		case int64:
			return float64(n), nil
		}
	case "bytes":
		if b, ok := v.([]byte); ok {
			return b, nil // JSON has base64 for it
		}
	default:
		return asText(v)
	}
	return nil, errors.New("unexpected type " + fmt.Sprintf("%T", v))
}
