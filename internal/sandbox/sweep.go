package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/store"
)

// Report is what a sweep found and did.
type Report struct {
	Seen     int // sandboxes of ours that the provider has
	Lost     int // rows whose sandbox was gone
	Orphans  int // sandboxes without a live row, destroyed
	Stale    int // sandboxes past their age, destroyed
	Pruned   int64
	Extended int
}

// sweepAll sweeps every provider, and prunes old rows.
func (s *Service) sweepAll(ctx context.Context) {
	for name, p := range s.providers {
		if err := s.dropLost(ctx, p); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "look for lost nodes", "provider", name, "error", err)
		}
		report, err := s.Sweep(ctx, name)
		switch {
		case ctx.Err() != nil:
			return
		case squad.CodeOf(err) == squad.CodeStale:
			s.log.DebugContext(ctx, "sweep is another node's", "provider", name)
		case err != nil:
			s.log.WarnContext(ctx, "sweep sandboxes", "provider", name, "error", err)
		case report.Lost+report.Orphans+report.Stale > 0:
			s.log.InfoContext(ctx, "swept sandboxes", "provider", name, "lost", report.Lost, "orphans", report.Orphans, "stale", report.Stale)
		}
	}
}

// sweep is one pass over one provider under its lease.
type sweep struct {
	*Service
	p     *provider
	lease squad.Lease
	began time.Time
	Report
}

// Sweep compares what a provider has with what the rows say, by one batched
// list, and makes them agree; it also books cost, extends the time of what is in
// use, ends what is stale and prunes old rows. Only the holder of the provider's
// lease acts; others get [squad.CodeStale].
func (s *Service) Sweep(ctx context.Context, providerName string) (Report, error) {
	p, err := s.provider(providerName)
	if err != nil {
		return Report{}, err
	}
	w := &sweep{Service: s, p: p, began: time.Now()}
	if err := w.take(ctx); err != nil {
		return w.Report, err
	}
	// Rows first, then the list, then rows again: a sandbox made meanwhile is in
	// neither of the comparisons that could condemn it.
	rows, err := s.store.Sandboxes(ctx, store.SandboxFilter{Provider: p.name, Node: p.Node, Statuses: alive})
	if err != nil {
		return w.Report, err
	}
	infos, err := w.list(ctx)
	if err != nil {
		return w.Report, translate(err, p.name, "list sandboxes")
	}
	var errs []error
	for _, row := range rows {
		errs = append(errs, w.observe(ctx, row, infos))
	}
	for _, info := range infos {
		errs = append(errs, w.orphan(ctx, info))
	}
	errs = append(errs, w.finish(ctx), w.sample(ctx))
	return w.Report, errors.Join(errs...)
}

func (w *sweep) list(ctx context.Context) (map[string]e2b.SandboxInfo, error) {
	label := map[string]string{LabelInstall: w.cfg.Installation}
	if w.p.Node != "" {
		label[LabelNode] = w.p.Node
	}
	infos := map[string]e2b.SandboxInfo{}
	err := w.p.call(ctx, func(ctx context.Context) error {
		clear(infos)
		for info, err := range w.p.Client.List(ctx, e2b.ListOptions{Metadata: label, States: []e2b.State{e2b.StateRunning, e2b.StatePaused}}) {
			if err != nil {
				return err
			}
			infos[info.ID] = info
		}
		return nil
	})
	w.Seen = len(infos)
	return infos, err
}

