package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

const (
	window        = 1 << 20          // bytes in flight per stream
	maxFromBox    = 512              // streams of one sandbox that the host serves at once
	maxFromHost   = 8192             // streams of the host that a sandbox serves at once
	maxStuck      = 1024             // closed streams whose other end never closed
	headerTimeout = 30 * time.Second // for a header or reply line to arrive whole
)

// ErrClosed is returned by Open on a session that has ended.
var ErrClosed = errors.New("tunnel closed")

// Session is one live tunnel. All methods may be called from any goroutine.
type Session struct {
	mux    *yamux.Session
	conn   net.Conn
	accept func(Header, net.Conn)
	limit  int

	mu    sync.Mutex
	conns map[uint32]*Conn
	live  int // accepted and not yet over
	stuck int
}

// Server runs the host's side of a tunnel over conn, which it owns from now on.
// Streams that the sandbox opens are handed to accept, each on a goroutine of its
// own; accept must close the connection it is given.
func Server(conn net.Conn, accept func(Header, net.Conn)) *Session {
	mux, err := yamux.Server(&frameConn{Conn: conn}, muxConfig())
	return start(mux, conn, err, accept, maxFromBox)
}

// Client runs the sandbox's side of a tunnel over conn.
func Client(conn net.Conn, accept func(Header, net.Conn)) *Session {
	mux, err := yamux.Client(&frameConn{Conn: conn}, muxConfig())
	return start(mux, conn, err, accept, maxFromHost)
}

func muxConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.MaxStreamWindowSize = window
	c.ConnectionWriteTimeout = 2 * time.Minute
	c.StreamOpenTimeout = 0 // it would end the whole session when one peer is slow
	c.StreamCloseTimeout = 0
	c.LogOutput = io.Discard
	return c
}

func start(mux *yamux.Session, conn net.Conn, err error, accept func(Header, net.Conn), limit int) *Session {
	if err != nil { // only an invalid muxConfig, which is constant
		panic(fmt.Sprintf("tunnel: configure: %v", err))
	}
	s := &Session{mux: mux, conn: conn, accept: accept, limit: limit, conns: map[uint32]*Conn{}}
	go s.serve()
	return s
}

// Close ends the tunnel and every stream in it. A second call does nothing.
func (s *Session) Close() error { return s.mux.Close() }

// HangUp ends the tunnel from the far side: the other end is told, closes, and
// only then, or after patience, does this one. It says whether the other end is
// closed: a sandbox that still holds its end cannot be saved.
func (s *Session) HangUp(patience time.Duration) bool {
	defer s.Close()
	half, ok := s.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return s.mux.IsClosed()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.Done():
		return true
	case <-timer.C:
		return false
	}
}

// Done is closed when the tunnel has ended, by either side.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Streams returns how many streams are open now.
func (s *Session) Streams() int { return s.mux.NumStreams() }

// Open opens a stream to what h names. For replied kinds it waits for the other
// side's answer and returns a [*Refusal] when that is no. The connection has a
// CloseWrite method.
func (s *Session) Open(ctx context.Context, h Header) (net.Conn, error) {
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	c, err := s.openStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s stream: %w", h.Kind, err)
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err = c.begin(h)
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("open %s stream: %w", h.Kind, err)
	}
	return c, nil
}

// openStream waits aside, because the multiplexer's own call cannot be cancelled.
func (s *Session) openStream(ctx context.Context) (*Conn, error) {
	type result struct {
		stream *yamux.Stream
		err    error
	}
	done := make(chan result, 1)
	go func() {
		stream, err := s.mux.OpenStream()
		done <- result{stream, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, errors.Join(ErrClosed, r.err)
		}
		return s.track(r.stream), nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				s.track(r.stream).Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func (s *Session) track(stream *yamux.Stream) *Conn {
	c := &Conn{Stream: stream, session: s}
	s.mu.Lock()
	s.conns[stream.StreamID()] = c
	s.mu.Unlock()
	return c
}

func (s *Session) forget(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c.StreamID())
	s.mu.Unlock()
}

// serve accepts until the session ends, or until the other side holds twice as
// many streams as it may: one that ignores refusals is hostile or broken.
func (s *Session) serve() {
	for {
		stream, err := s.mux.AcceptStream()
		if err != nil {
			s.Close()
			return
		}
		c := s.track(stream)
		c.accepted = true
		if s.alive(1) > 2*s.limit {
			s.Close()
			return
		}
		go s.welcome(c)
	}
}

func (s *Session) alive(delta int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live += delta
	return s.live
}

func (s *Session) welcome(c *Conn) {
	line, err := c.readLine()
	if err != nil {
		c.Close()
		return
	}
	h, err := ParseHeader(line)
	switch {
	case err != nil || s.accept == nil:
		c.Close()
	case h.Kind == kindReset:
		s.reset(h.Stream)
		c.Close()
	case s.alive(0) > s.limit && h.Replied():
		_ = Refuse(c, fmt.Sprintf("too many connections at once (the limit is %d)", s.limit))
	case s.alive(0) > s.limit:
		c.Close()
	default:
		s.accept(h, c)
	}
}

// reset is the other side's word that nobody there reads this stream any more.
func (s *Session) reset(id uint32) {
	s.mu.Lock()
	c := s.conns[id]
	s.mu.Unlock()
	if c != nil {
		c.abort()
	}
}

// sendReset asks the other side to stop writing to c. Best effort: if it cannot
// be sent, the session is ending anyway.
func (s *Session) sendReset(c *Conn) {
	stream, err := s.mux.OpenStream()
	if err != nil {
		return
	}
	line, _ := json.Marshal(Header{Kind: kindReset, Stream: c.StreamID()})
	_, _ = stream.Write(append(line, '\n'))
	stream.Close()
	_ = stream.SetReadDeadline(time.Now().Add(headerTimeout))
	_, _ = io.Copy(io.Discard, stream)
}

// hang counts streams whose other end does not close; too many end the session,
// or a hostile sandbox could make the host hold any number of them.
func (s *Session) hang(delta int) {
	s.mu.Lock()
	s.stuck += delta
	over := s.stuck > maxStuck
	s.mu.Unlock()
	if over {
		s.Close()
	}
}
