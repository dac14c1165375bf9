package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"agentsquad"
)

// maxCommand bounds the message that says what to run.
const maxCommand = 256 << 10

// exec runs a command with its streams joined to a WebSocket. The first message,
// text, is a [squad.Command]; binary messages are its input, and an empty one the
// input's end. Binary messages back begin with a byte, 1 for output and 2 for
// errors; the last, text, is a [squad.ExecEnd]. A client that leaves ends it.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	boxes, err := s.ownSandbox(r.Context(), id)
	if err == nil {
		err = s.note(r.Context(), "sandbox.execute", id)
	}
	if err != nil {
		writeProblem(w, r, err)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // the library has answered
	}
	defer func() { _ = conn.CloseNow() }() // after a clean close it says only that
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	conn.SetReadLimit(maxCommand)
	cmd, err := readCommand(ctx, conn)
	if err != nil {
		_ = conn.Close(websocket.StatusUnsupportedData, "the first message must be a command")
		return
	}
	input, feed := io.Pipe()
	defer input.Close()
	go func() {
		defer cancel()
		_ = feed.CloseWithError(pour(ctx, conn, feed))
		for { // until the client leaves
			if _, _, err := conn.Read(ctx); err != nil {
				return
			}
		}
	}()
	res, err := boxes.Stream(ctx, actorOf(ctx), id, cmd, squad.Streams{
		Stdin: input, Stdout: messages{ctx, conn, 1}, Stderr: messages{ctx, conn, 2},
	})
	end := squad.ExecEnd{CommandResult: res}
	if err != nil {
		p := problemOf(ctx, err)
		end.Code, end.Detail = p.Code, p.Detail
	}
	raw, err := json.Marshal(end)
	if err != nil {
		return
	}
	if writeMessage(ctx, conn, websocket.MessageText, raw) == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "the command ended")
	}
}

func readCommand(ctx context.Context, conn *websocket.Conn) (cmd squad.Command, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, data, err := conn.Read(ctx)
	if err != nil {
		return cmd, err
	}
	return cmd, json.Unmarshal(data, &cmd)
}

// pour passes input on until its end.
func pour(ctx context.Context, conn *websocket.Conn, to io.Writer) error {
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
		if _, err := to.Write(data); err != nil {
			return nil //nolint:nilerr // the command reads no more, and that is its own affair
		}
	}
}

// messages is a stream of the command as messages.
type messages struct {
	ctx    context.Context // of the request; a writer's calls have none of their own
	conn   *websocket.Conn
	stream byte
}

// Write sends one message.
func (m messages) Write(p []byte) (int, error) {
	if err := writeMessage(m.ctx, m.conn, websocket.MessageBinary, append([]byte{m.stream}, p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func writeMessage(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return conn.Write(ctx, kind, data)
}
