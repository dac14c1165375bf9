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
	"agentsquad/internal/store"
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
		samples = append(samples, sampleOf(m))
	}
	return samples, translate(err, p.name, "get metrics of sandbox")
}

func sampleOf(m e2b.Metric) squad.SandboxSample {
	return squad.SandboxSample{At: m.At, CPUPct: m.CPUUsedPct, MemoryMB: m.MemUsed >> 20, DiskMB: m.DiskUsed >> 20}
}

// sample reads the use of all running sandboxes, a hundred at a time, and notes
// it on their rows. Providers that do not have that call are left without.
func (w *sweep) sample(ctx context.Context) error {
	rows, err := w.store.Sandboxes(ctx, store.SandboxFilter{
		Provider: w.p.name, Node: w.p.Node, Statuses: []squad.SandboxStatus{squad.SandboxRunning},
	})
	if err != nil {
		return err
	}
	var cpu, memory float64
	for part := range slices.Chunk(rows, 100) {
		byID := map[string]squad.Sandbox{}
		for _, row := range part {
			byID[row.E2BID] = row
		}
		metrics, err := w.p.Client.MetricsOf(ctx, slices.Collect(maps.Keys(byID)))
		if err != nil {
			w.log.DebugContext(ctx, "sample sandboxes", "provider", w.p.name, "error", err)
			return nil
		}
		err = w.fenced(ctx, func(tx *store.Tx) error {
			for id, m := range metrics {
				if row := byID[id]; row.ID != "" && m.At.After(row.Use.At) {
					if err := tx.SampleSandbox(ctx, row.ID, sampleOf(m)); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
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

// greet says at the start how the providers are, before the first task finds out.
func (s *Service) greet(ctx context.Context) {
	for _, c := range s.Check(ctx) {
		switch {
		case ctx.Err() != nil:
		case c.Status == "ok":
			s.log.InfoContext(ctx, "provider answers", "check", c.Name, "detail", c.Detail)
		default:
			s.log.WarnContext(ctx, "provider cannot be used", "check", c.Name, "detail", c.Detail, "remedy", c.Remedy)
		}
	}
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
			check.Detail += limitsOf(p.Client.Limits())
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

// limitsOf says in words what the provider has told about its limits.
func limitsOf(l e2b.Limits) (text string) {
	if l.Concurrent > 0 {
		text += fmt.Sprintf(", %d of at most %d sandboxes of the account run", l.Running, l.Concurrent)
	} else if l.Running > 0 {
		text += fmt.Sprintf(", %d sandboxes of the account run", l.Running)
	}
	if l.Lifetime > 0 {
		text += fmt.Sprintf(", each for at most %s", l.Lifetime)
	}
	if l.Requests > 0 {
		text += fmt.Sprintf(", %d of %d requests left for %s", l.Remaining, l.Requests, l.Reset.Round(time.Second))
	}
	return text
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
