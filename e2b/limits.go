package e2b

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// Limits is what a server has told about the limits of the account, by the way
// of its answers so far. E2B has no call that lists them: each field is zero
// until an answer named it.
type Limits struct {
	// Running is how many sandboxes of the account ran when they were last listed.
	Running int
	// Concurrent is the most sandboxes at once. Servers name it when they refuse
	// one more.
	Concurrent int
	// Lifetime is the longest time that a sandbox may be given. Servers name it
	// when they refuse a longer one.
	Lifetime time.Duration
	// Requests is how many requests are allowed in a window, Remaining how many
	// are left in this one, and Reset how long it lasts.
	Requests, Remaining int
	Reset               time.Duration
}

// Limits returns what the server has told so far. It makes no request; one that
// makes the server tell what it can is [Client.Check].
func (c *Client) Limits() Limits {
	c.told.mu.Lock()
	defer c.told.mu.Unlock()
	return c.told.Limits
}

// told collects what answers say about limits.
type told struct {
	mu sync.Mutex
	Limits
}

var (
	concurrentLimit = regexp.MustCompile(`(?i)maximum number of concurrent [a-z0-9 ]*sandboxes \((\d{1,9})\)`)
	lifetimeLimit   = regexp.MustCompile(`(?i)timeout cannot be greater than (\d{1,6}) hours`)
)

func (t *told) note(status int, h http.Header, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	number(h, &t.Running, "X-Total-Running")
	if number(h, &t.Requests, "RateLimit-Limit", "X-RateLimit-Limit") {
		number(h, &t.Remaining, "RateLimit-Remaining", "X-RateLimit-Remaining")
		var seconds int
		if number(h, &seconds, "RateLimit-Reset", "X-RateLimit-Reset") {
			t.Reset = window(seconds)
		}
	}
	switch status {
	case http.StatusTooManyRequests:
		if m := concurrentLimit.FindSubmatch(body); m != nil {
			t.Concurrent, _ = strconv.Atoi(string(m[1])) // digits only
		}
	case http.StatusBadRequest:
		if m := lifetimeLimit.FindSubmatch(body); m != nil {
			hours, _ := strconv.Atoi(string(m[1]))
			t.Lifetime = time.Duration(hours) * time.Hour
		}
	}
}

// number reads the first of the headers that is there and is a number.
func number(h http.Header, to *int, names ...string) bool {
	for _, name := range names {
		if n, err := strconv.Atoi(h.Get(name)); err == nil && n >= 0 {
			*to = n
			return true
		}
	}
	return false
}

// window reads a reset, which some servers give as a time and some as seconds
// from now.
func window(seconds int) time.Duration {
	if at := time.Unix(int64(seconds), 0); at.Year() > 2000 {
		return max(0, time.Until(at))
	}
	return time.Duration(seconds) * time.Second
}
