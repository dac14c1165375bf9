package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

func TestRules_TheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		task := func(change func(*squad.Task)) func(context.Context, *store.Tx) error {
			return func(ctx context.Context, tx *store.Tx) error {
				n := squad.Task{SquadID: w.Squad.ID, Title: "t"}
				change(&n)
				return tx.CreateTask(ctx, &n)
			}
		}
		for name, c := range map[string]struct {
			want squad.Code
			f    func(context.Context, *store.Tx) error
		}{
			"no squad":           {squad.CodeInvalid, task(func(t *squad.Task) { t.SquadID = "nobody" })},
			"bad status":         {squad.CodeInvalid, task(func(t *squad.Task) { t.Status = "asleep" })},
			"bad flag":           {squad.CodeInvalid, task(func(t *squad.Task) { t.Flag = "tired" })},
			"bad priority":       {squad.CodeInvalid, task(func(t *squad.Task) { t.Priority = 9 })},
			"no title":           {squad.CodeInvalid, task(func(t *squad.Task) { t.Title = "" })},
			"long title":         {squad.CodeInvalid, task(func(t *squad.Task) { t.Title = strings.Repeat("x", 301) })},
			"unknown dependency": {squad.CodeInvalid, task(func(t *squad.Task) { t.DependsOn = []string{"nothing"} })},
			"same task":          {squad.CodeConflict, task(func(t *squad.Task) { t.ID = w.Task.ID })},
			"depends on itself":  {squad.CodeInvalid, task(func(t *squad.Task) { t.ID = "me"; t.DependsOn = []string{"me"} })},
			"same dependency":    {squad.CodeInvalid, task(func(t *squad.Task) { t.DependsOn = []string{w.Task.ID, w.Task.ID} })},
			"unknown squad user": {squad.CodeInvalid, func(ctx context.Context, tx *store.Tx) error {
				return tx.CreateSquadUser(ctx, &squad.SquadUser{SquadID: w.Squad.ID, UserID: "x", Role: "viewer"})
			}},
			"second place": {squad.CodeConflict, func(ctx context.Context, tx *store.Tx) error { return tx.CreateSquadUser(ctx, &w.SquadUser) }},
			"same token": {squad.CodeConflict, func(ctx context.Context, tx *store.Tx) error {
				k := w.Token
				k.ID = ""
				return tx.CreateAPIToken(ctx, &k)
			}},
			"token without hash": {squad.CodeInvalid, func(ctx context.Context, tx *store.Tx) error {
				k := w.Token
				k.ID, k.Hash = "", ""
				return tx.CreateAPIToken(ctx, &k)
			}},
			"same usage": {squad.CodeConflict, func(ctx context.Context, tx *store.Tx) error { return tx.AddUsage(ctx, &w.Usage) }},
			"same repository": {squad.CodeConflict, func(ctx context.Context, tx *store.Tx) error {
				r := w.Repository
				r.ID = ""
				return tx.CreateRepository(ctx, &r)
			}},
			"same open pull": {squad.CodeConflict, func(ctx context.Context, tx *store.Tx) error {
				p := w.Pull
				p.ID, p.Number = "", 777
				return tx.CreatePullRequest(ctx, &p)
			}},
			"sandbox without end": {"", func(ctx context.Context, tx *store.Tx) error {
				b := w.Sandbox
				b.Status, b.TerminatedAt = squad.SandboxTerminated, time.Time{}
				return tx.UpdateSandbox(ctx, &b)
			}},
			"two live executions": {squad.CodeConflict, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.CreateExecution(ctx, &squad.Execution{TaskID: w.Task.ID, SquadID: w.Squad.ID}); err != nil {
					return fmt.Errorf("first: %v", err) //nolint:errorlint // its code must not count
				}
				return tx.CreateExecution(ctx, &squad.Execution{TaskID: w.Task.ID, SquadID: w.Squad.ID})
			}},
			"bad event": {squad.CodeInvalid, func(ctx context.Context, tx *store.Tx) error {
				return tx.Append(ctx, squad.Event{Type: "x", Payload: []byte("{")})
			}},
		} {
			err := s.Tx(t.Context(), func(tx *store.Tx) error { return c.f(t.Context(), tx) })
			if squad.CodeOf(err) != c.want {
				t.Errorf("%s: code %q, want %q: %v", name, squad.CodeOf(err), c.want, err)
			}
		}
		w.Sandbox.Status = squad.SandboxPaused
	})
}

