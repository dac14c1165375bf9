package store_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

func unzip(t testing.TB, r io.Reader) string {
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

func zip(t testing.TB, text string) io.Reader {
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

// update writes the backup of a filled database with the newest schema to
// testdata: run it once after adding a migration.
var update = flag.Bool("update", false, "write testdata/schema-N.backup for the newest schema")

// Backups of every schema there ever was, filled, are taken in and brought up to
// date.
func TestRestore_EveryOlderSchema(t *testing.T) {
	t.Parallel()
	known, err := store.MigrateTo(t.Context(), store.Config{URL: freshURL(t, store.SQLite)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		writeFixture(t, known)
	}
	for v := 1; v <= known; v++ {
		for _, dialect := range []string{store.SQLite, store.Postgres} {
			t.Run(fmt.Sprint(dialect, " from ", v), func(t *testing.T) {
				t.Parallel()
				file, err := os.Open(fixture(v))
				if err != nil {
					t.Fatal(err, "(run this test with -update once)")
				}
				defer file.Close()
				url := freshURL(t, dialect)
				if err := store.Restore(t.Context(), store.Config{URL: url}, file); err != nil {
					t.Fatal(err)
				}
				wantOneOfEach(t, open(t, url), known)
			})
		}
	}
}

func fixture(version int) string {
	return filepath.Join("testdata", fmt.Sprintf("schema-%d.backup", version))
}

func writeFixture(t *testing.T, version int) {
	t.Helper()
	s, err := store.OpenAt(t.Context(), store.Config{URL: freshURL(t, store.SQLite)}, version)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write(t, s, newWorld().create)
	file, err := os.Create(fixture(version))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Backup(t.Context(), file), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// wantOneOfEach wants the newest schema, and in it what newWorld made.
func wantOneOfEach(t *testing.T, s *store.Store, version int) {
	t.Helper()
	ctx := t.Context()
	if v, err := s.SchemaVersion(ctx); err != nil || v != version {
		t.Errorf("schema %d, %v", v, err)
	}
	count := func(name string, n int, err error) {
		t.Helper()
		if err != nil || n == 0 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	users, err := s.Users(ctx, store.UserFilter{})
	count("users", len(users), err)
	squads, err := s.Squads(ctx, store.SquadFilter{})
	count("squads", len(squads), err)
	members, err := s.Members(ctx, store.MemberFilter{})
	count("members", len(members), err)
	repositories, err := s.Repositories(ctx, store.RepositoryFilter{})
	count("repositories", len(repositories), err)
	credentials, err := s.Credentials(ctx, store.CredentialFilter{})
	count("credentials", len(credentials), err)
	tasks, err := s.Tasks(ctx, store.TaskFilter{})
	count("tasks", len(tasks), err)
	executions, err := s.Executions(ctx, store.ExecutionFilter{})
	count("executions", len(executions), err)
	sandboxes, err := s.Sandboxes(ctx, store.SandboxFilter{})
	count("sandboxes", len(sandboxes), err)
	tokens, err := s.APITokens(ctx, store.APITokenFilter{})
	count("tokens", len(tokens), err)
	pulls, err := s.PullRequests(ctx, store.PullRequestFilter{})
	count("pull requests", len(pulls), err)
	comments, err := s.ReviewComments(ctx, store.ReviewCommentFilter{})
	count("comments", len(comments), err)
	messages, err := s.Messages(ctx, store.MessageFilter{})
	count("messages", len(messages), err)
	usages, err := s.Usages(ctx, store.UsageFilter{})
	count("usage", len(usages), err)
	audit, err := s.AuditEntries(ctx, store.AuditEntryFilter{})
	count("audit log", len(audit), err)
	git, err := s.GitOperations(ctx, store.GitOperationFilter{})
	count("git operations", len(git), err)
	events, err := s.Events(ctx, store.EventFilter{})
	count("events", len(events), err)
	sealed, err := s.SealedCredential(ctx, credentials[0].ID)
	count("secret", len(sealed), err)
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
