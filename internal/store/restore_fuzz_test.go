package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"agentsquad/internal/store"
)

// Whatever a file holds, restoring it ends with a database that opens: with all
// of it, or with nothing.
func FuzzRestore(f *testing.F) {
	s := open(f, freshURL(f, store.SQLite))
	write(f, s, newWorld().create)
	var file bytes.Buffer
	if err := s.Backup(f.Context(), &file); err != nil {
		f.Fatal(err)
	}
	whole := unzip(f, &file)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add("")
	f.Add(`{"format":"agent-squad-backup","version":1,"schema":1}` + "\n" + `{"rows":0}`)
	f.Add(`{"format":"agent-squad-backup","version":1,"schema":1}` + "\n" + `[1,2]` + "\n" + `{"rows":1}`)
	f.Add(`{"format":"agent-squad-backup","version":1,"schema":1}` + "\n" + `{"table":"users","columns":["id"],"kinds":["int"]}` + "\n" + `["x"]`)
	f.Fuzz(func(t *testing.T, text string) {
		url := "sqlite:" + filepath.Join(inMemory(t), "squad.db")
		failed := store.Restore(t.Context(), store.Config{URL: url}, zip(t, text))
		restored := open(t, url)
		users, err := restored.Users(t.Context(), store.UserFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := restored.LastSeq(t.Context()); err != nil {
			t.Fatal(err)
		}
		if failed != nil && len(users) > 0 {
			t.Fatalf("failed (%v), yet %d users are there", failed, len(users))
		}
	})
}

// inMemory is a folder that no disk is asked for, where there is one: a database is
// synced at each commit. Run this target with -fuzzminimizetime 1x: one try takes a
// tenth of a second, and making an input smaller would take all the time there is,
// which the engine then reports as "context deadline exceeded".
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "squad-fuzz-") //nolint:usetesting // TempDir is on disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
