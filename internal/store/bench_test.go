package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// report adds the median and the 99th percentile of the times.
func report(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	at := func(p float64) float64 { return float64(times[int(p*float64(len(times)-1))].Microseconds()) / 1000 }
	b.ReportMetric(at(0.50), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

func eachDialect(b *testing.B, f func(b *testing.B, s *store.Store)) {
	b.Helper()
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		b.Run(dialect, func(b *testing.B) { f(b, open(b, freshURL(b, dialect))) })
	}
}

// The board of a squad with 5,000 tasks, whole.
func BenchmarkBoard5000(b *testing.B) {
	eachDialect(b, func(b *testing.B, s *store.Store) {
		id := seedTasks(b, s, 5000)
		var times []time.Duration
		b.ReportAllocs()
		for b.Loop() {
			t := time.Now()
			got, err := s.Board(b.Context(), store.TaskFilter{SquadID: id})
			if err != nil || len(got) != 5000 {
				b.Fatal(len(got), err)
			}
			times = append(times, time.Since(t))
		}
		report(b, times)
	})
}

// Opening a database that holds 100,000 events.
func BenchmarkOpen100kEvents(b *testing.B) {
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		b.Run(dialect, func(b *testing.B) {
			url := freshURL(b, dialect)
			s := open(b, url)
			write(b, s, func(ctx context.Context, tx *store.Tx) error {
				for range 100_000 {
					if err := tx.Append(ctx, squad.Event{Type: squad.EventLog, TaskID: "t", Payload: []byte(`{"stream":"stdout","text":"some words of output"}`)}); err != nil {
						return err
					}
				}
				return nil
			})
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			var times []time.Duration
			for b.Loop() {
				t := time.Now()
				s, err := store.Open(b.Context(), store.Config{URL: url})
				if err != nil {
					b.Fatal(err)
				}
				if n, err := s.LastSeq(b.Context()); err != nil || n != 100_000 {
					b.Fatal(n, err)
				}
				times = append(times, time.Since(t))
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			report(b, times)
		})
	}
}

// One transaction with one event, acknowledged.
func BenchmarkAppend(b *testing.B) {
	eachDialect(b, func(b *testing.B, s *store.Store) {
		var times []time.Duration
		for b.Loop() {
			t := time.Now()
			err := s.Tx(b.Context(), func(tx *store.Tx) error {
				return tx.Append(b.Context(), squad.Event{Type: squad.EventLog, Payload: []byte(`{}`)})
			})
			if err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(t))
		}
		report(b, times)
	})
}
