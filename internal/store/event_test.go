package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// Many writers, some of which give up: numbers have no gap, each transaction's
// events stand together, and a reader that sees a number has seen all before it.
func TestAppend_GaplessUnderConcurrency(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		var bell atomic.Int64
		s.OnCommit(func(last int64) { bell.Store(max(bell.Load(), last)) })
		done := make(chan struct{})
		var reader sync.WaitGroup
		reader.Go(func() { watchOrder(t, s, done) })
		var writers sync.WaitGroup
		giveUp := errors.New("give up")
		const each, n = 40, 8
		for w := range n {
			writers.Go(func() {
				for i := range each {
					err := s.Tx(t.Context(), func(tx *store.Tx) error {
						for range 3 {
							e := squad.Event{Type: squad.EventLog, TaskID: fmt.Sprint(w), ExecutionID: fmt.Sprint(w, "/", i)}
							if err := tx.Append(t.Context(), e); err != nil {
								return err
							}
						}
						if i%4 == 3 {
							return giveUp
						}
						return nil
					})
					if err != nil && !errors.Is(err, giveUp) {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		close(done)
		reader.Wait()
		const want = n * each * 3 / 4 * 3
		all, err := s.Events(t.Context(), store.EventFilter{Limit: 5000})
		if err != nil || len(all) != want || bell.Load() != want {
			t.Fatalf("%d events, bell %d, want %d: %v", len(all), bell.Load(), want, err)
		}
		for i, e := range all {
			if e.Seq != int64(i+1) || e.ExecutionID != all[i/3*3].ExecutionID {
				t.Fatalf("event %d: number %d of %s", i, e.Seq, e.ExecutionID)
			}
		}
	})
}

func watchOrder(t *testing.T, s *store.Store, done <-chan struct{}) {
	var cursor int64
	for {
		es, err := s.Events(context.WithoutCancel(t.Context()), store.EventFilter{After: cursor})
		if err != nil {
			t.Error(err)
			return
		}
		for _, e := range es {
			if e.Seq != cursor+1 {
				t.Errorf("after %d comes %d", cursor, e.Seq)
				return
			}
			cursor = e.Seq
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestTx_OneWriterAtATimeSeesTheOther(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		w := newWorld()
		write(t, s, w.create)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					err := s.Tx(t.Context(), func(tx *store.Tx) error { // read, decide, write
						task, err := tx.Task(t.Context(), w.Task.ID)
						if err != nil {
							return err
						}
						task.Position++
						return tx.UpdateTask(t.Context(), &task)
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got, err := s.Task(t.Context(), w.Task.ID); err != nil || got.Position != w.Task.Position+40 || got.Version != 41 {
			t.Fatalf("position %v, version %d, %v", got.Position, got.Version, err)
		}
	})
}
