package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// Version of this package, sent in the User-Agent header.
const Version = "1.0.0"

// maxReply bounds an answer of the control plane.
const maxReply = 32 << 20

// Client speaks to one E2B installation. It is safe for concurrent use, starts
// no goroutines of its own and needs no closing.
type Client struct {
	cfg Config
	// paths remembers what the server turned out to know.
	paths *paths
	// told is what the server said about limits.
	told *told
	// upgrades carries requests that change the protocol, which HTTP/2 cannot.
	upgrades http.RoundTripper
}

// paths of verbs that have a newer and an older one.
type paths struct{ create, connect, list known }

// known is which path of a verb a server was seen to answer.
type known struct{ state atomic.Int32 }

const (
	knowsNewer = 1
	knowsOlder = 2
)

// New makes a client. It makes no request; see [Client.Check] for one that
// tells whether the address and the key are good.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, paths: new(paths), told: new(told)}
	c.upgrades = c.transport()
	if t, ok := c.upgrades.(*http.Transport); ok {
		t = t.Clone()
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		t.ForceAttemptHTTP2 = false
		if t.TLSClientConfig != nil {
			t.TLSClientConfig.NextProtos = nil // the clone remembers what it offered
		}
		c.upgrades = t
	}
	return c, nil
}

// WithRetries returns a client that differs in [Config.Retries] only, for
// callers that have a rule of their own.
func (c *Client) WithRetries(n int) *Client {
	copied := *c
	copied.cfg.Retries = max(0, n)
	return &copied
}

// APIURL returns the address of the control plane.
func (c *Client) APIURL() string { return c.cfg.APIURL }

// call is one request to the control plane.
type call struct {
	op     string
	method string
	path   string
	query  url.Values
	body   any // nil sends none
	out    any // nil ignores the answer
	// gone makes a 404 mean that the sandbox is gone.
	gone bool
	// header, if set, gets the answer's header; status its status.
	header *http.Header
	status *int
}

// do makes the call, and repeats it where that is safe.
func (c *Client) do(ctx context.Context, req call) error {
	var payload []byte
	if req.body != nil {
		var err error
		if payload, err = json.Marshal(req.body); err != nil {
			return &Error{Op: req.op, Kind: ErrInvalid, Message: "body cannot be encoded", Err: err}
		}
	}
	for try := 0; ; try++ {
		err := c.once(ctx, req, payload)
		if err == nil || try >= c.cfg.Retries || ctx.Err() != nil {
			return err
		}
		wait, again := retryWait(req.method, try, err)
		if !again {
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// retryWait says whether a call may be repeated and when. A 429 was refused
// before anything happened; a failed dial never left this machine; the rest is
// repeated only where a second time does no more than a first.
func retryWait(method string, try int, err error) (time.Duration, bool) {
	var e *Error
	errors.As(err, &e)
	if e != nil && e.Status == http.StatusTooManyRequests {
		return e.RetryAfter, errors.Is(e, ErrRateLimited) && e.RetryAfter > 0
	}
	base := 200 * time.Millisecond << try
	wait := base/2 + rand.N(base)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return wait, true
	}
	if method != http.MethodGet && method != http.MethodDelete && method != http.MethodPut {
		return 0, false
	}
	if e == nil || e.Status == 0 {
		return wait, true
	}
	switch e.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return max(wait, e.RetryAfter), true
	}
	return 0, false
}

func (c *Client) once(ctx context.Context, req call, payload []byte) error {
	if c.cfg.RequestTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.RequestTimeout)
		defer cancel()
	}
	address := c.cfg.APIURL + req.path
	if len(req.query) > 0 {
		address += "?" + req.query.Encode()
	}
	var body io.Reader
	if payload != nil {
		body = bytes.NewReader(payload)
	}
	r, err := http.NewRequestWithContext(ctx, req.method, address, body)
	if err != nil {
		return &Error{Op: req.op, Kind: ErrInvalid, Err: err}
	}
	c.headers(r.Header)
	if payload != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.cfg.HTTPClient.Do(r)
	if err != nil {
		return netError(req.op, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return netError(req.op, err)
	}
	c.told.note(resp.StatusCode, resp.Header, data)
	return req.answer(resp, data)
}

func (req call) answer(resp *http.Response, data []byte) error {
	if resp.StatusCode >= 400 {
		e := httpError(req.op, resp.StatusCode, resp.Header, data)
		if req.gone && errors.Is(e, ErrNotFound) {
			e.Kind = ErrSandboxGone
		}
		return e
	}
	if req.header != nil {
		*req.header = resp.Header
	}
	if req.status != nil {
		*req.status = resp.StatusCode
	}
	if req.out == nil || len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, req.out); err != nil {
		return &Error{Op: req.op, Status: resp.StatusCode, Message: "answer is not the JSON expected", Err: err}
	}
	return nil
}

func (c *Client) headers(h http.Header) {
	for name, values := range c.cfg.Header {
		h[name] = values
	}
	h.Set("X-API-KEY", c.cfg.APIKey)
	h.Set("User-Agent", c.userAgent())
	h.Set("Accept", "application/json")
}

func (c *Client) userAgent() string {
	ua := "agentsquad-e2b-go/" + Version
	if c.cfg.UserAgent != "" {
		ua = c.cfg.UserAgent + " " + ua
	}
	return ua
}

// newest calls the newest path of a verb, and the older one where the server
// does not know the newest. A 404 may also mean that a thing is missing: until
// the server was seen to know the newest path, the older one is asked too.
func (c *Client) newest(ctx context.Context, verb *known, newer, older call) error {
	if verb.state.Load() == knowsOlder {
		return c.do(ctx, older)
	}
	err := c.do(ctx, newer)
	if !unknownPath(err) {
		if e := (*Error)(nil); err == nil || errors.As(err, &e) && e.Status != 0 {
			verb.state.Store(knowsNewer)
		}
		return err
	}
	if verb.state.Load() == knowsNewer {
		return err
	}
	fallback := c.do(ctx, older)
	if fallback == nil {
		verb.state.Store(knowsOlder)
	}
	if unknownPath(fallback) {
		return err
	}
	return fallback
}

func unknownPath(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed)
}
