package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsquad"
)

// Config says which server to talk to, and as whom.
type Config struct {
	// URL is the address of the server, for example http://127.0.0.1:7777.
	URL string
	// Token is sent with each request.
	Token string
	// HTTPClient does the requests; nil means one without an overall timeout,
	// since streams have none.
	HTTPClient *http.Client
	// UserAgent names the program; empty means "squad-client".
	UserAgent string
}

// Client talks to one server.
type Client struct {
	base  string
	token string
	agent string
	http  *http.Client
}

// maxAnswer bounds an answer that is read whole.
const maxAnswer = 256 << 20

// New makes a client. It does not connect.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, squad.Invalid("url", "%q is no http or https address", cfg.URL)
	}
	c := &Client{base: strings.TrimRight(cfg.URL, "/"), token: cfg.Token, agent: cfg.UserAgent, http: cfg.HTTPClient}
	if c.agent == "" {
		c.agent = "squad-client"
	}
	if c.http == nil {
		c.http = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	return c, nil
}

// URL is the address of the server.
func (c *Client) URL() string { return c.base }

// FromData finds the server that runs on this machine with the given data
// folder, and its administrator's token.
func FromData(dir string) (Config, error) {
	var server struct{ URL string }
	raw, err := os.ReadFile(filepath.Join(dir, "server.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, squad.Errorf(squad.CodeUnavailable, "no server runs with the data folder %s; start it with `squad up`, or name one with --url and --token", dir)
	}
	if err != nil {
		return Config{}, squad.Wrap(squad.CodeUnavailable, err, "the data folder %s cannot be read", dir)
	}
	if err := json.Unmarshal(raw, &server); err != nil {
		return Config{}, fmt.Errorf("read server.json: %w", err)
	}
	token, err := os.ReadFile(filepath.Join(dir, "admin.token"))
	if err != nil {
		return Config{}, squad.Wrap(squad.CodeUnauthorized, err, "the administrator's token in %s cannot be read", dir)
	}
	return Config{URL: server.URL, Token: strings.TrimSpace(string(token))}, nil
}

// call is one request and where its answer goes.
type call struct {
	method string
	path   string // under /api/v1
	query  url.Values
	body   any    // JSON, or an io.Reader that is sent as it is
	match  string // If-Match
	key    string // Idempotency-Key
	out    any
}

// tries is how often a request that may be repeated is sent.
const tries = 3

func (c *Client) do(ctx context.Context, in call) error {
	var raw []byte
	stream, isStream := in.body.(io.Reader)
	if in.body != nil && !isStream {
		var err error
		if raw, err = json.Marshal(in.body); err != nil {
			return fmt.Errorf("write request: %w", err)
		}
	}
	mayRepeat := !isStream && (in.method == http.MethodGet || in.key != "")
	for try := 1; ; try++ {
		body := stream
		if raw != nil {
			body = bytes.NewReader(raw)
		}
		resp, err := c.send(ctx, in, body)
		if err == nil {
			return c.read(resp, in.out)
		}
		if !mayRepeat || try == tries || ctx.Err() != nil || squad.CodeOf(err) != squad.CodeUnavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * 200 * time.Millisecond):
		}
	}
}

// send does one request; the caller closes the body of the answer.
func (c *Client) send(ctx context.Context, in call, body io.Reader) (*http.Response, error) {
	target := c.base + "/api/v1" + in.path
	if len(in.query) > 0 {
		target += "?" + in.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, in.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	h := req.Header
	h.Set("Authorization", "Bearer "+c.token)
	h.Set("User-Agent", c.agent)
	h.Set("Accept", "application/json")
	if body != nil {
		h.Set("Content-Type", "application/json")
		if _, ok := in.body.(io.Reader); ok {
			h.Set("Content-Type", "application/octet-stream")
		}
	}
	if in.match != "" {
		h.Set("If-Match", in.match)
	}
	if in.key != "" {
		h.Set("Idempotency-Key", in.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, squad.Wrap(squad.CodeUnavailable, err, "the server at %s does not answer", c.base)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, problem(resp)
	}
	return resp, nil
}

func (c *Client) read(resp *http.Response, out any) error {
	defer resp.Body.Close()
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// problem turns a refusal into the error it stands for.
func problem(resp *http.Response) error {
	var p struct {
		Code       squad.Code `json:"code"`
		Detail     string     `json:"detail"`
		Field      string     `json:"field"`
		RetryAfter int        `json:"retry_after"`
		RequestID  string     `json:"request_id"`
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || json.Unmarshal(raw, &p) != nil || p.Code == "" {
		return squad.Errorf(codeOf(resp.StatusCode), "the server answered %s", resp.Status)
	}
	e := &squad.Error{Code: p.Code, Message: p.Detail, Field: p.Field, RetryAfter: time.Duration(p.RetryAfter) * time.Second}
	if p.Code == squad.CodeInternal && p.RequestID != "" {
		e.Message += " (request " + p.RequestID + ")"
	}
	return e
}

func codeOf(status int) squad.Code {
	switch status {
	case http.StatusUnauthorized:
		return squad.CodeUnauthorized
	case http.StatusNotFound:
		return squad.CodeNotFound
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return squad.CodeUnavailable
	case http.StatusTooManyRequests:
		return squad.CodeQuota
	default:
		if status < http.StatusInternalServerError {
			return squad.CodeInvalid
		}
		return squad.CodeInternal
	}
}
