package api

import (
	"fmt"
	"net"
	"syscall"
	"unique"

	"golang.org/x/sys/unix"

	"agentsquad"
	"agentsquad/internal/event"
)

// look has the reader see what the actor may. What is seen depends on nothing
// that is not in the key, so that readers may share what they are sent by it.
func (rd *reader) look(a squad.Actor) {
	a.UserID, a.TokenID, a.MemberID, a.Remote = "", "", "", ""
	rd.view.Store(&event.View{
		Key: unique.Make(fmt.Sprintf("%#v", a)),
		See: func(e *squad.Event) bool { return seesEvent(a, e) },
	})
}

// View is part of [event.Sink].
func (rd *reader) View() *event.View { return rd.view.Load() }

// Take is part of [event.Sink]. What fails here fails again where it is waited
// for, and ends the stream there.
func (rd *reader) Take(buffers [][]byte, events int) (taken, more bool) {
	if !rd.mu.TryLock() {
		return false, false
	}
	defer rd.mu.Unlock()
	if rd.broken != nil || len(rd.rest) > 0 || rd.bound() != nil {
		return false, false
	}
	n := try(rd.raw, buffers)
	if n == 0 {
		return false, false
	}
	rd.metrics.sent.Add(float64(events))
	rd.rest = behind(buffers, n)
	return true, len(rd.rest) == 0
}

// Drain is part of [event.Sink].
func (rd *reader) Drain() error { return rd.send(nil) }

// rawOf is the socket of a connection, or nil if there is more to it (TLS).
func rawOf(conn net.Conn) syscall.RawConn {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// try writes what needs no waiting, and says how many bytes that was.
func try(raw syscall.RawConn, buffers [][]byte) (n int) {
	err := raw.Write(func(fd uintptr) bool {
		if len(buffers) == 1 {
			n, _ = unix.Write(int(fd), buffers[0])
		} else {
			n, _ = unix.Writev(int(fd), buffers)
		}
		return true // done, whatever came of it
	})
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// behind is what follows the first n bytes. The buffers are not changed.
func behind(buffers [][]byte, n int) net.Buffers {
	for i, b := range buffers {
		if n < len(b) {
			return append(net.Buffers{b[n:]}, buffers[i+1:]...)
		}
		n -= len(b)
	}
	return nil
}
