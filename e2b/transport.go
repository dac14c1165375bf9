package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// transport is what the requests of this client go through.
func (c *Client) transport() http.RoundTripper {
	if t := c.cfg.HTTPClient.Transport; t != nil {
		return t
	}
	return http.DefaultTransport
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// envdURL is where the daemon of the sandbox is reached.
func (s *Sandbox) envdURL() string {
	switch {
	case s.client.cfg.SandboxURL != "":
		return s.client.cfg.SandboxURL
	case sharedDomain(s.Domain):
		return "https://sandbox." + s.Domain
	}
	return "https://" + s.Host(EnvdPort)
}

// lifetimeKey carries the lifetime of a process to the transport. Connect would
// take it from the context's deadline, and so kill a process because the caller
// had little time.
type lifetimeKey struct{}

func withLifetime(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, lifetimeKey{}, d)
}

// envdTransport adds what the proxy and the daemon want to see on each request,
// and turns the proxy's own answers into errors before Connect, which expects
// its own kind of answer, loses their text.
type envdTransport struct {
	sb   *Sandbox
	next http.RoundTripper
	rpc  bool
}

func (t envdTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	t.sb.route(req.Header, EnvdPort)
	if t.sb.accessToken != "" {
		req.Header.Set("X-Access-Token", t.sb.accessToken)
	}
	req.Header.Set("User-Agent", t.sb.client.userAgent())
	if life, ok := req.Context().Value(lifetimeKey{}).(time.Duration); ok {
		req.Header.Del("Connect-Timeout-Ms")
		req.Header.Set("Keepalive-Ping-Interval", "50")
		if life > 0 {
			req.Header.Set("Connect-Timeout-Ms", strconv.FormatInt(max(1, life.Milliseconds()), 10))
		}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil || !t.rpc || resp.StatusCode < 400 {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	var wire struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(body, &wire) == nil && wire.Code != "" { // Connect's own words
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	}
	return nil, httpError("call sandbox", resp.StatusCode, resp.Header, body)
}

// route adds the headers by which a shared data plane finds the sandbox.
func (s *Sandbox) route(h http.Header, port int) {
	h.Set("E2b-Sandbox-Id", s.ID)
	h.Set("E2b-Sandbox-Port", strconv.Itoa(port))
}

// envd makes a plain HTTP request to the daemon. The caller closes the body. The
// wait for the answer to a read is bounded; the reading is not, nor is a write.
func (s *Sandbox) envd(ctx context.Context, method, path string, query url.Values, change func(*http.Request)) (*http.Response, error) {
	op := "call sandbox"
	address := s.envdURL() + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if d := s.client.cfg.RequestTimeout; d > 0 && method == http.MethodGet {
		timer := time.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
		defer timer.Stop()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		cancel(nil)
		return nil, &Error{Op: op, Kind: ErrInvalid, Err: err}
	}
	if change != nil {
		change(req)
	}
	plain := &http.Client{Transport: envdTransport{sb: s, next: s.client.transport()}, CheckRedirect: noRedirect}
	resp, err := plain.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, netError(op, err)
	}
	resp.Body = &body{ReadCloser: resp.Body, cancel: cancel}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return nil, httpError(op, resp.StatusCode, resp.Header, text)
	}
	return resp, nil
}

// body ends the context of its request when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// bounded gives a call that is no stream its time.
func (s *Sandbox) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if d := s.client.cfg.RequestTimeout; d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithCancel(ctx)
}
