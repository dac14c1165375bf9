package envd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agentsquad/internal/envdpb/filesystem"
)

const watchMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_MODIFY |
	unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// maxWatched bounds the directories of one recursive watch.
const maxWatched = 50_000

// change is one event of a watch: a path relative to the watched directory.
type change struct {
	name string
	kind filesystem.EventType
}

// notifier watches a directory, or a whole tree, through one inotify instance.
// It has one reader; only close may be called beside it.
type notifier struct {
	file      *os.File
	root      string
	recursive bool
	dirs      map[int32]string // watch descriptor to path relative to root
}

func newNotifier(root string, recursive bool) (*notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init", err)
	}
	n := &notifier{file: os.NewFile(uintptr(fd), "inotify"), root: root, recursive: recursive, dirs: map[int32]string{}}
	if err := n.add("."); err != nil {
		n.close()
		return nil, err
	}
	if recursive {
		if _, err := n.addBelow("."); err != nil {
			n.close()
			return nil, err
		}
	}
	return n, nil
}

func (n *notifier) close() { n.file.Close() }

var errTooMany = errors.New("too many directories to watch")

func (n *notifier) add(rel string) error {
	if len(n.dirs) >= maxWatched {
		return errTooMany
	}
	raw, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	var wd int
	path := filepath.Join(n.root, rel)
	if ctlErr := raw.Control(func(fd uintptr) { wd, err = unix.InotifyAddWatch(int(fd), path, watchMask) }); ctlErr != nil {
		return ctlErr
	}
	if err != nil {
		return &os.PathError{Op: "watch", Path: path, Err: err}
	}
	n.dirs[int32(wd)] = rel
	return nil
}

// addBelow watches all directories under rel and returns everything found
// there: it may have come before the watch did.
func (n *notifier) addBelow(rel string) ([]string, error) {
	var found []string
	top := filepath.Join(n.root, rel)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == top {
			return nil // gone again
		}
		at, err := filepath.Rel(n.root, path)
		if err != nil {
			return nil
		}
		found = append(found, at)
		if !d.IsDir() {
			return nil
		}
		if err := n.add(at); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
		return nil
	})
	return found, err
}

// read blocks for the next events. It returns os.ErrClosed after close.
func (n *notifier) read(buf []byte) ([]change, error) {
	size, err := n.file.Read(buf)
	if err != nil {
		return nil, err
	}
	var out []change
	for data := buf[:size]; len(data) >= unix.SizeofInotifyEvent; {
		wd := int32(binary.NativeEndian.Uint32(data))
		mask := binary.NativeEndian.Uint32(data[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(data[12:]))
		if end > len(data) {
			break
		}
		name, _, _ := bytes.Cut(data[unix.SizeofInotifyEvent:end], []byte{0})
		data = data[end:]
		more, err := n.translate(wd, mask, string(name))
		if err != nil {
			return out, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// translate turns one inotify event into changes, in the order create, rename,
// chmod, write, remove, and follows directories that come and go.
func (n *notifier) translate(wd int32, mask uint32, name string) ([]change, error) {
	if mask&unix.IN_Q_OVERFLOW != 0 && n.recursive { // events were lost, and with them new directories
		_, err := n.addBelow(".")
		return nil, err
	}
	dir, known := n.dirs[wd]
	if !known {
		return nil, nil
	}
	if mask&unix.IN_IGNORED != 0 {
		delete(n.dirs, wd)
		return nil, nil
	}
	if name == "" && dir != "." {
		return nil, nil // a directory about itself; its parent tells the same
	}
	path := filepath.Join(dir, name)
	var out []change
	for _, m := range []struct {
		bits uint32
		kind filesystem.EventType
	}{
		{unix.IN_CREATE | unix.IN_MOVED_TO, filesystem.EventType_EVENT_TYPE_CREATE},
		{unix.IN_MOVED_FROM | unix.IN_MOVE_SELF, filesystem.EventType_EVENT_TYPE_RENAME},
		{unix.IN_ATTRIB, filesystem.EventType_EVENT_TYPE_CHMOD},
		{unix.IN_MODIFY, filesystem.EventType_EVENT_TYPE_WRITE},
		{unix.IN_DELETE | unix.IN_DELETE_SELF, filesystem.EventType_EVENT_TYPE_REMOVE},
	} {
		if mask&m.bits != 0 {
			out = append(out, change{path, m.kind})
		}
	}
	if !n.recursive || mask&unix.IN_ISDIR == 0 {
		return out, nil
	}
	if mask&unix.IN_MOVED_FROM != 0 {
		n.forget(path)
	}
	if mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
		return n.enter(path, out)
	}
	return out, nil
}

// enter starts to watch a directory that appeared.
func (n *notifier) enter(path string, out []change) ([]change, error) {
	if err := n.add(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return out, nil
		}
		return out, err
	}
	found, err := n.addBelow(path)
	for _, at := range found {
		out = append(out, change{at, filesystem.EventType_EVENT_TYPE_CREATE})
	}
	return out, err
}

// forget stops watching a directory that was moved away: its events would come
// under a name it no longer has.
func (n *notifier) forget(path string) {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return
	}
	for wd, rel := range n.dirs {
		if rel == path || len(rel) > len(path) && rel[:len(path)+1] == path+"/" {
			_ = raw.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(wd)) })
			delete(n.dirs, wd)
		}
	}
}
