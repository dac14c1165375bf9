package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// field ties a column to a place in a struct. A fixed one is written when the
// row is made and not by updates.
type field struct {
	name  string
	at    any // pointer, or a cell below; both scan and give their value
	fixed bool
}

// table is a noun's place in the database. Its fields are listed once, in order,
// for reading and for writing; the first is the key.
type table[T any] struct {
	kind   string // in words, for errors
	name   string
	fields func(*T) []field
	// columns as a SELECT names them, and the statements made of them.
	columns, insert, update string
}

func newTable[T any](kind, name string, fields func(*T) []field) *table[T] {
	var zero T
	var names, marks, sets []string
	for i, f := range fields(&zero) {
		names = append(names, f.name)
		marks = append(marks, fmt.Sprintf("$%d", i+1))
		if i > 0 && !f.fixed {
			sets = append(sets, fmt.Sprintf("%s = $%d", f.name, len(sets)+1))
		}
	}
	columns := strings.Join(names, ", ")
	return &table[T]{
		kind: kind, name: name, fields: fields, columns: columns,
		insert: fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", name, columns, strings.Join(marks, ", ")),
		update: fmt.Sprintf("UPDATE %s SET %s WHERE %s = $%d", name, strings.Join(sets, ", "), names[0], len(sets)+1),
	}
}

// get reads the one row where the column has the value, and locks it in a
// write transaction.
func (t *table[T]) get(ctx context.Context, q *Query, column, id string) (T, error) {
	w := &where{}
	w.text(column, id)
	return t.one(ctx, q, w, id)
}

// one reads the first row that matches; name is what the caller looked for.
func (t *table[T]) one(ctx context.Context, q *Query, w *where, name string) (T, error) {
	var row T
	query := "SELECT " + t.columns + " FROM " + t.name + w.String() + w.tail() + " LIMIT 1"
	if q.locks {
		// NO KEY: a reference to the row from elsewhere need not wait.
		query += " FOR NO KEY UPDATE"
	}
	err := q.db.QueryRowContext(ctx, query, w.args...).Scan(places(t.fields(&row))...)
	if err != nil {
		return row, fmt.Errorf("read %s: %w", t.kind, missing(err, t.kind, name))
	}
	return row, nil
}

