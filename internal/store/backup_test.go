package store_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

func unzip(t *testing.T, r io.Reader) string {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func zip(t *testing.T, text string) io.Reader {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestBackup_GoesFromAnyToAny(t *testing.T) {
	t.Parallel()
	for _, from := range []string{store.SQLite, store.Postgres} {
		for _, to := range []string{store.SQLite, store.Postgres} {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				s := open(t, freshURL(t, from))
				w := newWorld()
				write(t, s, w.create)
				write(t, s, func(ctx context.Context, tx *store.Tx) error { // a circle of references
					w.Member.SandboxID, w.Task.ExecutionID = w.Sandbox.ID, w.Execution.ID
					if err := tx.UpdateMember(ctx, &w.Member); err != nil {
						return err
					}
					_, err := tx.CreateFlow(ctx, &store.Flow{ID: "f", Name: "n", Version: 1, Queue: "q"})
					if err != nil {
						return err
					}
					return tx.UpdateTask(ctx, &w.Task)
				})
				var file bytes.Buffer
				if err := s.Backup(t.Context(), &file); err != nil {
					t.Fatal(err)
				}
				url := freshURL(t, to)
				if err := store.Restore(t.Context(), store.Config{URL: url}, bytes.NewReader(file.Bytes())); err != nil {
					t.Fatal(err)
				}
				restored := open(t, url)
				w.check(t, restored.Query)
				write(t, restored, func(ctx context.Context, tx *store.Tx) error { // life goes on
					if err := tx.Append(ctx, squad.Event{Type: squad.EventLog}); err != nil {
						return err
					}
					return tx.CreateTask(ctx, &squad.Task{SquadID: w.Squad.ID, Title: "next"})
				})
				if n, err := restored.LastSeq(t.Context()); err != nil || n != 2 {
					t.Fatalf("last event %d, %v", n, err)
				}
				err := store.Restore(t.Context(), store.Config{URL: url}, bytes.NewReader(file.Bytes()))
				if squad.CodeOf(err) != squad.CodeConflict {
					t.Fatalf("restored over a database in use: %v", err)
				}
			})
		}
	}
}

func TestRestore_DamagedFileRestoresNothing(t *testing.T) {
	t.Parallel()
	s := open(t, freshURL(t, store.SQLite))
	w := newWorld()
	write(t, s, w.create)
	var file bytes.Buffer
	if err := s.Backup(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	whole := unzip(t, &file)
	cut := whole[:strings.LastIndex(strings.TrimSpace(whole), "\n")]
	for name, text := range map[string]string{
		"cut off":        cut,
		"missing rows":   strings.Replace(whole, `["colour"`, `{"x":1}`+"\n"+`["colour"`, 1),
		"no backup":      "hello",
		"unknown table":  strings.Replace(whole, `"table":"usage"`, `"table":"usage; DROP TABLE users"`, 1),
		"unknown column": strings.Replace(whole, `"columns":["key"`, `"columns":["key) --"`, 1),
		"newer":          strings.Replace(whole, `"schema":`, `"schema":99`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := freshURL(t, store.SQLite)
			err := store.Restore(t.Context(), store.Config{URL: url}, zip(t, text))
			if c := squad.CodeOf(err); c != squad.CodeInvalid && c != squad.CodeConflict {
				t.Fatalf("restored: %v", err)
			}
			if users, err := open(t, url).Users(t.Context(), store.UserFilter{}); err != nil || len(users) != 0 {
				t.Fatalf("%d users, %v", len(users), err)
			}
		})
	}
}
