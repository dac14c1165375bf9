package api

import (
	"bytes"
	"net"
	"net/http"
	"time"
)

// wire is the connection of a stream, taken over from the HTTP server or not.
type wire interface {
	SetWriteDeadline(at time.Time) error
	// send writes all of it, at once.
	send(buffers net.Buffers) error
}

// takeOver takes the connection from the HTTP server, whose buffers are smaller
// than a burst of events and cost a second write for each, and begins the answer
// on it. HTTP/2 shares its connection between requests: there it returns nil.
func takeOver(w http.ResponseWriter, r *http.Request) net.Conn {
	if r.ProtoMajor != 1 || r.Method != http.MethodGet {
		return nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	h := w.Header().Clone()
	h.Set("Connection", "close") // the end of the connection is the end of the answer
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var head bytes.Buffer
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // a broken connection fails the first write too
	head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(&head) // a buffer takes everything
	head.WriteString("\r\n")
	_, _ = conn.Write(head.Bytes())
	return conn
}

// socket is a connection that is ours alone.
type socket struct{ net.Conn }

func (s socket) send(buffers net.Buffers) error {
	if len(buffers) == 1 {
		_, err := s.Write(buffers[0])
		return err
	}
	_, err := buffers.WriteTo(s.Conn)
	return err
}

// response is the answer of a request among others.
type response struct {
	http.ResponseWriter
	ctrl *http.ResponseController
}

func (r response) SetWriteDeadline(at time.Time) error { return r.ctrl.SetWriteDeadline(at) }

func (r response) send(buffers net.Buffers) error {
	for _, b := range buffers {
		if _, err := r.Write(b); err != nil {
			return err
		}
	}
	return r.ctrl.Flush()
}
