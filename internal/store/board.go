package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	squad "agentsquad"
)

const (
	// maxBoard is how many tasks are remembered between boards.
	maxBoard = 20_000
	// fewChanges is up to how many tasks are fetched one by one.
	fewChanges = 200
)

// Board lists tasks as a board shows them: by column, then by place, without
// their descriptions. After is not used.
func (q *Query) Board(ctx context.Context, f TaskFilter) ([]squad.Task, error) {
	w := f.where()
	w.order, w.limit = "squad_id, status, position, id", f.Limit
	return boardTasks.list(ctx, q, w)
}

// Board is [Query.Board] for many readers: it asks the database for the versions
// of the tasks, and reads only those that changed since it last did.
func (s *Store) Board(ctx context.Context, f TaskFilter) ([]squad.Task, error) {
	if f.Limit > 0 {
		return s.Query.Board(ctx, f)
	}
	var out []squad.Task
	err := s.View(ctx, func(q *Query) error {
		stamps, err := q.taskStamps(ctx, f)
		if err != nil {
			return err
		}
		out, err = s.board.fill(ctx, q, f, stamps)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// taskStamp is what says whether a task is as it was. The cost is not part of
// the version, so it is read each time.
type taskStamp struct {
	id      string
	version int64
	cost    float64
}

func (q *Query) taskStamps(ctx context.Context, f TaskFilter) ([]taskStamp, error) {
	w := f.where()
	rows, err := q.db.QueryContext(ctx, "SELECT id, version, cost_usd FROM tasks"+w.String(), w.args...)
	if err != nil {
		return nil, fmt.Errorf("list task versions: %w", err)
	}
	defer rows.Close()
	var out []taskStamp
	for rows.Next() {
		var t taskStamp
		if err := rows.Scan(&t.id, &t.version, &t.cost); err != nil {
			return nil, fmt.Errorf("list task versions: %w", err)
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

// boardMemory remembers tasks by id, as of their version.
type boardMemory struct {
	mu    sync.Mutex
	tasks map[string]*squad.Task // never changed once they are in
}

// fill makes the board out of what is remembered and what is not.
func (m *boardMemory) fill(ctx context.Context, q *Query, f TaskFilter, stamps []taskStamp) ([]squad.Task, error) {
	found := make([]*squad.Task, len(stamps))
	missing := m.find(stamps, found)
	if len(missing) > 0 {
		if err := m.fetch(ctx, q, f, missing); err != nil {
			return nil, err
		}
		// Everything was read in one snapshot, so now all are there.
		if left := m.find(stamps, found); len(left) > 0 {
			return q.Board(ctx, f) // another board emptied the memory meanwhile
		}
	}
	out := make([]squad.Task, len(stamps))
	order := make([]int, len(stamps))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := found[i], found[j]
		return cmp.Or(cmp.Compare(a.SquadID, b.SquadID), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
	})
	for i, from := range order {
		out[i] = *found[from]
		out[i].CostUSD = stamps[from].cost
		out[i].Labels, out[i].DependsOn = slices.Clone(out[i].Labels), slices.Clone(out[i].DependsOn)
	}
	return out, nil
}

// find looks up what is remembered at the right version, and names the rest.
func (m *boardMemory) find(stamps []taskStamp, found []*squad.Task) (missing []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, s := range stamps {
		if t := m.tasks[s.id]; t != nil && t.Version == s.version {
			found[i] = t
		} else {
			missing = append(missing, s.id)
		}
	}
	return missing
}

func (m *boardMemory) fetch(ctx context.Context, q *Query, f TaskFilter, ids []string) error {
	w := f.where()
	if len(ids) <= fewChanges {
		w = &where{}
		in(w, "id", ids)
	}
	tasks, err := boardTasks.list(ctx, q, w)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tasks == nil || len(m.tasks)+len(tasks) > maxBoard {
		m.tasks = make(map[string]*squad.Task, len(tasks))
	}
	for i := range tasks {
		m.tasks[tasks[i].ID] = &tasks[i]
	}
	return nil
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

// releaseTasks writes that tasks no longer point at something that is being deleted.
// The database would do it too, but without a new version.
func (tx *Tx) releaseTasks(ctx context.Context, column, id string) error {
	query := fmt.Sprintf("UPDATE tasks SET %[1]s = NULL, version = version + 1, updated_at = $1 WHERE %[1]s = $2", column)
	if _, err := tx.exec(ctx, query, tx.Now.UnixMicro(), clean(id)); err != nil {
		return fmt.Errorf("release tasks: %w", err)
	}
	return nil
}

// likeText escapes what LIKE would take for a pattern.
func likeText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(clean(s))
}
