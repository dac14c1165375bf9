package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"agentsquad/internal/store"
)

// once runs f in one transaction with its audit entry, or, where the caller's
// key was used for the same request before, returns what was answered then.
func once[T any](ctx context.Context, s *Server, key string, request any, action string, f func(tx *store.Tx) (row T, subject string, err error)) (T, error) {
	var out T
	key, print, err := fingerprint(ctx, key, request, action)
	if err != nil {
		return out, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		kept, _, err := tx.Idempotent(ctx, key, print, func() ([]byte, error) {
			row, subject, err := f(tx)
			if err != nil {
				return nil, err
			}
			if err := s.audit(ctx, tx, action, subject, nil); err != nil {
				return nil, err
			}
			return json.Marshal(row)
		})
		if err != nil {
			return err
		}
		return json.Unmarshal(kept, &out)
	})
	return out, err
}

// errNotKept says that no answer is kept for a key yet.
var errNotKept = errors.New("no answer is kept")

// outside is [once] for a create that cannot be part of a transaction. On this
// node the same key waits for the first to end; a crash between the create and
// the note of its answer leaves the key unused.
func outside[T any](ctx context.Context, s *Server, key string, request any, action string, f func() (T, error)) (T, error) {
	if key == "" {
		return f()
	}
	var out T
	key, print, err := fingerprint(ctx, key, request, action)
	if err != nil {
		return out, err
	}
	lock, _ := s.keys.LoadOrStore(key, &sync.Mutex{})
	mu := lock.(*sync.Mutex)
	mu.Lock()
	defer mu.Unlock()
	defer s.keys.Delete(key)
	keep := func(make func() ([]byte, error)) error {
		return s.store.Tx(ctx, func(tx *store.Tx) error {
			kept, _, err := tx.Idempotent(ctx, key, print, make)
			if err != nil {
				return err
			}
			return json.Unmarshal(kept, &out)
		})
	}
	if err := keep(func() ([]byte, error) { return nil, errNotKept }); !errors.Is(err, errNotKept) {
		return out, err
	}
	row, err := f()
	if err != nil {
		return row, err
	}
	return row, keep(func() ([]byte, error) { return json.Marshal(row) })
}

// fingerprint is the key in the caller's own space, and what was asked.
func fingerprint(ctx context.Context, key string, request any, action string) (scoped, print string, err error) {
	raw, err := json.Marshal(request)
	if err != nil {
		return "", "", fmt.Errorf("fingerprint request: %w", err)
	}
	if key != "" {
		key = actorOf(ctx).String() + " " + action + " " + key
	}
	sum := sha256.Sum256(raw)
	return key, hex.EncodeToString(sum[:]), nil
}
