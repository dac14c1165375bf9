package tunnel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// lingerTime is how long a closed stream waits for the other side to close by
// itself before it is told to.
const lingerTime = time.Second

// Conn is one stream. CloseWrite ends the writing direction only; Close ends both.
type Conn struct {
	*yamux.Stream
	session  *Session
	accepted bool // opened by the other side

	reading sync.Mutex
	rest    []byte // read past the header line

	closing sync.Once
	closed  atomic.Bool
	aborted atomic.Bool
}

// Read reads from the stream. A tunnel that dies is io.ErrUnexpectedEOF, not a
// clean end: what was read may be short.
func (c *Conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	if len(c.rest) > 0 {
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	n, err := c.Stream.Read(p)
	if err == nil {
		return n, nil
	}
	switch {
	case c.closed.Load():
		err = net.ErrClosed
	case c.aborted.Load():
		err = errReset
	case errors.Is(err, io.EOF) && c.session.mux.IsClosed():
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

var errReset = fmt.Errorf("tunnel stream: %w", yamux.ErrConnectionReset)

// CloseWrite tells the other side that no more data comes; reading goes on.
func (c *Conn) CloseWrite() error { return c.Stream.Close() }

// Close gives the stream up: blocked calls return, unread data is dropped, and
// the other side is made to stop if it goes on writing.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.closed.Store(true)
		c.Stream.Close()
		_ = c.SetReadDeadline(past) // wakes a blocked Read
		go c.drain()
	})
	return nil
}

var past = time.Unix(1, 0)

// abort is a close that the other side asked for: nobody reads there any more.
func (c *Conn) abort() {
	c.aborted.Store(true)
	c.Stream.Close()
	_ = c.SetReadDeadline(past)
}

// drain reads what still comes, so that the session's flow control lets the
// other side notice and end.
func (c *Conn) drain() {
	defer c.release()
	c.reading.Lock() // the last Read has left
	defer c.reading.Unlock()
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	if _, err := io.Copy(io.Discard, c.Stream); !errors.Is(err, yamux.ErrTimeout) {
		return
	}
	c.session.hang(1)
	defer c.session.hang(-1)
	_ = c.SetReadDeadline(time.Time{})
	go c.session.sendReset(c)
	_, _ = io.Copy(io.Discard, c.Stream)
}

func (c *Conn) release() {
	c.session.forget(c)
	if c.accepted {
		c.session.alive(-1)
	}
}

// begin sends the header and, for kinds that have one, reads the reply.
func (c *Conn) begin(h Header) error {
	if err := writeLine(c, h); err != nil {
		return err
	}
	if !h.Replied() {
		return nil
	}
	// No deadline: the other side may be dialling a slow host, and the caller's
	// context bounds the wait.
	line, err := c.scanLine()
	if err != nil {
		return fmt.Errorf("read reply: %w", err)
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("parse reply: %w", err)
	}
	if !r.OK {
		return &Refusal{Reason: r.Reason, Denied: r.Denied}
	}
	return nil
}

func (c *Conn) readLine() ([]byte, error) {
	_ = c.SetReadDeadline(time.Now().Add(headerTimeout))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	return c.scanLine()
}

// scanLine returns one line without its end and keeps what follows for Read.
func (c *Conn) scanLine() ([]byte, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	buf := make([]byte, 0, 256)
	for {
		if i := bytes.IndexByte(buf, '\n'); i >= 0 {
			c.rest = buf[i+1:]
			return buf[:i], nil
		}
		if len(buf) > maxLine {
			return nil, fmt.Errorf("read line: longer than %d bytes", maxLine)
		}
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 4*cap(buf)), buf...)
		}
		n, err := c.Stream.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil && n == 0 {
			return nil, fmt.Errorf("read line: %w", err)
		}
	}
}
