package e2b

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"
)

// relay connects a port to the input and output of a shell. Descriptor 4 keeps
// the input, which bash takes away from what it runs in the background; both
// directions run there so that the shell can end them when it is told to end.
const relay = `exec 4<&0; exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 7; echo connected >&2
cat <&4 >&3 & up=$!; cat <&3 & down=$!; exec 3>&- 4<&-
trap 'kill $up $down 2>/dev/null; exit 0' TERM; wait $down; kill $up 2>/dev/null`

// DialPort opens a TCP connection to a port inside the sandbox, whatever is
// spoken there. E2B's proxy forwards HTTP only, so the bytes go through a
// process in the sandbox (bash and cat, which every E2B template has): good for
// a database, a debugger or ssh, while [Sandbox.HTTPClient] is faster for HTTP
// and WebSockets. There is no half-close: closing closes both directions.
// [ErrPortClosed] says that nothing listens. ctx bounds the dialing only.
func (s *Sandbox) DialPort(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, &Error{Op: "dial port", Kind: ErrInvalid, Message: "port " + strconv.Itoa(port) + " is not between 1 and 65535"}
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	outer, inner := net.Pipe()
	ready := &announcement{seen: make(chan struct{})}
	p, err := s.Commands.Start(life, "/bin/bash", CommandOptions{
		Args: []string{"-c", relay, "relay", strconv.Itoa(port)}, Stdin: inner, Stdout: inner, Stderr: ready,
	})
	if err != nil {
		cancel()
		return nil, named("dial port", err)
	}
	conn := &portConn{Conn: outer, process: p, cancel: cancel, port: port}
	select {
	case <-ready.seen:
	case <-p.Done():
		outer.Close()
		cancel()
		_, err := p.Wait()
		if errors.As(err, new(*CommandExitError)) {
			return nil, &Error{Op: "dial port", Kind: ErrPortClosed, Message: "nothing listens on port " + strconv.Itoa(port)}
		}
		if ctx.Err() != nil {
			return nil, netError("dial port", ctx.Err())
		}
		return nil, named("dial port", err)
	}
	if !stop() { // ctx ended while the port answered
		conn.Close()
		return nil, netError("dial port", ctx.Err())
	}
	go func() {
		<-p.Done()
		inner.Close()
		cancel()
	}()
	return conn, nil
}

// announcement waits for the first line of the relay.
type announcement struct {
	mu   sync.Mutex
	text []byte

	seen chan struct{}
}

func (a *announcement) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.text != nil && len(a.text) == 0 {
		return len(b), nil
	}
	a.text = append(a.text, b...)
	if bytes.Contains(a.text, []byte("connected\n")) {
		a.text = []byte{}
		close(a.seen)
	}
	if len(a.text) > 4096 {
		a.text = a.text[len(a.text)-4096:]
	}
	return len(b), nil
}

type portConn struct {
	net.Conn
	process *Process
	cancel  context.CancelFunc
	port    int
	once    sync.Once
}

// Close ends the connection and the process that carried it.
func (c *portConn) Close() error {
	c.once.Do(func() {
		c.Conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.process.Signal(ctx, SIGTERM)
		c.cancel()
	})
	return nil
}

func (c *portConn) RemoteAddr() net.Addr {
	return portAddr(c.process.sb.ID + ":" + strconv.Itoa(c.port))
}

// portAddr is sandbox:port.
type portAddr string

func (portAddr) Network() string  { return "e2b" }
func (a portAddr) String() string { return string(a) }
