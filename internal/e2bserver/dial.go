package e2bserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentsquad/internal/tunnel"
)

// envdPort is the port that stands for envd in the protocol.
const envdPort = 49983

// envdVersion is what SDKs choose features by.
const envdVersion = "0.6.4"

// controlHost is the name under which a sandbox's transport reaches envd as the
// host itself, without a token.
const controlHost = "control"

// How long connections are kept. Envd keeps them longer than we do; servers on
// other ports are strangers, and Node's close after five seconds.
const (
	envdIdle = 90 * time.Second
	portIdle = 4 * time.Second
)

// newTransport makes the HTTP client of one run of a sandbox. Connections are
// streams of its tunnel and are kept for the next request: opening one costs a
// round trip into the sandbox.
func newTransport(b *box, idle time.Duration) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			b.mu.Lock()
			m := b.machine
			b.mu.Unlock()
			h, err := streamFor(address)
			if err != nil {
				return nil, err
			}
			return m.Open(ctx, h)
		},
		// The way inside is ours alone; certificates there are self-signed.
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		DisableCompression:  true,
		MaxIdleConns:        64,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     idle,
		ReadBufferSize:      64 << 10,
		WriteBufferSize:     64 << 10,
	}
}

// streamFor turns the address of a proxied request into the header of a stream.
func streamFor(address string) (tunnel.Header, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return tunnel.Header{}, fmt.Errorf("dial %q: %w", address, err)
	}
	n, err := strconv.Atoi(port)
	switch {
	case err != nil:
		return tunnel.Header{}, fmt.Errorf("dial %q: %w", address, err)
	case host == controlHost:
		return tunnel.Header{Kind: tunnel.KindControl}, nil
	case n == envdPort:
		return tunnel.Header{Kind: tunnel.KindEnvd}, nil
	}
	return tunnel.Header{Kind: tunnel.KindPort, Port: n}, nil
}

// initEnvd tells a fresh or restored envd who it is: token, environment, user.
func (s *Server) initEnvd(ctx context.Context, b *box) error {
	rec := b.view()
	env := rec.Env
	if env == nil {
		env = map[string]string{} // none is not the same as unchanged
	}
	user := rec.User
	if user == "" {
		user = "user"
	}
	body, err := json.Marshal(map[string]any{
		"accessToken": s.seed.envd(rec.ID), "envVars": env, "defaultUser": user, "defaultWorkdir": rec.Workdir,
		"sandboxID": rec.ID, "templateID": rec.Template,
	})
	if err != nil {
		return fmt.Errorf("encode init: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.control(ctx, b, http.MethodPost, "/init", bytes.NewReader(body))
}

// control makes a request to envd as the host.
func (s *Server) control(ctx context.Context, b *box, method, path string, body io.Reader) error {
	run := b.current()
	if run == nil {
		return fmt.Errorf("envd %s: the sandbox is not running", path)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+controlHost+path, body)
	if err != nil {
		return fmt.Errorf("envd %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := run.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("envd %s: %w", path, err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("envd %s: %s: %s", path, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}