// observe brings one row to what the provider says.
func (w *sweep) observe(ctx context.Context, row squad.Sandbox, infos map[string]e2b.SandboxInfo) error {
	if row.Status == squad.SandboxCreated {
		return w.unfinished(ctx, row)
	}
	info, there := infos[row.E2BID]
	if !there {
		return w.missing(ctx, row)
	}
	if w.stale(ctx, row) {
		w.Stale++
		w.metrics.reaped.WithLabelValues(w.p.name, "stale").Inc()
		return w.destroy(ctx, squad.System(), row, "")
	}
	if w.unchanged(row, info) {
		return nil
	}
	extend := false
	err := w.fenced(ctx, func(tx *store.Tx) error {
		r, err := tx.Sandbox(ctx, row.ID)
		if err != nil || r.Status.Final() || r.Status == squad.SandboxCreated {
			return err
		}
		if info.CPUCount > 0 && info.MemoryMB > 0 {
			r.CPU, r.MemoryMB = float64(info.CPUCount), info.MemoryMB
		}
		if err := w.charge(ctx, tx, &r); err != nil {
			return err
		}
		before := r.Status
		// A change of state that a verb made after the list began is newer.
		if r.Status == row.Status && r.LastUsedAt.Equal(row.LastUsedAt) {
			r.Status = squad.SandboxRunning
			if info.State == e2b.StatePaused {
				r.Status = squad.SandboxPaused
			}
		}
		r.ExpiresAt = info.EndAt
		if err := tx.UpdateSandbox(ctx, &r); err != nil {
			return err
		}
		if r.Status != before {
			return w.announce(ctx, tx, squad.EventSandboxStatus, r)
		}
		extend = w.inUse(ctx, tx, r) && info.State == e2b.StateRunning && time.Until(info.EndAt) < w.p.Lifetime/2
		return nil
	})
	if err != nil || !extend {
		return err
	}
	// A failure is no reason to end the pass: there is time for another.
	if err := w.p.once(ctx, func(ctx context.Context) error { return w.p.Client.SetTimeout(ctx, row.E2BID, w.p.Lifetime) }); err != nil {
		w.log.WarnContext(ctx, "extend sandbox", "sandbox_id", row.ID, "error", err)
		return nil
	}
	w.Extended++
	return nil
}

// unchanged says that there is nothing to write about a sandbox: hundreds of
// free ones are looked at twice a minute.
func (w *sweep) unchanged(row squad.Sandbox, info e2b.SandboxInfo) bool {
	state := squad.SandboxRunning
	if info.State == e2b.StatePaused {
		state = squad.SandboxPaused
	}
	return row.Status == state && w.p.rate(row) == 0 && float64(info.CPUCount) == row.CPU && info.MemoryMB == row.MemoryMB &&
		row.ExpiresAt.Sub(info.EndAt).Abs() < time.Second && (state == squad.SandboxPaused || time.Until(info.EndAt) > w.p.Lifetime/2)
}

func (w *sweep) inUse(ctx context.Context, tx *store.Tx, row squad.Sandbox) bool {
	return row.Pooled || w.busy(ctx, tx, row) || time.Since(row.LastUsedAt) < w.p.Lifetime
}

// stale says whether a sandbox has outlived its use: too old and held by no
// execution that goes on, or paused and not wanted for too long, whoever holds
// it (its work is on its branch).
func (w *sweep) stale(ctx context.Context, row squad.Sandbox) bool {
	if time.Since(row.CreatedAt) < w.cfg.MaxAge {
		return false
	}
	if row.Status == squad.SandboxPaused && time.Since(row.LastUsedAt) > w.cfg.MaxAge || row.ExecutionID == "" {
		return true
	}
	e, err := w.store.Execution(ctx, row.ExecutionID)
	return err == nil && e.Status.Final() || squad.CodeOf(err) == squad.CodeNotFound
}

// missing confirms that a sandbox is gone before it says so: the list may be
// older than the sandbox's place in it.
func (w *sweep) missing(ctx context.Context, row squad.Sandbox) error {
	var err error
	err = w.p.call(ctx, func(ctx context.Context) error {
		_, err = w.p.Client.Get(ctx, row.E2BID)
		return err
	})
	if !errors.Is(err, e2b.ErrSandboxGone) {
		return translate(err, w.p.name, "get sandbox")
	}
	return w.lose(ctx, row.ID, "was killed or reached the end of its time", "lost")
}

// young says whether what began then may still be under way: within the grace, and
// with a provider of our own, where its maker would be this process, since its start.
func (w *sweep) young(at time.Time) bool {
	if w.p.Own && at.Before(w.Service.began) {
		return false
	}
	return w.began.Sub(at) < w.cfg.Grace
}

// unfinished ends a row whose making was interrupted, once it is too old to be
// under way.
func (w *sweep) unfinished(ctx context.Context, row squad.Sandbox) error {
	if w.young(row.CreatedAt) || w.isMaking(row.ID) {
		return nil
	}
	return w.lose(ctx, row.ID, interrupted, "unfinished")
}