// list reads all rows that match.
func (t *table[T]) list(ctx context.Context, q *Query, w *where) ([]T, error) {
	rows, err := q.db.QueryContext(ctx, "SELECT "+t.columns+" FROM "+t.name+w.String()+w.tail(), w.args...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t.name, err)
	}
	defer rows.Close()
	out := []T{}
	var row, zero T
	to := places(t.fields(&row))
	for rows.Next() {
		row = zero // slices and maps of the last row are not shared with the next
		if err := rows.Scan(to...); err != nil {
			return nil, fmt.Errorf("list %s: %w", t.name, err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", t.name, err)
	}
	return out, nil
}

func (t *table[T]) create(ctx context.Context, tx *Tx, row *T) error {
	if _, err := tx.exec(ctx, t.insert, values(t.fields(row))...); err != nil {
		return fmt.Errorf("create %s: %w", t.kind, translate(err, t.kind))
	}
	return nil
}

func (t *table[T]) change(ctx context.Context, tx *Tx, row *T) error {
	fields := t.fields(row)
	var args []any
	for _, f := range fields[1:] {
		if !f.fixed {
			args = append(args, valueOf(f.at))
		}
	}
	key := valueOf(fields[0].at)
	n, err := tx.exec(ctx, t.update, append(args, key)...)
	if err == nil && n == 0 {
		err = missingRow(t.kind, key)
	}
	if err != nil {
		return fmt.Errorf("update %s: %w", t.kind, translate(err, t.kind))
	}
	return nil
}

func (t *table[T]) remove(ctx context.Context, tx *Tx, id string) error {
	var zero T
	n, err := tx.exec(ctx, "DELETE FROM "+t.name+" WHERE "+t.fields(&zero)[0].name+" = $1", id)
	if err == nil && n == 0 {
		err = missingRow(t.kind, id)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", t.kind, translate(err, t.kind))
	}
	return nil
}

func places(fields []field) []any {
	out := make([]any, len(fields))
	for i, f := range fields {
		out[i] = f.at
	}
	return out
}

func values(fields []field) []any {
	out := make([]any, len(fields))
	for i, f := range fields {
		out[i] = valueOf(f.at)
	}
	return out
}

// valueOf is the parameter for a field. Text is cleaned here, once for all:
// PostgreSQL refuses NUL and broken UTF-8, which a program's output may hold.
func valueOf(at any) any {
	switch p := at.(type) {
	case *string:
		return clean(*p)
	case driver.Valuer:
		v, err := p.Value()
		if err != nil {
			return badValue{err}
		}
		return v
	case *int:
		return int64(*p)
	case *int64:
		return *p
	case *bool:
		return *p
	case *float64:
		return *p
	}
	return badValue{fmt.Errorf("no column form for %T", at)}
}

// badValue carries an error to the driver, which reports it.
type badValue struct{ err error }

func (b badValue) Value() (driver.Value, error) { return nil, b.err }

func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// word is a column of a string type of the vocabulary.
type word[S ~string] struct{ p *S }

func wordOf[S ~string](p *S) word[S] { return word[S]{p} }

func (w word[S]) Value() (driver.Value, error) { return clean(string(*w.p)), nil }

func (w word[S]) Scan(src any) error {
	s, err := asText(src)
	*w.p = S(s)
	return err
}

// ref is text that is NULL when empty: a reference, or a name of which there
// may be none.
type ref struct{ p *string }

func (r ref) Value() (driver.Value, error) {
	if *r.p == "" {
		return nil, nil
	}
	return clean(*r.p), nil
}

func (r ref) Scan(src any) (err error) {
	*r.p, err = asText(src)
	return err
}

// moment is a time as microseconds since 1970, NULL when zero.
type moment struct{ p *time.Time }

func (m moment) Value() (driver.Value, error) {
	if m.p.IsZero() {
		return nil, nil
	}
	return m.p.UnixMicro(), nil
}

func (m moment) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*m.p = time.Time{}
	case int64:
		*m.p = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("time is stored as %T", src)
	}
	return nil
}

// object is anything that has a JSON form.
type object struct{ p any }

func (o object) Value() (driver.Value, error) {
	b, err := json.Marshal(o.p)
	if err != nil {
		return nil, err
	}
	return noNUL(string(b)), nil
}

func (o object) Scan(src any) error {
	s, err := asText(src)
	if err != nil || s == "" || s == "null" || s == "[]" || s == "{}" {
		return err
	}
	return json.Unmarshal([]byte(s), o.p)
}

// noNUL replaces the escaped NUL in JSON, which PostgreSQL's JSONB refuses. A
// backslash that is itself escaped does not begin an escape.
func noNUL(s string) string {
	if !strings.Contains(s, `\u0000`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if strings.HasPrefix(s[i:], `\u0000`) {
			b.WriteString(`\ufffd`)
			i += 5
			continue
		}
		b.WriteString(s[i : i+2])
		i++
	}
	return b.String()
}

// raw is JSON kept byte for byte as text, NULL when empty.
type raw struct{ p *json.RawMessage }

func (r raw) Value() (driver.Value, error) {
	if len(*r.p) == 0 {
		return nil, nil
	}
	if !json.Valid(*r.p) {
		return nil, errBadJSON
	}
	return clean(string(*r.p)), nil
}

func (r raw) Scan(src any) error {
	s, err := asText(src)
	*r.p = nil
	if s != "" {
		*r.p = json.RawMessage(s)
	}
	return err
}

func asText(src any) (string, error) {
	switch v := src.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}
	return "", fmt.Errorf("text is stored as %T", src)
}
