package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// makeDoor makes the socket that a sandbox has as its standard input. The host
// hands tunnels in through it, see [folder.knock]. Nothing inside has a name that
// leads to a socket of the host, and a server that was started again finds the
// door where it was.
func (f folder) makeDoor() (*os.File, error) {
	if err := os.Remove(f.door()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("make door: %w", err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make door: %w", err)
	}
	door := os.NewFile(uintptr(fd), "door")
	if err := f.atDoor(func(addr unix.Sockaddr) error { return unix.Bind(fd, addr) }); err != nil {
		_ = door.Close()
		return nil, fmt.Errorf("make door: %w", err)
	}
	return door, nil
}

// atDoor calls do with the door's address. The path is given through an open
// folder, because a socket's name may have 107 bytes only.
func (f folder) atDoor(do func(unix.Sockaddr) error) error {
	dir, err := os.Open(string(f))
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(&unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + filepath.Base(f.door())})
}

// line is a connection to the daemon. hold is the same socket once more: it tells
// when the far end is closed, however the connection's own users fared.
type line struct {
	net.Conn
	hold *os.File
}

// gone waits until the daemon has closed its end, and says whether it has.
func (l line) gone(patience time.Duration) bool {
	raw, err := l.hold.SyscallConn()
	if err != nil || l.hold.SetReadDeadline(time.Now().Add(patience)) != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) }) // fails where it is gone
	_, err = io.Copy(io.Discard, l.hold)
	return err == nil || errors.Is(err, unix.ECONNRESET) // closed with something unread
}

// knock hands one end of a new connection in and waits until the daemon has
// answered, which it does once it is up, or ctx ends.
func (f folder) knock(ctx context.Context) (line, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return line{}, fmt.Errorf("knock: %w", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "tunnel")
	err = f.atDoor(func(addr unix.Sockaddr) error {
		sender, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(sender)
		return unix.Sendmsg(sender, []byte{1}, unix.UnixRights(pair[1]), addr, unix.MSG_DONTWAIT)
	})
	_ = unix.Close(pair[1])
	if err != nil {
		_ = ours.Close()
		return line{}, fmt.Errorf("knock: %w", err)
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = ours.Close()
		return line{}, fmt.Errorf("knock: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	_, err = conn.Read(make([]byte, 1))
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = errors.Join(conn.Close(), ours.Close())
		return line{}, fmt.Errorf("knock: %w", err)
	}
	return line{conn, ours}, nil
}