func (w *sweep) lose(ctx context.Context, id, cause, reason string) error {
	var lost squad.Sandbox
	var changed bool
	err := w.fenced(ctx, func(tx *store.Tx) (err error) {
		lost, changed, err = w.end(ctx, tx, id, cause)
		return err
	})
	if err != nil || !changed {
		return err
	}
	w.Lost++
	w.metrics.reaped.WithLabelValues(w.p.name, reason).Inc()
	if w.cfg.OnLost != nil {
		w.cfg.OnLost(ctx, lost)
	}
	return nil
}

// orphan destroys a sandbox of ours that no live row owns. That a row is over
// or unknown never changes, so a late answer does no harm.
func (w *sweep) orphan(ctx context.Context, info e2b.SandboxInfo) error {
	row, err := w.store.SandboxByE2BID(ctx, info.ID)
	if err == nil && !row.Status.Final() {
		return nil
	}
	if err != nil {
		if squad.CodeOf(err) != squad.CodeNotFound {
			return err
		}
		// Not written down yet? Its row is under way, or a fork's is.
		if w.young(info.StartedAt) || w.isMaking(info.Metadata[LabelSandbox]) {
			return nil
		}
		row, err := w.store.Sandbox(ctx, info.Metadata[LabelSandbox])
		if err == nil && row.Status == squad.SandboxCreated && w.young(row.CreatedAt) {
			return nil
		}
	}
	if err := w.fenced(ctx, func(*store.Tx) error { return nil }); err != nil {
		return err
	}
	var ran bool
	err = w.p.call(ctx, func(ctx context.Context) (err error) {
		ran, err = w.p.Client.Kill(ctx, info.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("destroy orphan %s: %w", info.ID, err)
	}
	w.Orphans++
	w.metrics.reaped.WithLabelValues(w.p.name, "orphan").Inc()
	if !ran {
		return nil
	}
	return w.fenced(ctx, func(tx *store.Tx) error { return w.found(ctx, tx, info) })
}

// found writes down an orphan that was destroyed, so that people hear of it: on the
// row that was over already, or on one of nobody. One whose end was just being
// carried out is no news.
func (w *sweep) found(ctx context.Context, tx *store.Tx, info e2b.SandboxInfo) error {
	row, err := tx.SandboxByE2BID(ctx, info.ID)
	if err == nil {
		if w.young(row.TerminatedAt) {
			return nil
		}
		row.Error = "an orphan: it still ran after its end, and was destroyed"
		err = tx.UpdateSandbox(ctx, &row)
	} else if squad.CodeOf(err) == squad.CodeNotFound {
		row = squad.Sandbox{
			Provider: w.p.name, Node: w.p.Node, E2BID: info.ID, Template: cmp.Or(info.Alias, info.TemplateID), Status: squad.SandboxError,
			Error: "an orphan: it ran at its provider and nobody here owned it; it was destroyed",
			CPU:   float64(info.CPUCount), MemoryMB: info.MemoryMB, CreatedAt: info.StartedAt,
		}
		err = tx.CreateSandbox(ctx, &row)
	}
	if err != nil {
		return err
	}
	return w.announce(ctx, tx, squad.EventSandboxTerminated, row)
}

// finish notes until when cost is booked, counts, and prunes.
func (w *sweep) finish(ctx context.Context) error {
	counts := map[squad.SandboxStatus]int{}
	err := w.fenced(ctx, func(tx *store.Tx) error {
		rows, err := tx.Sandboxes(ctx, store.SandboxFilter{Provider: w.p.name, Node: w.p.Node, Statuses: alive})
		if err != nil {
			return err
		}
		clear(counts)
		for _, r := range rows {
			counts[r.Status]++
		}
		if w.Pruned, err = tx.PruneSandboxes(ctx, tx.Now.Add(-w.cfg.Retention)); err != nil {
			return err
		}
		return tx.SetSetting(ctx, bookedKey(w.p.name, w.p.Node), w.began.UTC().Format(time.RFC3339Nano))
	})
	for _, status := range alive {
		w.metrics.live.WithLabelValues(w.p.name, string(status)).Set(float64(counts[status]))
	}
	return err
}
