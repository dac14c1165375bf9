package sandbox

import (
	"context"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// rate is the price of a running second of a sandbox.
func (p *provider) rate(row squad.Sandbox) float64 {
	return row.CPU*p.PerVCPUSecond + float64(row.MemoryMB)/1024*p.PerGiBSecond
}

// charge books the running time since it was last booked, in the transaction
// that knows of it, and adds it to row. Paused time is free.
func (s *Service) charge(ctx context.Context, tx *store.Tx, row *squad.Sandbox) error {
	p := s.providers[row.Provider]
	if p == nil || row.Status != squad.SandboxRunning {
		return nil
	}
	s.mu.Lock()
	from := s.charged[row.ID]
	s.mu.Unlock()
	if from.IsZero() {
		from = s.bookedUntil(ctx, tx, row)
	}
	if !tx.Now.After(from) {
		return nil
	}
	usd := p.rate(*row) * tx.Now.Sub(from).Seconds()
	tx.AfterCommit(func() {
		s.chargeFrom(row.ID, tx.Now)
		s.metrics.cost.WithLabelValues(p.name).Add(usd)
	})
	if usd == 0 {
		return nil
	}
	if err := tx.AddSandboxCost(ctx, row.ID, usd); err != nil {
		return err
	}
	row.CostUSD += usd
	return nil
}

// bookedUntil tells, after a restart, until when the cost of a row is booked:
// the last sweep booked all that ran.
func (s *Service) bookedUntil(ctx context.Context, tx *store.Tx, row *squad.Sandbox) time.Time {
	text, err := tx.Setting(ctx, bookedKey(row.Provider, row.Node))
	if err != nil {
		return row.CreatedAt
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Before(row.CreatedAt) {
		return row.CreatedAt
	}
	return at
}

func bookedKey(provider, node string) string { return "sandbox.booked/" + provider + "/" + node }

func (s *Service) chargeFrom(id string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charged[id] = at
}
