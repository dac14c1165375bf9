package app

import (
	"context"
	"time"

	"agentsquad/internal/store"
)

// keepAnswers is how long an idempotency key, and the note of a webhook, counts.
const keepAnswers = 48 * time.Hour

// housekeep drops what has had its time: tokens past their end, kept answers, and
// events and flows past the retention. Several nodes may do it; the work is the same.
func (a *App) housekeep(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := a.tidy(ctx); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "housekeeping failed; it is tried again in an hour", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *App) tidy(ctx context.Context) error {
	return a.store.Tx(ctx, func(tx *store.Tx) error {
		expired, err := tx.APITokens(ctx, store.APITokenFilter{ExpiredBefore: tx.Now, Limit: 1000})
		if err != nil {
			return err
		}
		for _, t := range expired {
			if err := tx.DeleteAPIToken(ctx, t.ID); err != nil {
				return err
			}
		}
		if err := tx.ForgetOnce(ctx, tx.Now.Add(-keepAnswers)); err != nil {
			return err
		}
		return a.prune(ctx, tx)
	})
}

// keepEvents is how many of the newest events stay whatever their age, so that a
// page that was open over the holidays still resumes.
const keepEvents = 100_000

// prune drops events and ended flows past the retention.
func (a *App) prune(ctx context.Context, tx *store.Tx) error {
	if a.cfg.Retention <= 0 {
		return nil
	}
	before := tx.Now.Add(-a.cfg.Retention)
	if _, err := tx.DeleteEventsBefore(ctx, before, keepEvents); err != nil {
		return err
	}
	_, err := tx.DeleteFlowsBefore(ctx, before)
	return err
}
