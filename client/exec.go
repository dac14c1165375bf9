package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/coder/websocket"

	"agentsquad"
)

// Exec runs a command in a sandbox with its streams joined to ours. It returns
// when the command has ended; its result holds no output. A nil Stdin is empty.
func (c *Client) Exec(ctx context.Context, id string, in squad.Command, streams squad.Streams) (squad.CommandResult, error) {
	target := fmt.Sprintf("%s/api/v1%s", "ws"+strings.TrimPrefix(c.base, "http"), at("sandboxes", id, "exec"))
	conn, err := c.dial(ctx, target)
	if err != nil {
		return squad.CommandResult{}, err
	}
	defer func() { _ = conn.CloseNow() }() // after a clean close it says only that
	raw, err := json.Marshal(in)
	if err != nil {
		return squad.CommandResult{}, err
	}
	if err := conn.Write(ctx, websocket.MessageText, raw); err != nil {
		return squad.CommandResult{}, squad.Wrap(squad.CodeUnavailable, err, "the server at %s does not answer", c.base)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go feed(ctx, conn, streams.Stdin)
	return follow(ctx, conn, streams)
}

// feed sends input until its end, and says so. What fails here fails in follow too.
func feed(ctx context.Context, conn *websocket.Conn, r io.Reader) {
	buf := make([]byte, 32<<10)
	for r != nil {
		n, err := r.Read(buf)
		if n > 0 && conn.Write(ctx, websocket.MessageBinary, buf[:n]) != nil {
			return
		}
		if err != nil {
			break
		}
	}
	_ = conn.Write(ctx, websocket.MessageBinary, nil)
}

// follow passes output on until the command's end.
func follow(ctx context.Context, conn *websocket.Conn, streams squad.Streams) (squad.CommandResult, error) {
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return squad.CommandResult{}, squad.Wrap(squad.CodeUnavailable, err, "the connection was cut before the command ended")
		}
		if kind == websocket.MessageText {
			var end squad.ExecEnd
			if err := json.Unmarshal(data, &end); err != nil {
				return end.CommandResult, fmt.Errorf("read end of command: %w", err)
			}
			if end.Code != "" {
				return end.CommandResult, &squad.Error{Code: end.Code, Message: end.Detail}
			}
			return end.CommandResult, nil
		}
		if len(data) == 0 {
			continue
		}
		to := streams.Stdout
		if data[0] == 2 {
			to = streams.Stderr
		}
		if to == nil {
			continue
		}
		if _, err := to.Write(data[1:]); err != nil {
			return squad.CommandResult{}, fmt.Errorf("pass output on: %w", err)
		}
	}
}
