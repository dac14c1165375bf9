package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"agentsquad"
)

// Terminal opens an interactive shell in a sandbox. It ends with ctx.
func (c *Client) Terminal(ctx context.Context, id string, cols, rows int) (squad.Terminal, error) {
	target := fmt.Sprintf("%s/api/v1%s?cols=%d&rows=%d", "ws"+strings.TrimPrefix(c.base, "http"), at("sandboxes", id, "terminal"), cols, rows)
	conn, err := c.dial(ctx, target)
	if err != nil {
		return nil, err
	}
	return &terminal{ctx: ctx, conn: conn}, nil
}

// dial opens a WebSocket.
func (c *Client) dial(ctx context.Context, target string) (*websocket.Conn, error) {
	options := &websocket.DialOptions{
		HTTPClient: c.http, HTTPHeader: http.Header{"Authorization": {"Bearer " + c.token}, "User-Agent": {c.agent}},
	}
	conn, resp, err := websocket.Dial(ctx, target, options) //nolint:bodyclose // after the upgrade the library owns it
	if err != nil {
		if resp != nil && resp.Body != nil {
			defer resp.Body.Close()
		}
		if resp != nil && resp.StatusCode >= http.StatusBadRequest {
			return nil, problem(resp)
		}
		return nil, squad.Wrap(squad.CodeUnavailable, err, "the server at %s does not answer", c.base)
	}
	conn.SetReadLimit(1 << 20)
	return conn, nil
}

// terminal is a shell over a WebSocket. The context is kept because reads and
// writes of an io.ReadWriter have none of their own.
type terminal struct {
	ctx  context.Context
	conn *websocket.Conn
	rest []byte
}

// Read reads what the shell prints; io.EOF when it has ended.
func (t *terminal) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		_, data, err := t.conn.Read(t.ctx)
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure || errors.Is(err, context.Canceled) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		t.rest = data
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Write types into the shell.
func (t *terminal) Write(p []byte) (int, error) {
	if err := t.conn.Write(t.ctx, websocket.MessageBinary, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Resize tells the shell the size of the screen.
func (t *terminal) Resize(cols, rows int) error {
	raw, err := json.Marshal(map[string]int{"cols": cols, "rows": rows})
	if err != nil {
		return err
	}
	return t.conn.Write(t.ctx, websocket.MessageText, raw)
}

// Close ends the shell.
func (t *terminal) Close() error { return t.conn.Close(websocket.StatusNormalClosure, "") }