// What a program prints may hold anything; it must not stop the books.
func TestText_AnyBytesAreKeptAsTextInBothDatabases(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		w.Git.OutputTail = "a\x00b\xffc"
		w.Message.Body = "\x00"
		w.Member.Config.Env = map[string]string{"k": "x\x00y\xffz \\u0000"}
		write(t, s, w.create)
		write(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Append(ctx, squad.Event{Type: "log", Payload: []byte(`{"text":"\u0000 ü \ud83d"}`)})
		})
		g, err := s.GitOperation(t.Context(), w.Git.ID)
		if err != nil || g.OutputTail != "a\uFFFDb\uFFFDc" {
			t.Errorf("%q, %v", g.OutputTail, err)
		}
		m, err := s.Member(t.Context(), w.Member.ID)
		if err != nil || m.Config.Env["k"] != "x\uFFFDy\uFFFDz \\u0000" {
			t.Errorf("%q, %v", m.Config.Env, err)
		}
		es, err := s.Events(t.Context(), store.EventFilter{After: 1})
		if err != nil || len(es) != 1 || string(es[0].Payload) != `{"text":"\u0000 ü \ud83d"}` {
			t.Errorf("%s, %v", es[0].Payload, err)
		}
		if _, err := s.Tasks(t.Context(), store.TaskFilter{SquadID: "\x00\xff", Text: "\x00%_\\"}); err != nil {
			t.Error(err)
		}
	})
}

func TestUpdateTask_StaleVersionIsRefused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		mine, yours := w.Task, w.Task
		mine.Title, yours.Title = "mine", "yours"
		write(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.UpdateTask(ctx, &mine) })
		err := s.Tx(t.Context(), func(tx *store.Tx) error { return tx.UpdateTask(t.Context(), &yours) })
		if squad.CodeOf(err) != squad.CodeStale || mine.Version != 2 || yours.Version != 1 {
			t.Fatalf("%v; versions %d, %d", err, mine.Version, yours.Version)
		}
	})
}

func TestDeleteTask_WaitingTasksNoLongerWait(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		write(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteTask(ctx, w.Before.ID) })
		got, err := s.Task(t.Context(), w.Task.ID)
		if err != nil || len(got.DependsOn) != 0 {
			t.Fatalf("%v, %v", got.DependsOn, err)
		}
	})
}

func TestDeleteSquad_BooksAndSandboxesStay(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		write(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteSquad(ctx, w.Squad.ID) })
		if u, err := s.Usage(t.Context(), w.Usage.ID); err != nil || u.SquadID != "" || u.CostUSD != w.Usage.CostUSD {
			t.Errorf("%+v, %v", u, err)
		}
		if b, err := s.Sandbox(t.Context(), w.Sandbox.ID); err != nil || b.TaskID != "" {
			t.Errorf("%+v, %v", b, err)
		}
		if _, err := s.Task(t.Context(), w.Task.ID); squad.CodeOf(err) != squad.CodeNotFound {
			t.Errorf("task: %v", err)
		}
	})
}

func TestSums_AreNotOverwrittenByEdits(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		e, task := w.Execution, w.Task // read before the usage below
		write(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddUsage(ctx, &squad.Usage{ExecutionID: e.ID, TaskID: task.ID, TokensIn: 7, CostUSD: 2}); err != nil {
				return err
			}
			return tx.AddSandboxCost(ctx, w.Sandbox.ID, 3)
		})
		write(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.UpdateExecution(ctx, &e), tx.UpdateTask(ctx, &task))
		})
		gotE, err := s.Execution(t.Context(), e.ID)
		if err != nil || gotE.TokensIn != w.Execution.TokensIn+7 || gotE.SandboxCostUSD != w.Execution.SandboxCostUSD+3 {
			t.Errorf("%+v, %v", gotE, err)
		}
		gotT, err := s.Task(t.Context(), task.ID)
		if err != nil || gotT.CostUSD != w.Task.CostUSD+5 {
			t.Errorf("cost %v, want %v, %v", gotT.CostUSD, w.Task.CostUSD+5, err)
		}
	})
}

