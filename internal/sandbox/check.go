package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
)

// isMaking says whether this process is at work on a row.
func (s *Service) isMaking(id string) bool {
	s.mu.Lock()
	m := s.making[id]
	s.mu.Unlock()
	if m == nil {
		return false
	}
	if m.TryLock() {
		m.Unlock()
		return false
	}
	return true
}

// Metrics are the newest samples of a sandbox, oldest first.
func (s *Service) Metrics(ctx context.Context, actor squad.Actor, id string) ([]squad.SandboxSample, error) {
	row, err := s.own(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	samples := []squad.SandboxSample{}
	if row.Status.Final() || row.E2BID == "" {
		return samples, nil
	}
	p, err := s.of(ctx, row)
	if err != nil {
		return nil, err
	}
	var found []e2b.Metric
	err = p.call(ctx, func(ctx context.Context) error {
		found, err = p.Client.Metrics(ctx, row.E2BID, time.Now().Add(-15*time.Minute), time.Time{})
		return err
	})
	for _, m := range found {
		samples = append(samples, squad.SandboxSample{At: m.At, CPUPct: m.CPUUsedPct, MemoryMB: m.MemUsed >> 20, DiskMB: m.DiskUsed >> 20})
	}
	return samples, translate(err, p.name, "get metrics of sandbox")
}

// sample reads the use of all running sandboxes in one call. Providers that do
// not have that call are left without samples.
func (w *sweep) sample(ctx context.Context) error {
	var cpu, memory float64
	var ids []string
	w.mu.Lock()
	for _, sb := range w.handles {
		if sb.Client() == w.p.Client {
			ids = append(ids, sb.ID)
		}
	}
	w.mu.Unlock()
	for part := range slices.Chunk(ids, 100) {
		metrics, err := w.p.Client.MetricsOf(ctx, part)
		if err != nil {
			w.log.DebugContext(ctx, "sample sandboxes", "provider", w.p.name, "error", err)
			return nil
		}
		for _, m := range metrics {
			cpu += m.CPUUsedPct / 100 * float64(max(1, m.CPUCount))
			memory += float64(m.MemUsed)
		}
	}
	w.metrics.cpu.WithLabelValues(w.p.name).Set(cpu)
	w.metrics.memory.WithLabelValues(w.p.name).Set(memory)
	return nil
}

// Check is what the doctor wants to know about each provider: that it answers,
// that it takes our key, and what limits hold.
func (s *Service) Check(ctx context.Context) []squad.Check {
	var checks []squad.Check
	for _, name := range slices.Sorted(maps.Keys(s.providers)) {
		p := s.providers[name]
		check := squad.Check{Name: "sandbox provider " + name, Status: "ok"}
		took, err := p.Client.Check(ctx)
		switch {
		case err == nil:
			check.Detail = fmt.Sprintf("%s answers in %s; default template %s, lifetime %s", p.Client.APIURL(), took.Round(time.Millisecond), p.Template, p.Lifetime)
			if p.Max > 0 {
				check.Detail += fmt.Sprintf(", at most %d sandboxes", p.Max)
			}
			if version := s.envdVersion(ctx, p); version != "" {
				check.Detail += ", envd " + version
			}
		case errors.Is(err, e2b.ErrUnauthorized):
			check.Status, check.Detail = "failed", "the provider refuses our key"
			check.Remedy = "Set E2B_API_KEY to a key of this provider, or unset it to use the local runtime."
		default:
			check.Status, check.Detail = "failed", userMessage(translate(err, name, "reach provider"))
			check.Remedy = "Check E2B_API_URL, E2B_DOMAIN and the network, then run squad doctor again."
		}
		checks = append(checks, check)
	}
	return checks
}

// envdVersion tells the daemon's version of a sandbox that exists; making one
// for the doctor would cost money.
func (s *Service) envdVersion(ctx context.Context, p *provider) string {
	for info, err := range p.Client.List(ctx, e2b.ListOptions{PageSize: 1}) {
		if err != nil {
			return ""
		}
		return info.EnvdVersion
	}
	return ""
}
