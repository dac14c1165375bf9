package forge

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"sync"
	"time"

	squad "agentsquad"
)

// budget keeps to the limits that forges set. After an answer that says "no more
// until then" nothing is sent with that credential before then: asking again would
// lengthen the ban. It is shared by all clients, which live for one call only.
type budget struct {
	next http.RoundTripper
	now  func() time.Time

	mu    sync.Mutex
	until map[string]time.Time // by host and credential
}

func newBudget(next http.RoundTripper) *budget {
	return &budget{next: next, now: time.Now, until: map[string]time.Time{}}
}

// maxWait bounds how long one answer can silence us.
const maxWait = time.Hour

func (b *budget) RoundTrip(req *http.Request) (*http.Response, error) {
	who := sha256.Sum256([]byte(req.Header.Get("Authorization")))
	key := req.URL.Host + "\x00" + string(who[:])
	if wait := b.wait(key); wait > 0 {
		e := squad.Errorf(squad.CodeQuota, "%s lets us ask again in %s", req.URL.Hostname(), wait.Round(time.Second))
		e.RetryAfter = wait
		return nil, e
	}
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		b.note(key, resp)
	}
	return resp, err
}

func (b *budget) wait(key string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until[key].Sub(b.now())
}

// note reads the limits from an answer: Retry-After of a refusal (a secondary limit
// of GitHub), or a count that has come to its end.
func (b *budget) note(key string, resp *http.Response) {
	wait, h := retryAfter(resp), resp.Header
	if h.Get("X-Ratelimit-Remaining") == "0" {
		if at, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
			wait = max(wait, time.Unix(at, 0).Sub(b.now()))
		}
	}
	if wait <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for k, t := range b.until {
		if t.Before(now) {
			delete(b.until, k)
		}
	}
	b.until[key] = now.Add(min(wait, maxWait))
}

// retryAfter is how long a refusal asks us to wait, 0 where it does not.
func retryAfter(resp *http.Response) time.Duration {
	s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusTooManyRequests {
		return 0
	}
	return time.Duration(s) * time.Second
}
