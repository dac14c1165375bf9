package store

import (
	"context"
	"strings"

	squad "agentsquad"
)

// Board lists tasks as a board shows them: by column, then by place, without
// their descriptions. After is not used.
func (q *Query) Board(ctx context.Context, f TaskFilter) ([]squad.Task, error) {
	w := f.where()
	w.order, w.limit = "squad_id, status, position, id", f.Limit
	return boardTasks.list(ctx, q, w)
}

// boardTasks reads tasks without what is long and not shown.
var boardTasks = newTable("task", "tasks", func(t *squad.Task) []field {
	all := tasks.fields(t)
	out := make([]field, 0, len(all))
	for _, f := range all {
		if f.name != "description" {
			out = append(out, f)
		}
	}
	return out
})

// likeText escapes what LIKE would take for a pattern.
func likeText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(clean(s))
}
