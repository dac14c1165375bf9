package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/coder/websocket"

	"agentsquad"
)

// maxKeys bounds one message of a terminal's keyboard.
const maxKeys = 64 << 10

// terminal joins a browser or the CLI to a shell in a sandbox over a WebSocket:
// binary messages are bytes of the terminal, text messages are control, for now
// {"cols":80,"rows":24}. Browsers of other origins are refused by the library.
func (s *Server) terminal(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	boxes, err := s.ownSandbox(r.Context(), id)
	if err == nil {
		err = s.note(r.Context(), "sandbox.terminal", id)
	}
	if err != nil {
		writeProblem(w, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	cols, rows := size(r.URL.Query().Get("cols"), 80), size(r.URL.Query().Get("rows"), 24)
	term, err := boxes.Terminal(ctx, actorOf(ctx), id, cols, rows)
	if err != nil {
		writeProblem(w, r, err)
		return
	}
	defer term.Close()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // the library has answered
	}
	defer func() { _ = conn.CloseNow() }() // after a clean close it says only that
	conn.SetReadLimit(maxKeys)
	go func() {
		defer cancel()
		keyboard(ctx, conn, term)
	}()
	screen(ctx, conn, term)
}

func size(text string, otherwise int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1000 {
		return otherwise
	}
	return n
}

// keyboard carries what is typed, until the connection or the shell ends.
func keyboard(ctx context.Context, conn *websocket.Conn, term squad.Terminal) {
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			if _, err := term.Write(data); err != nil {
				return
			}
			continue
		}
		var c struct{ Cols, Rows int }
		if json.Unmarshal(data, &c) == nil && c.Cols > 0 && c.Cols <= 1000 && c.Rows > 0 && c.Rows <= 1000 {
			if err := term.Resize(c.Cols, c.Rows); err != nil {
				return
			}
		}
	}
}

// screen carries what the shell prints, until it ends or the reader is too slow.
func screen(ctx context.Context, conn *websocket.Conn, term squad.Terminal) {
	stop := context.AfterFunc(ctx, func() { _ = term.Close() }) // wakes the Read below
	defer stop()
	buf := make([]byte, 32<<10)
	for {
		n, err := term.Read(buf)
		if n > 0 {
			wctx, cancel := context.WithTimeout(ctx, writeTimeout)
			werr := conn.Write(wctx, websocket.MessageBinary, buf[:n])
			cancel()
			if werr != nil {
				return
			}
		}
		if err != nil {
			_ = conn.Close(websocket.StatusNormalClosure, "the shell ended")
			return
		}
	}
}