func TestIdempotent_OnceForAKey(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		var mu sync.Mutex
		made, replays := map[string]int{}, 0
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				err := s.Tx(t.Context(), func(tx *store.Tx) error {
					answer, replayed, err := tx.Idempotent(t.Context(), "user:1/k", "same", func() ([]byte, error) {
						u := squad.User{Name: fmt.Sprint("u", i)}
						return []byte(u.Name), tx.CreateUser(t.Context(), &u)
					})
					mu.Lock()
					defer mu.Unlock()
					made[string(answer)]++
					if replayed {
						replays++
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		users, err := s.Users(t.Context(), store.UserFilter{})
		if err != nil || len(users) != 1 || len(made) != 1 || replays != 19 {
			t.Fatalf("%d users, answers %v, %d replays, %v", len(users), made, replays, err)
		}
		err = s.Tx(t.Context(), func(tx *store.Tx) error {
			_, _, err := tx.Idempotent(t.Context(), "user:1/k", "other", nil)
			return err
		})
		if squad.CodeOf(err) != squad.CodeRule {
			t.Fatalf("other request under the same key: %v", err)
		}
	})
}

func TestSeeWebhook_FirstTimeOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		for i, want := range []bool{true, false} {
			write(t, s, func(ctx context.Context, tx *store.Tx) error {
				if first, err := tx.SeeWebhook(ctx, "github", "d1"); err != nil || first != want {
					t.Errorf("delivery %d: %v, %v", i, first, err)
				}
				return nil
			})
		}
		write(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.ForgetOnce(ctx, tx.Now.Add(time.Hour)) })
		write(t, s, func(ctx context.Context, tx *store.Tx) error {
			first, err := tx.SeeWebhook(ctx, "github", "d1")
			if !first {
				t.Error("not forgotten")
			}
			return err
		})
	})
}

func TestLease_FenceGrowsWhenItChangesHands(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		write(t, s, func(ctx context.Context, tx *store.Tx) error {
			a, ok, err := tx.AcquireLease(ctx, "merge", "a", time.Hour)
			if err != nil || !ok || a.Fence != 1 {
				t.Fatalf("%+v %v %v", a, ok, err)
			}
			if again, ok, err := tx.AcquireLease(ctx, "merge", "a", time.Hour); err != nil || !ok || again.Fence != 1 {
				t.Errorf("again: %+v %v %v", again, ok, err)
			}
			if held, ok, err := tx.AcquireLease(ctx, "merge", "b", time.Hour); err != nil || ok || held.Owner != "a" {
				t.Errorf("taken from its holder: %+v %v %v", held, ok, err)
			}
			if err := tx.CheckLease(ctx, a); err != nil {
				t.Error(err)
			}
			if err := tx.RenewLease(ctx, &a, -time.Second); err != nil { // runs out
				t.Error(err)
			}
			b, ok, err := tx.AcquireLease(ctx, "merge", "b", time.Hour)
			if err != nil || !ok || b.Fence != 2 {
				t.Errorf("%+v %v %v", b, ok, err)
			}
			for name, err := range map[string]error{"check": tx.CheckLease(ctx, a), "renew": tx.RenewLease(ctx, &a, time.Hour)} {
				if squad.CodeOf(err) != squad.CodeStale {
					t.Errorf("%s of a lost lease: %v", name, err)
				}
			}
			if err := errors.Join(tx.ReleaseLease(ctx, a), tx.CheckLease(ctx, b), tx.ReleaseLease(ctx, b)); err != nil {
				t.Error(err)
			}
			c, ok, err := tx.AcquireLease(ctx, "merge", "c", time.Hour)
			if err != nil || !ok || c.Fence != 3 {
				t.Errorf("%+v %v %v", c, ok, err)
			}
			return nil
		})
	})
}
