package store

import (
	"context"
	"fmt"
	"strings"
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
