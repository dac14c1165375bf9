package envd

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	metaHeader   = "X-Metadata-"
	metaPrefix   = "user.e2b."
	maxMetaKey   = 246
	maxMetaBytes = 4096
	maxSideTable = 10_000
)

// metadata keeps what callers attach to files, in extended attributes; where
// the file system has none, in memory, by inode.
type metadata struct {
	mu   sync.Mutex
	side map[inode]map[string]string
}

type inode struct{ dev, ino uint64 }

// parseMetadata reads the metadata of an upload from its headers.
func parseMetadata(h http.Header) (map[string]string, error) {
	var out map[string]string
	total := 0
	for name, values := range h {
		key, ok := strings.CutPrefix(name, metaHeader)
		if !ok {
			continue
		}
		key = strings.ToLower(key)
		value := values[0]
		switch {
		case key == "":
			return nil, errors.New("a metadata header has an empty key")
		case len(key) > maxMetaKey:
			return nil, fmt.Errorf("metadata key is longer than %d bytes", maxMetaKey)
		case len(values) > 1:
			return nil, fmt.Errorf("metadata key '%s' is given more than once", key)
		case !printable(key) || !printable(value):
			return nil, fmt.Errorf("metadata '%s' holds a character that is not printable ASCII", key)
		}
		if total += len(key) + len(value); total > maxMetaBytes {
			return nil, fmt.Errorf("metadata is larger than %d bytes in all", maxMetaBytes)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out, nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// replace makes values the whole metadata of an open file.
func (m *metadata) replace(file *os.File, values map[string]string) error {
	fd := int(file.Fd())
	old, supported := listKeys(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) })
	for _, key := range old {
		if _, keep := values[key]; !keep {
			if err := unix.Fremovexattr(fd, metaPrefix+key); err != nil && !errors.Is(err, unix.ENODATA) {
				return fmt.Errorf("remove metadata '%s': %w", key, err)
			}
		}
	}
	if supported {
		for key, value := range values {
			err := unix.Fsetxattr(fd, metaPrefix+key, []byte(value), 0)
			if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) {
				supported = false
				break
			}
			if err != nil {
				return fmt.Errorf("set metadata '%s': %w", key, err)
			}
		}
	}
	if supported {
		values = nil
	}
	return m.remember(file, values)
}

// remember keeps values in memory, or forgets what was kept when there are none.
func (m *metadata) remember(file *os.File, values map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(values) == 0 && len(m.side) == 0 {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	at, ok := inodeOf(info)
	if !ok {
		return nil
	}
	if len(values) == 0 {
		delete(m.side, at)
		return nil
	}
	if m.side == nil {
		m.side = map[inode]map[string]string{}
	}
	if len(m.side) >= maxSideTable {
		return errors.New("too many files with metadata on a file system without extended attributes")
	}
	m.side[at] = values
	return nil
}

func inodeOf(info os.FileInfo) (inode, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, false
	}
	return inode{uint64(st.Dev), st.Ino}, true
}

// read returns the metadata of a file, nil if it has none. Links are followed.
func (m *metadata) read(path string) map[string]string {
	keys, _ := listKeys(func(b []byte) (int, error) { return unix.Listxattr(path, b) })
	var out map[string]string
	for _, key := range keys {
		buf := make([]byte, maxMetaBytes)
		n, err := unix.Getxattr(path, metaPrefix+key, buf)
		if err != nil {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = string(buf[:n])
	}
	if out != nil {
		return out
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.side) == 0 {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	at, _ := inodeOf(info)
	return m.side[at]
}

// listKeys returns the metadata keys among a file's attributes, and whether it
// can have attributes at all.
func listKeys(list func([]byte) (int, error)) ([]string, bool) {
	buf := make([]byte, 1024)
	n, err := list(buf)
	if errors.Is(err, unix.ERANGE) {
		buf = make([]byte, 64<<10) // the kernel's own limit
		n, err = list(buf)
	}
	if err != nil {
		return nil, false
	}
	var keys []string
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if key, ok := strings.CutPrefix(name, metaPrefix); ok {
			keys = append(keys, key)
		}
	}
	return keys, true
}
