package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/sony/gobreaker/v2"

	squad "agentsquad"
	"agentsquad/e2b"
)

// E2B's prices per second, August 2026: by allocation, disk included, paused
// time free.
const (
	E2BPerVCPUSecond = 0.000014
	E2BPerGiBSecond  = 0.0000045
)

// Provider is a place where sandboxes run.
type Provider struct {
	Client *e2b.Client
	// Template is used where neither squad nor request names one. Defaults to base.
	Template string
	// Lifetime is the time given to a sandbox at a time; the sweep extends it while
	// the sandbox is held or used. Defaults to 1 h.
	Lifetime time.Duration
	// PauseAtEnd pauses a sandbox whose lifetime is over instead of killing it.
	PauseAtEnd bool
	// Max is the most sandboxes of ours at once; 0 leaves it to the provider.
	Max int
	// Node is set for a provider that serves this machine only.
	Node string
	// Own says that this process alone makes sandboxes there, and that only one such
	// process lives at a time: what an earlier one left half made is nobody's.
	Own bool
	// Mounts says that the provider takes [Mount]s.
	Mounts bool
	// CPU and MemoryMB are what a sandbox has until the provider tells. Default 2 and 512.
	CPU      float64
	MemoryMB int64
	// PerVCPUSecond and PerGiBSecond are prices in US dollars; 0 is free.
	PerVCPUSecond, PerGiBSecond float64
}

// Retry bounds repetition of failed calls.
type Retry struct {
	Tries    int           // Defaults to 3.
	Min, Max time.Duration // Default to 1 s and 10 s.
}

func (r Retry) withDefaults() Retry {
	if r.Tries <= 0 {
		r.Tries = 3
	}
	if r.Min <= 0 {
		r.Min = time.Second
	}
	if r.Max <= 0 {
		r.Max = 10 * time.Second
	}
	return r
}

type provider struct {
	Provider
	name    string
	from    *e2b.Client // of another node: what its client was made of
	retry   Retry
	breaker *gobreaker.CircuitBreaker[struct{}]
	metrics *metrics
	log     *slog.Logger
}

// breakerRest is how long a provider that keeps failing is left alone.
const breakerRest = 15 * time.Second

func newProvider(name string, p Provider, retry Retry, m *metrics, log *slog.Logger) *provider {
	p.Client = p.Client.WithRetries(0) // one rule for repetition, ours
	if p.Template == "" {
		p.Template = "base"
	}
	if p.Lifetime <= 0 {
		p.Lifetime = time.Hour
	}
	if p.CPU <= 0 {
		p.CPU = 2
	}
	if p.MemoryMB <= 0 {
		p.MemoryMB = 512
	}
	own := &provider{Provider: p, name: name, retry: retry, metrics: m, log: log}
	own.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name: name, MaxRequests: 2, Interval: time.Minute, Timeout: breakerRest,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 6 },
		IsSuccessful: func(err error) bool { return !troubled(err) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			m.breaker.WithLabelValues(name).Set(float64(to))
			log.Warn("provider breaker moved", "provider", name, "from", from.String(), "to", to.String())
		},
	})
	m.breaker.WithLabelValues(name).Set(0)
	return own
}

// once calls the provider through its breaker.
func (p *provider) once(ctx context.Context, f func(context.Context) error) error {
	_, err := p.breaker.Execute(func() (struct{}, error) { return struct{}{}, f(ctx) })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return &squad.Error{
			Code: squad.CodeUnavailable, RetryAfter: breakerRest,
			Message: "sandbox provider " + p.name + " keeps failing and is left alone for a moment", Err: err,
		}
	}
	if err != nil {
		p.metrics.failures.WithLabelValues(p.name, kindOf(err)).Inc()
	}
	return err
}

// call repeats f, which must do no more the second time than the first, while
// its failures are of the passing kind.
func (p *provider) call(ctx context.Context, f func(context.Context) error) error {
	wait := p.waits()
	for try := 1; ; try++ {
		err := p.once(ctx, f)
		if err == nil || try >= p.retry.Tries || !passing(err) {
			return err
		}
		if !p.sleep(ctx, wait, err) {
			return err
		}
	}
}

func (p *provider) waits() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = p.retry.Min, p.retry.Max, 2, 0.5
	b.Reset()
	return b
}

// sleep waits before the next try, longer where the provider asks for it and
// that is not too long. False says that there is no next try.
func (p *provider) sleep(ctx context.Context, wait *backoff.ExponentialBackOff, err error) bool {
	d := wait.NextBackOff()
	var e *e2b.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		if e.RetryAfter > p.retry.Max {
			return false
		}
		d = max(d, e.RetryAfter)
	}
	p.metrics.retries.WithLabelValues(p.name).Inc()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// passing says whether a failure may be over in a moment.
func passing(err error) bool {
	var house *squad.Error
	if errors.As(err, &house) || errors.Is(err, context.Canceled) {
		return false
	}
	return errors.Is(err, e2b.ErrRateLimited) || troubled(err)
}

// troubled says whether a failure is the provider's or the way's to it, not the
// request's.
func troubled(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var e *e2b.Error
	if !errors.As(err, &e) {
		var house *squad.Error
		return !errors.As(err, &house)
	}
	if e.Kind == nil {
		return e.Status == 0 || e.Status >= http.StatusInternalServerError
	}
	return errors.Is(e, e2b.ErrTimeout) || errors.Is(e, e2b.ErrBusy)
}

// ambiguous says whether a create that failed so may have made a sandbox.
func ambiguous(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	var house *squad.Error
	return !errors.As(err, &house) && (troubled(err) || errors.Is(err, context.Canceled))
}
