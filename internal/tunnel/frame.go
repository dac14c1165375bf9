package tunnel

import (
	"encoding/binary"
	"net"
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
