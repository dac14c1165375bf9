package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// seedTasks makes a squad with n tasks spread over columns and flags.
func seedTasks(t testing.TB, s *store.Store, n int) string {
	t.Helper()
	sq := squad.Squad{Name: "s"}
	columns := []squad.TaskStatus{squad.TaskBacklog, squad.TaskTodo, squad.TaskInProgress, squad.TaskInReview, squad.TaskDone}
	write(t, s, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.CreateSquad(ctx, &sq); err != nil {
			return err
		}
		for i := range n {
			task := squad.Task{
				SquadID: sq.ID, Title: fmt.Sprintf("Task number %d", i), Description: "100% of it\\all_of_it", Status: columns[i%5],
				Labels: []string{"a", fmt.Sprintf("b <%d%%>", i%3), `q"uote`}, Position: float64(n - i), GitBranch: fmt.Sprintf("task-%d", i),
			}
			if i%10 == 0 {
				task.Flag, task.Cause = squad.FlagBlocked, "waits"
			}
			if err := tx.CreateTask(ctx, &task); err != nil {
				return err
			}
		}
		return nil
	})
	return sq.ID
}

func TestTasks_PagesMeetWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		id := seedTasks(t, s, 53)
		for _, newest := range []bool{false, true} {
			var numbers []int64
			f := store.TaskFilter{SquadID: id, Limit: 10, Newest: newest}
			for {
				page, err := s.Tasks(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				for _, p := range page {
					numbers = append(numbers, p.Number)
				}
				f.After = page[len(page)-1].ID
			}
			if newest {
				slices.Reverse(numbers)
			}
			if len(numbers) != 53 || !slices.IsSorted(numbers) || numbers[0] != 1 || numbers[52] != 53 {
				t.Fatalf("newest %v: %v", newest, numbers)
			}
		}
	})
}

func TestTasks_Filters(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		id := seedTasks(t, s, 50)
		for name, c := range map[string]struct {
			f    store.TaskFilter
			want int
		}{
			"all":           {store.TaskFilter{}, 50},
			"squad":         {store.TaskFilter{SquadID: id}, 50},
			"other squad":   {store.TaskFilter{SquadID: "x"}, 0},
			"column":        {store.TaskFilter{Statuses: []squad.TaskStatus{squad.TaskDone, squad.TaskTodo}}, 20},
			"flagged":       {store.TaskFilter{Flags: []squad.TaskFlag{squad.FlagBlocked}}, 5},
			"not flagged":   {store.TaskFilter{Flags: []squad.TaskFlag{squad.FlagNone}}, 45},
			"text":          {store.TaskFilter{Text: "NUMBER 1"}, 11},
			"percent":       {store.TaskFilter{Text: "0% of"}, 50},
			"no pattern":    {store.TaskFilter{Text: "%zzz%"}, 0},
			"backslash":     {store.TaskFilter{Text: `it\all_`}, 50},
			"no underscore": {store.TaskFilter{Text: `it\allXof`}, 0},
			"injection":     {store.TaskFilter{SquadID: `' OR '1'='1`, Text: `'; DROP TABLE tasks; --`}, 0},
			"label":         {store.TaskFilter{Label: "b <1%>"}, 17},
			"label, quoted": {store.TaskFilter{Label: `q"uote`}, 50},
			"other case":    {store.TaskFilter{Label: "B <1%>"}, 0},
			"part of label": {store.TaskFilter{Label: "b "}, 0},
			"branch":        {store.TaskFilter{GitBranch: "task-7"}, 1},
			"unassigned":    {store.TaskFilter{Unassigned: true}, 50},
		} {
			got, err := s.Tasks(t.Context(), c.f)
			if err != nil || len(got) != c.want {
				t.Errorf("%s: %d, want %d, %v", name, len(got), c.want, err)
			}
		}
	})
}

func TestBoard_ColumnsInOrderOfPlace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		id := seedTasks(t, s, 50)
		got, err := s.Board(t.Context(), store.TaskFilter{SquadID: id})
		if err != nil || len(got) != 50 {
			t.Fatalf("%d, %v", len(got), err)
		}
		for i := 1; i < len(got); i++ {
			a, b := got[i-1], got[i]
			if a.Status > b.Status || a.Status == b.Status && a.Position > b.Position {
				t.Fatalf("%s %v before %s %v", a.Status, a.Position, b.Status, b.Position)
			}
			if b.Title == "" || len(b.Labels) != 3 || b.Description != "" {
				t.Fatalf("%+v", b)
			}
		}
	})
}

