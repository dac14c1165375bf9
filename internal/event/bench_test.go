package event_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// From Append to each of 1,000 subscribers, at 1,000 events a second.
func BenchmarkAppendToSubscribers1000(b *testing.B) {
	for _, dialect := range []string{store.SQLite, store.Postgres} {
		b.Run(dialect, func(b *testing.B) {
			l := newLog(b, open(b, freshURL(b, dialect)))
			ctx, cancel := context.WithCancel(b.Context())
			var mu sync.Mutex
			var times []time.Duration
			var readers sync.WaitGroup
			for range 1000 {
				readers.Go(func() {
					mine := listen(ctx, b, l)
					mu.Lock()
					defer mu.Unlock()
					times = append(times, mine...)
				})
			}
			for l.Stats().Subscribers < 1000 {
				time.Sleep(time.Millisecond)
			}
			start, n := time.Now(), 0
			for b.Loop() {
				// Paced, and by agents that do not wait for each other.
				if ahead := time.Duration(n)*time.Millisecond - time.Since(start); ahead > 0 {
					time.Sleep(ahead)
				}
				n++
				go func() {
					now := time.Now().UTC()
					if err := l.Append(ctx, squad.Event{Type: squad.EventLog, At: now, Payload: []byte(`{"text":"x"}`)}); err != nil {
						b.Error(err)
					}
				}()
			}
			for l.Stats().Delivered < int64(n)*1000 {
				time.Sleep(time.Millisecond)
			}
			b.StopTimer()
			took := time.Since(start)
			cancel()
			readers.Wait()
			slices.Sort(times)
			at := func(p float64) float64 { return float64(times[int(p*float64(len(times)-1))].Microseconds()) / 1000 }
			b.ReportMetric(at(0.50), "p50-ms")
			b.ReportMetric(at(0.99), "p99-ms")
			b.ReportMetric(float64(n)/took.Seconds(), "events/s")
		})
	}
}

// listen measures how old each event is when it arrives.
func listen(ctx context.Context, b *testing.B, l *event.Log) []time.Duration {
	var times []time.Duration
	for batch, err := range l.Batches(ctx, store.EventFilter{}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				b.Error(err)
			}
			break
		}
		now := time.Now()
		for _, e := range batch {
			times = append(times, now.Sub(e.At))
		}
	}
	return times
}
