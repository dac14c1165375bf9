package store_test

import (
	"context"
	"path/filepath"
	"testing"

	"agentsquad/internal/pgtest"
	"agentsquad/internal/store"
)

// both runs a test on a fresh SQLite and a fresh PostgreSQL database.
func both(t *testing.T, f func(t *testing.T, s *store.Store)) {
	t.Helper()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			f(t, open(t, freshURL(t, dialect)))
		})
	}
}

func freshURL(t testing.TB, dialect string) string {
	t.Helper()
	if dialect == store.Postgres {
		return pgtest.URL(t)
	}
	return "sqlite:" + filepath.Join(t.TempDir(), "squad.db")
}

func open(t testing.TB, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// write runs f in a transaction that must succeed.
func write(t testing.TB, s *store.Store, f func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	if err := s.Tx(t.Context(), func(tx *store.Tx) error { return f(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_SameDatabaseTwice(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := freshURL(t, dialect)
			open(t, url)
			if v, err := open(t, url).SchemaVersion(t.Context()); err != nil || v < 1 {
				t.Fatalf("version %d, %v", v, err)
			}
		})
	}
}