// The board remembers tasks between calls; whatever happens to a task, the next
// board is as the database has it.
func TestBoard_MemoryIsNeverStale(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		check := func(what string) {
			t.Helper()
			want, err := s.Query.Board(t.Context(), store.TaskFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, err := s.Board(t.Context(), store.TaskFilter{})
				if d := cmp.Diff(want, got); d != "" || err != nil {
					t.Fatalf("after %s (-want +got): %s %v", what, d, err)
				}
				for i := range got { // what a caller does with it is the caller's affair
					got[i].Title = "scribble"
					for j := range got[i].Labels {
						got[i].Labels[j] = "scribble"
					}
				}
			}
		}
		check("start")
		id := seedTasks(t, s, 300)
		check("many new ones")
		for what, f := range map[string]func(ctx context.Context, tx *store.Tx) error{
			"edit": func(ctx context.Context, tx *store.Tx) error {
				w.Task.Title = "new"
				return tx.UpdateTask(ctx, &w.Task)
			},
			"usage": func(ctx context.Context, tx *store.Tx) error {
				return tx.AddUsage(ctx, &squad.Usage{TaskID: w.Task.ID, CostUSD: 5})
			},
			"no squad": func(ctx context.Context, tx *store.Tx) error { return tx.DeleteSquad(ctx, id) },
			"one of each": func(ctx context.Context, tx *store.Tx) error {
				return tx.CreateTask(ctx, &squad.Task{SquadID: w.Squad.ID, Title: "x"})
			},
		} {
			write(t, s, f)
			check(what)
		}
		for what, f := range map[string]func(ctx context.Context, tx *store.Tx) error{
			"no member":     func(ctx context.Context, tx *store.Tx) error { return tx.DeleteMember(ctx, w.Member.ID) },
			"no repository": func(ctx context.Context, tx *store.Tx) error { return tx.DeleteRepository(ctx, w.Repository.ID) },
			"no execution":  func(ctx context.Context, tx *store.Tx) error { return tx.DeleteExecution(ctx, w.Execution.ID) },
			"no dependency": func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTask(ctx, w.Before.ID) },
		} {
			write(t, s, f)
			check(what)
		}
	})
}

// Any cursor, any filter: a list, never an error or more than was asked for.
func FuzzTaskFilter(f *testing.F) {
	for _, seed := range []string{"", "x", "\x00", "\xff\xfe", "' OR 1=1 --", "%_\\", "0198", "$1", "?"} {
		f.Add(seed, seed, seed, seed, 3)
	}
	s := open(f, freshURL(f, store.SQLite))
	seedTasks(f, s, 20)
	f.Fuzz(func(t *testing.T, squadID, after, text, status string, limit int) {
		filter := store.TaskFilter{
			SquadID: squadID, After: after, Text: text, Limit: limit, Newest: len(text)%2 == 0,
			Statuses: []squad.TaskStatus{squad.TaskStatus(status)}, DependsOn: after,
		}
		got, err := s.Tasks(t.Context(), filter)
		if err != nil {
			t.Fatalf("%+v: %v", filter, err)
		}
		if limit > 0 && len(got) > limit {
			t.Fatalf("%d of %d", len(got), limit)
		}
	})
}

// What the database selects and what the filter matches in memory is the same.
func FuzzEventFilter(f *testing.F) {
	s := open(f, freshURL(f, store.SQLite))
	write(f, s, func(ctx context.Context, tx *store.Tx) error {
		for i := range 60 {
			e := squad.Event{Type: squad.EventType(fmt.Sprint("t", i%3)), SquadID: fmt.Sprint(i % 2), TaskID: fmt.Sprint(i % 5), MemberID: fmt.Sprint(i % 7)}
			if err := tx.Append(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	all, err := s.Events(f.Context(), store.EventFilter{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(int64(0), "1", "", "", "", "t1")
	f.Add(int64(-5), "", "3", "", "2", "")
	f.Add(int64(1<<62), "\x00", "'", "\xff", "$1", "t2")
	f.Fuzz(func(t *testing.T, after int64, squadID, taskID, executionID, memberID, kind string) {
		filter := store.EventFilter{After: after, SquadID: squadID, TaskID: taskID, ExecutionID: executionID, MemberID: memberID}
		if kind != "" {
			filter.Types = []squad.EventType{squad.EventType(kind)}
		}
		got, err := s.Events(t.Context(), filter)
		if err != nil {
			t.Fatalf("%+v: %v", filter, err)
		}
		want := 0
		for i := range all {
			if all[i].Seq > after && filter.Match(&all[i]) {
				want++
			}
		}
		if len(got) != want {
			t.Fatalf("%+v: database %d, memory %d", filter, len(got), want)
		}
	})
}
