package api

import (
	"sync"
	"time"

	"agentsquad"
)

// limiter bounds how often something may be tried: by key (an address), and in
// all, so that many addresses together cannot guess either. The zero value is
// not usable; see newLimiter.
type limiter struct {
	perKey, perAll float64 // tries a minute
	now            func() time.Time

	mu   sync.Mutex
	keys map[string]*bucket
	all  bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

// limiterKeys bounds memory: beyond it full buckets are forgotten.
const limiterKeys = 10_000

func newLimiter(perKey, perAll float64, now func() time.Time) *limiter {
	return &limiter{perKey: perKey, perAll: perAll, now: now, keys: map[string]*bucket{}, all: bucket{tokens: perAll, at: now()}}
}

// take uses up one try, or says when the next one is allowed.
func (l *limiter) take(key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b, ok := l.keys[key]
	if !ok {
		if len(l.keys) >= limiterKeys {
			l.forget(now)
		}
		b = &bucket{tokens: l.perKey, at: now}
		l.keys[key] = b
	}
	b.fill(l.perKey, now)
	l.all.fill(l.perAll, now)
	if b.tokens < 1 || l.all.tokens < 1 {
		err := squad.Errorf(squad.CodeQuota, "too many tries; wait a minute")
		err.RetryAfter = time.Minute
		return err
	}
	b.tokens--
	l.all.tokens--
	return nil
}

func (b *bucket) fill(perMinute float64, now time.Time) {
	b.tokens = min(perMinute, b.tokens+now.Sub(b.at).Minutes()*perMinute)
	b.at = now
}

func (l *limiter) forget(now time.Time) {
	for key, b := range l.keys {
		if b.fill(l.perKey, now); b.tokens >= l.perKey {
			delete(l.keys, key)
		}
	}
	if len(l.keys) >= limiterKeys {
		clear(l.keys)
	}
}
