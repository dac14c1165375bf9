package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// More transactions at once than there are connections, each of which also reads
// outside itself: none waits for ever.
func TestTx_ReadersOutsideDoNotStarve(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				err := s.Tx(ctx, func(tx *store.Tx) error {
					if _, err := s.Users(ctx, store.UserFilter{}); err != nil {
						return err
					}
					return tx.CreateUser(ctx, &squad.User{Name: "u"})
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestTx_WaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := open(t, freshURL(t, store.SQLite))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Tx(t.Context(), func(*store.Tx) error {
		cancel()
		return s.Tx(ctx, func(*store.Tx) error { return nil }) // inside another: would wait for itself
	})
	if err == nil || ctx.Err() == nil {
		t.Fatalf("nested transaction: %v", err)
	}
}
