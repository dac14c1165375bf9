package envd

import (
	"net"
	"sync"
)

// stream is a tunnel stream that carries HTTP.
type stream struct {
	net.Conn
	control bool
}

// inbox is a listener whose connections are put into it.
type inbox struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInbox() *inbox {
	return &inbox{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (i *inbox) put(c net.Conn) {
	select {
	case i.conns <- c:
	case <-i.closed:
		c.Close()
	}
}

// Accept returns the next connection.
func (i *inbox) Accept() (net.Conn, error) {
	select {
	case c := <-i.conns:
		return c, nil
	case <-i.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (i *inbox) Close() error {
	i.once.Do(func() { close(i.closed) })
	return nil
}

// Addr names the tunnel.
func (i *inbox) Addr() net.Addr { return tunnelAddr{} }

type tunnelAddr struct{}

func (tunnelAddr) Network() string { return "tunnel" }
func (tunnelAddr) String() string  { return "tunnel" }
