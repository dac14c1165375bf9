package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// where collects the conditions of a list. Arguments are numbered in the order
// in which they appear in the text, which every driver binds alike.
type where struct {
	conds []string
	args  []any
	order string
	limit int
	skip  int
}

// add joins a condition; its one "?" becomes the next number.
func (w *where) add(cond string, arg any) {
	w.args = append(w.args, arg)
	w.conds = append(w.conds, strings.Replace(cond, "?", fmt.Sprintf("$%d", len(w.args)), 1))
}

// raw joins a condition without argument.
func (w *where) raw(cond string) { w.conds = append(w.conds, cond) }

// text asks for equality, also with the empty string.
func (w *where) text(column, v string) { w.add(column+" = ?", clean(v)) }

// eq asks for equality unless v is empty.
func (w *where) eq(column, v string) {
	if v != "" {
		w.text(column, v)
	}
}

// flag asks for a truth value unless want is nil.
func (w *where) flag(column string, want *bool) {
	if want != nil {
		w.add(column+" = ?", *want)
	}
}

// since asks for times from t on unless t is zero; before for times under it.
func (w *where) since(column string, t time.Time) {
	if !t.IsZero() {
		w.add(column+" >= ?", t.UnixMicro())
	}
}

func (w *where) before(column string, t time.Time) {
	if !t.IsZero() {
		w.add(column+" < ?", t.UnixMicro())
	}
}

// in asks for one of the values unless there are none.
func in[S ~string](w *where, column string, vs []S) {
	if len(vs) == 0 {
		return
	}
	marks := make([]string, len(vs))
	for i, v := range vs {
		w.args = append(w.args, clean(string(v)))
		marks[i] = fmt.Sprintf("$%d", len(w.args))
	}
	w.raw(column + " IN (" + strings.Join(marks, ", ") + ")")
}

// page orders by key, and starts after the cursor. Keys are ordered by the time
// of their making, so newest first is the same walk backwards.
func (w *where) page(key, after string, limit int, newest bool) {
	op, dir := " > ?", ""
	if newest {
		op, dir = " < ?", " DESC"
	}
	if after != "" {
		w.add(key+op, clean(after))
	}
	w.order, w.limit = key+dir, limit
}

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

// count counts the rows of a table that match.
func (q *Query) count(ctx context.Context, table string, w *where) (int, error) {
	var n int
	if err := q.db.QueryRowContext(ctx, "SELECT count(*) FROM "+table+w.String(), w.args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count %s: %w", table, err)
	}
	return n, nil
}

func (w *where) tail() string {
	var s string
	if w.order != "" {
		s = " ORDER BY " + w.order
	}
	if w.limit > 0 {
		s += fmt.Sprintf(" LIMIT %d", w.limit)
	}
	if w.skip > 0 {
		s += fmt.Sprintf(" OFFSET %d", w.skip)
	}
	return s
}
