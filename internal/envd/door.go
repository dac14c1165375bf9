package envd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// door is the way in that the host has: a datagram socket, standard input at the
// start, through which it hands in one end of each tunnel. The host can do so at
// any time, also after it was started again or has restored the sandbox; nothing
// in the sandbox has a name that leads out.
type door struct{ conn *net.UnixConn }

// openDoor takes the socket over and leaves nothing to read in its place.
func openDoor(in *os.File) (*door, error) {
	packets, err := net.FilePacketConn(in)
	if err != nil {
		return nil, fmt.Errorf("open door: %w", err)
	}
	conn, ok := packets.(*net.UnixConn)
	if !ok {
		packets.Close()
		return nil, errors.New("open door: it is no unix socket")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("open door: %w", err)
	}
	defer null.Close()
	if err := syscall.Dup3(int(null.Fd()), int(in.Fd()), 0); err != nil {
		return nil, fmt.Errorf("open door: %w", err)
	}
	return &door{conn}, nil
}

// next waits for the host to hand a tunnel in and answers it with one byte.
func (d *door) next(ctx context.Context) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = d.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	rights := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := d.conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, fmt.Errorf("wait at the door: %w", err)
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("take a tunnel in: %d messages: %w", len(messages), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("take a tunnel in: %d ends: %w", len(fds), err)
	}
	f := os.NewFile(uintptr(fds[0]), "tunnel")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("take a tunnel in: %w", err)
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("take a tunnel in: %w", err)
	}
	return conn, nil
}
