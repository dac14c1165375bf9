package app

import (
	"context"
	"errors"
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
	err := a.store.Tx(ctx, func(tx *store.Tx) error {
		expired, err := tx.APITokens(ctx, store.APITokenFilter{ExpiredBefore: tx.Now, Limit: 1000})
		if err != nil {
			return err
		}
		for _, t := range expired {
			if err := tx.DeleteAPIToken(ctx, t.ID); err != nil {
				return err
			}
		}
		return tx.ForgetOnce(ctx, tx.Now.Add(-keepAnswers))
	})
	return errors.Join(err, a.prune(ctx))
}

// keepEvents is how many of the newest events stay whatever their age, so that a
// page that was open over the holidays still resumes.
const keepEvents = 100_000

// prune drops ended flows and events past the retention. Events of executions go to
// the archive first, from where the same addresses serve them.
func (a *App) prune(ctx context.Context) error {
	if a.cfg.Retention <= 0 {
		return nil
	}
	now, err := a.store.Now(ctx)
	if err != nil {
		return err
	}
	before := now.Add(-a.cfg.Retention)
	if err := a.events.Prune(ctx, before, keepEvents); err != nil {
		return err
	}
	return a.store.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.DeleteFlowsBefore(ctx, before)
		return err
	})
}
