package e2bserver

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	squad "agentsquad"
)

// sampleEvery is the step between samples.
const sampleEvery = 5 * time.Second

// sampleAll takes a sample of each running sandbox again and again until ctx ends.
func (s *Server) sampleAll(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limit := make(chan struct{}, 4)
		var wg sync.WaitGroup
		for _, b := range s.all(func(r *record) bool { return r.State == running && !r.Build }) {
			limit <- struct{}{}
			wg.Go(func() {
				defer func() { <-limit }()
				s.sample(ctx, b)
			})
		}
		wg.Wait()
	}
}

// sample adds one measurement. A sandbox that cannot be measured has a gap.
func (s *Server) sample(ctx context.Context, b *box) {
	ctx, cancel := context.WithTimeout(ctx, sampleEvery)
	defer cancel()
	u, err := b.machine.Usage(ctx)
	if err != nil {
		s.log.DebugContext(ctx, "sandbox not measured", "sandbox_id", b.id, "error", err)
		return
	}
	if u.At.IsZero() {
		u.At = s.cfg.Now()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	pct := 0.0
	if gap := u.At.Sub(b.last.At); !b.last.At.IsZero() && gap > 0 && u.CPUTime >= b.last.CPUTime {
		pct = 100 * float64(u.CPUTime-b.last.CPUTime) / float64(gap) / float64(max(b.rec.CPU, 1))
	}
	b.last = u
	b.samples.add(metric{
		Timestamp: u.At.UTC(), TimestampUnix: u.At.Unix(), CPUCount: b.rec.CPU, CPUUsedPct: float64(int(pct*100)) / 100,
		MemUsed: u.Memory, MemTotal: b.rec.MemoryMB << 20, MemCache: u.Cache, DiskUsed: u.DiskUsed, DiskTotal: b.rec.DiskMB << 20,
	})
}

// metrics handles GET /sandboxes/{id}/metrics.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request, owner string) error {
	b, err := s.own(owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	start, err1 := unixSeconds(r.URL.Query().Get("start"), 0)
	end, err2 := unixSeconds(r.URL.Query().Get("end"), 1<<62)
	if err1 != nil || err2 != nil || start > end {
		return squad.Invalid("start", "start and end must be unix seconds, start before end")
	}
	out := []metric{}
	for _, m := range s.samples(r.Context(), b) {
		if m.TimestampUnix >= start && m.TimestampUnix <= end {
			out = append(out, m)
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// samples returns what was measured, with a first sample taken on demand.
func (s *Server) samples(ctx context.Context, b *box) []metric {
	b.mu.Lock()
	empty := len(b.samples.values) == 0 && b.rec.State == running
	b.mu.Unlock()
	if empty {
		s.sample(ctx, b)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.samples.all()
}

// manyMetrics handles GET /sandboxes/metrics: the newest sample of each.
func (s *Server) manyMetrics(w http.ResponseWriter, r *http.Request, owner string) error {
	ids := map[string]bool{}
	for _, part := range r.URL.Query()["sandbox_ids"] {
		for id := range strings.SplitSeq(part, ",") {
			if ids[id] {
				return squad.Invalid("sandbox_ids", "sandbox_ids names %q twice", id)
			}
			ids[id] = true
		}
	}
	if len(ids) == 0 || len(ids) > maxPage {
		return squad.Invalid("sandbox_ids", "sandbox_ids must name 1 to %d sandboxes", maxPage)
	}
	out := map[string]metric{}
	for id := range ids {
		b, err := s.own(owner, id)
		if err != nil {
			continue // a sandbox that is gone has no sample
		}
		if all := s.samples(r.Context(), b); len(all) > 0 {
			out[b.id] = all[len(all)-1]
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"sandboxes": out})
	return nil
}

func unixSeconds(text string, fallback int64) (int64, error) {
	if text == "" {
		return fallback, nil
	}
	return strconv.ParseInt(text, 10, 64)
}
