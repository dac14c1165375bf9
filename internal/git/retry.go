package git

import (
	"context"
	"math/rand/v2"
	"time"
)

// Retry says how often a call over the network is tried, and how long it waits in
// between: Wait, doubled each time up to MaxWait, each shortened by up to a half.
type Retry struct {
	Attempts int           // default 4
	Wait     time.Duration // default 500 ms
	MaxWait  time.Duration // default 8 s
	// Sleep waits; tests replace it. It returns early when ctx ends.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (p Retry) withDefaults() Retry {
	if p.Attempts == 0 {
		p.Attempts = 4
	}
	if p.Wait == 0 {
		p.Wait = 500 * time.Millisecond
	}
	if p.MaxWait == 0 {
		p.MaxWait = 8 * time.Second
	}
	if p.Sleep == nil {
		p.Sleep = sleep
	}
	return p
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// RunRetry runs a call, again after network errors only, and returns how many
// tries it took. A call with Stdin is tried once: its input cannot be read again.
func (r *Runner) RunRetry(ctx context.Context, c Call) (res Result, attempts int, err error) {
	p := r.cfg.Retry
	if c.Stdin != nil {
		p.Attempts = 1
	}
	attempts, err = p.do(ctx, func() error {
		res, err = r.Run(ctx, c)
		return err
	})
	return res, attempts, err
}

// do tries something, again after network errors only, and returns how many tries it
// took.
func (p Retry) do(ctx context.Context, try func() error) (attempts int, err error) {
	wait := p.Wait
	for attempts = 1; ; attempts++ {
		err = try()
		if err == nil || KindOf(err) != KindNetwork || attempts >= p.Attempts {
			return attempts, err
		}
		if p.Sleep(ctx, wait-time.Duration(rand.Int64N(int64(wait)/2+1))) != nil {
			return attempts, err
		}
		wait = min(2*wait, p.MaxWait)
	}
}
