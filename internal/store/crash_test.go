package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// crashURL makes the test binary write to that database until it is killed.
const crashURL = "SQUAD_TEST_CRASH_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(crashURL); url != "" {
		if err := writeForEver(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForEver commits a user together with its event, and prints the user's
// name once the commit was acknowledged.
func writeForEver(url string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{URL: url})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failed := make(chan error, 4)
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				u := squad.User{Name: fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)}
				err := s.Tx(ctx, func(tx *store.Tx) error {
					return errors.Join(tx.CreateUser(ctx, &u), tx.Append(ctx, squad.Event{Type: "user", MemberID: u.Name}))
				})
				if err != nil {
					failed <- err
					return
				}
				mu.Lock()
				fmt.Println(u.Name)
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

// Killed in the middle of writes and opened again, over and over: what was
// acknowledged is there, row and event together, and the order has no gap.
func TestCrash_NothingAcknowledgedIsLost(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := freshURL(t, dialect)
			var acknowledged []string
			for round := range 4 {
				acknowledged = append(acknowledged, writeAndKill(t, url, 100+50*round)...)
				checkAfterCrash(t, url, acknowledged)
			}
		})
	}
}

// writeAndKill runs a writing process, kills it without warning after so many
// acknowledgements, and returns all that it gave.
func writeAndKill(t *testing.T, url string, after int) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), crashURL+"="+url)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var names []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		names = append(names, lines.Text())
		if len(names) == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // killed
	if len(names) < after {
		t.Fatalf("the writer ended by itself after %d", len(names))
	}
	if last := names[len(names)-1]; strings.Count(last, "-") != 2 {
		names = names[:len(names)-1] // cut off in the middle of a line
	}
	return names
}

func checkAfterCrash(t *testing.T, url string, acknowledged []string) {
	t.Helper()
	s := open(t, url)
	users, err := s.Users(t.Context(), store.UserFilter{})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, u := range users {
		rows[u.Name] = true
	}
	told := map[string]bool{}
	var cursor int64
	for {
		es, err := s.Events(t.Context(), store.EventFilter{After: cursor})
		if err != nil {
			t.Fatal(err)
		}
		if len(es) == 0 {
			break
		}
		for _, e := range es {
			if e.Seq != cursor+1 {
				t.Fatalf("after event %d comes %d", cursor, e.Seq)
			}
			cursor = e.Seq
			told[e.MemberID] = true
		}
	}
	if last, err := s.LastSeq(t.Context()); err != nil || last != cursor {
		t.Fatalf("counter %d, last event %d, %v", last, cursor, err)
	}
	for _, name := range acknowledged {
		if !rows[name] || !told[name] {
			t.Fatalf("%s was acknowledged: row %v, event %v", name, rows[name], told[name])
		}
	}
	if len(rows) != len(told) {
		t.Fatalf("%d rows, %d events: "+strconv.Itoa(len(acknowledged))+" acknowledged", len(rows), len(told))
	}
	if s.Dialect() == store.SQLite {
		var verdict string
		if err := rawDB(t, url).QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
			t.Fatalf("integrity: %s, %v", verdict, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
