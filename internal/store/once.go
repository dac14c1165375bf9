package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
)

// SeeWebhook notes a delivery and says whether it is the first of its name. The
// note commits with whatever the delivery caused.
func (tx *Tx) SeeWebhook(ctx context.Context, source, deliveryID string) (firstTime bool, err error) {
	const note = `INSERT INTO webhooks_seen (source, delivery_id, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	n, err := tx.exec(ctx, note, clean(source), clean(deliveryID), tx.Now.UnixMicro())
	if err != nil {
		return false, fmt.Errorf("note webhook: %w", translate(err, "webhook"))
	}
	return n == 1, nil
}

// UnseeWebhook drops the note of a delivery that could not be handled, so that it
// counts when it is sent again.
func (tx *Tx) UnseeWebhook(ctx context.Context, source, deliveryID string) error {
	if _, err := tx.exec(ctx, `DELETE FROM webhooks_seen WHERE source = $1 AND delivery_id = $2`, clean(source), clean(deliveryID)); err != nil {
		return fmt.Errorf("forget webhook: %w", err)
	}
	return nil
}

// ForgetOnce drops notes of webhooks and idempotency keys older than before.
func (tx *Tx) ForgetOnce(ctx context.Context, before time.Time) error {
	_, err := tx.exec(ctx, `DELETE FROM webhooks_seen WHERE at < $1`, before.UnixMicro())
	if err == nil {
		_, err = tx.exec(ctx, `DELETE FROM idempotency_keys WHERE created_at < $1`, before.UnixMicro())
	}
	if err != nil {
		return fmt.Errorf("forget old keys: %w", err)
	}
	return nil
}

// Idempotent runs make once per key and keeps its answer, in the transaction of
// what make wrote. With the same key and request again it returns the kept
// answer and replayed; with another request it returns CodeRule. The key should
// begin with who asks; request is a fingerprint of what was asked. Without a key
// it just runs make.
func (tx *Tx) Idempotent(ctx context.Context, key, request string, make func() ([]byte, error)) (answer []byte, replayed bool, err error) {
	if key == "" {
		answer, err = make()
		return answer, false, err
	}
	// Claimed first: a second request with the same key waits here for the
	// first to commit, and then finds the answer.
	const claim = `INSERT INTO idempotency_keys (key, request, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	n, err := tx.exec(ctx, claim, clean(key), clean(request), tx.Now.UnixMicro())
	if err != nil {
		return nil, false, fmt.Errorf("claim idempotency key: %w", translate(err, "idempotency key"))
	}
	if n == 0 {
		answer, err = tx.keptAnswer(ctx, key, request)
		return answer, err == nil, err
	}
	if answer, err = make(); err != nil {
		return nil, false, err
	}
	if _, err := tx.exec(ctx, `UPDATE idempotency_keys SET answer = $1 WHERE key = $2`, clean(string(answer)), clean(key)); err != nil {
		return nil, false, fmt.Errorf("keep answer: %w", err)
	}
	return answer, false, nil
}

func (tx *Tx) keptAnswer(ctx context.Context, key, request string) ([]byte, error) {
	var was, answer string
	const find = `SELECT request, COALESCE(answer, '') FROM idempotency_keys WHERE key = $1`
	if err := tx.db.QueryRowContext(ctx, find, clean(key)).Scan(&was, &answer); err != nil {
		return nil, fmt.Errorf("find kept answer: %w", err)
	}
	if was != clean(request) {
		return nil, squad.Errorf(squad.CodeRule, "this idempotency key was used for a different request; use a new one")
	}
	return []byte(answer), nil
}

// Setting reads a value of the small table of settings; CodeNotFound where it
// was never set.
func (q *Query) Setting(ctx context.Context, key string) (string, error) {
	var v string
	err := q.db.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = $1`, clean(key)).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", squad.NotFound("setting", key)
	}
	if err != nil {
		return "", fmt.Errorf("read setting: %w", err)
	}
	return v, nil
}

// SetSetting writes a setting, new or not.
func (tx *Tx) SetSetting(ctx context.Context, key, value string) error {
	const set = `INSERT INTO settings (key, value, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`
	if _, err := tx.exec(ctx, set, clean(key), clean(value), tx.Now.UnixMicro()); err != nil {
		return fmt.Errorf("write setting: %w", translate(err, "setting"))
	}
	return nil
}

// DeleteSetting removes a setting; one that is not there is no error.
func (tx *Tx) DeleteSetting(ctx context.Context, key string) error {
	if _, err := tx.exec(ctx, `DELETE FROM settings WHERE key = $1`, clean(key)); err != nil {
		return fmt.Errorf("delete setting: %w", err)
	}
	return nil
}
