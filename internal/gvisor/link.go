package gvisor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// listen opens the socket that envd dials. The path is given through an open
// folder, because a socket's name may have 107 bytes only.
func listen(f folder) (*net.UnixListener, error) {
	if err := os.Remove(f.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open tunnel: %w", err)
	}
	dir, err := os.Open(f.tunnel())
	if err != nil {
		return nil, fmt.Errorf("open tunnel: %w", err)
	}
	defer dir.Close()
	name := "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + filepath.Base(f.socket())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open tunnel: %w", err)
	}
	l.SetUnlinkOnClose(false) // the name above leads nowhere by then
	return l, nil
}
