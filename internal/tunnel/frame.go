package tunnel

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"time"
)

const (
	frameHeader = 12
	frameData   = 0 // the type byte of a frame with a body
)

// frameConn joins the multiplexer's two writes of a frame, header and body, into
// one system call: inside a sandbox each costs several times what it does outside.
// Only the multiplexer's one sending goroutine writes to it.
type frameConn struct {
	net.Conn
	held [frameHeader]byte
	hold bool
	// lookAgain makes a reader look by itself now and then whether a quiet
	// connection still stands: a sandbox that was saved with its tunnel open is
	// not woken by the tunnel's end.
	lookAgain time.Duration
}

// lookAgain is how often the sandbox's side looks.
const lookAgain = 2 * time.Second

// Read implements [net.Conn].
func (f *frameConn) Read(p []byte) (int, error) {
	if f.lookAgain == 0 {
		return f.Conn.Read(p)
	}
	for {
		_ = f.SetReadDeadline(time.Now().Add(f.lookAgain)) // fails on a closed one, as Read will
		n, err := f.Conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// Write keeps the header of a frame that has a body until the body comes.
func (f *frameConn) Write(p []byte) (int, error) {
	if !f.hold {
		if len(p) == frameHeader && p[1] == frameData && binary.BigEndian.Uint32(p[8:]) > 0 {
			copy(f.held[:], p)
			f.hold = true
			return len(p), nil
		}
		return f.Conn.Write(p)
	}
	f.hold = false
	both := net.Buffers{f.held[:], p}
	n, err := both.WriteTo(f.Conn)
	return max(0, int(n)-frameHeader), err
}
