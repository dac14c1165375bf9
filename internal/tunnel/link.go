package tunnel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Link keeps the sandbox's side of a tunnel up: it waits for a connection,
// serves it, and waits for the next when the host closes it, as it does around a
// checkpoint.
type Link struct {
	next   func(context.Context) (net.Conn, error)
	accept func(Header, net.Conn)

	mu      sync.Mutex
	session *Session
	changed chan struct{} // closed and replaced when session changes
}

// NewLink returns a link whose connections come from next, by dialling or by
// waiting until one is handed in; see [Link.Run].
func NewLink(next func(context.Context) (net.Conn, error), accept func(Header, net.Conn)) *Link {
	return &Link{next: next, accept: accept, changed: make(chan struct{})}
}

// Run serves one connection after the other until ctx ends, and closes the
// session then.
func (l *Link) Run(ctx context.Context) {
	for try := 0; ctx.Err() == nil; try++ {
		conn, err := l.next(ctx)
		if err != nil {
			wait(ctx, pause(try))
			continue
		}
		l.serve(ctx, Client(conn, l.accept))
		try = 0 // however short: a host that saves the sandbox often is there
	}
}

func (l *Link) serve(ctx context.Context, s *Session) {
	l.set(s)
	defer l.set(nil)
	select {
	case <-s.Done():
	case <-ctx.Done():
		s.Close()
	}
}

// pause is short at first and grows, so that a sandbox whose host is gone costs
// nothing.
func pause(try int) time.Duration {
	d := 15 * time.Millisecond
	if over := try - 20; over > 0 {
		d <<= min(over, 7)
	}
	return d/2 + rand.N(d)
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (l *Link) set(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
	close(l.changed)
	l.changed = make(chan struct{})
}

// Open opens a stream to the host, waiting for the tunnel to be up as long as
// ctx allows.
func (l *Link) Open(ctx context.Context, h Header) (net.Conn, error) {
	for {
		l.mu.Lock()
		s, changed := l.session, l.changed
		l.mu.Unlock()
		if s != nil {
			return s.Open(ctx, h)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("open %s stream: the tunnel is down: %w", h.Kind, context.Cause(ctx))
		}
	}
}
