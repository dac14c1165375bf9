package event_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/pgtest"
	"agentsquad/internal/store"
)

// cutAll ends every connection to the database, as a restart of it would.
func cutAll(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	if _, err := conn.Exec(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
}

// All connections break, the listening one included: readers on both nodes go on
// where they were.
func TestSubscribe_OutlivesBrokenConnections(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	ctx := bounded(t)
	here, there := newLog(t, open(t, url)), newLog(t, open(t, url))
	type result struct {
		events []squad.Event
		err    error
	}
	results := make(chan result, 2)
	for _, l := range []*event.Log{here, there} {
		go func() {
			events, err := collect(ctx, l, store.EventFilter{}, 60)
			results <- result{events, err}
		}()
	}
	for range 3 {
		// What was asked for while the connections broke may fail: ask again.
		for n := 0; n < 20; {
			if err := here.Append(ctx, squad.Event{Type: squad.EventLog}); err == nil {
				n++
			} else if ctx.Err() != nil {
				t.Fatal(err)
			} else {
				time.Sleep(time.Millisecond)
			}
		}
		cutAll(t, url)
	}
	for range 2 {
		r := <-results
		if r.err != nil || len(r.events) != 60 {
			t.Fatalf("%d events, %v", len(r.events), r.err)
		}
		wantGapless(t, r.events, 1)
	}
}
