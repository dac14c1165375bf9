package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"agentsquad"
	"agentsquad/internal/gvisor/erofs"
)

// ImageOptions change how a folder becomes an image.
type ImageOptions struct {
	// UID and GID own every entry when Owned is set; else owners are kept.
	Owned    bool
	UID, GID uint32
	// MaxBytes bounds the image; 0 means 64 GiB.
	MaxBytes int64
	// Skip leaves out an entry (a folder with all below it), given its path
	// relative to the folder.
	Skip func(rel string, d fs.DirEntry) bool
}

// WriteImage makes an EROFS image of a host folder, which sandboxes can mount
// (see [Mount]): times, modes, links and, unless changed, owners are kept; sockets
// and extended attributes are not. The file appears whole or not at all.
func WriteImage(ctx context.Context, dir, out string, opts ImageOptions) error {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 64 << 30
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("image of %s: %w", dir, err)
	}
	defer root.Close()
	return writeImageFile(out, opts.MaxBytes, func(b *erofs.Builder) error {
		w := folderImage{b: b, root: root, opts: opts, inodes: map[[2]uint64]string{}}
		return fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("image of %s: %w", dir, err)
			}
			if opts.Skip != nil && rel != "." && opts.Skip(rel, d) {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			return w.add(rel, d)
		})
	})
}

// writeImageFile lets fill build an image and puts it at path in one step.
func writeImageFile(path string, maxBytes int64, fill func(*erofs.Builder) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".image-*")
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	b, err := erofs.New(f, maxBytes)
	if err == nil {
		err = fill(b)
	}
	if err == nil {
		err = b.Close()
	}
	if errors.Is(err, erofs.ErrTooLarge) {
		return squad.Wrap(squad.CodeTooLarge, err, "the image would be larger than %d MB", maxBytes>>20)
	}
	if err == nil {
		err = f.Chmod(0o600)
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write image %s: %w", filepath.Base(path), err)
	}
	return nil
}

// folderImage adds the entries of one folder to an image.
type folderImage struct {
	b      *erofs.Builder
	root   *os.Root
	opts   ImageOptions
	inodes map[[2]uint64]string // files with several names, by device and inode
}

func (w *folderImage) add(rel string, d fs.DirEntry) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("image of %s: no owner known", rel)
	}
	attr := erofs.Attr{Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid, Mtime: info.ModTime()}
	if w.opts.Owned {
		attr.UID, attr.GID = w.opts.UID, w.opts.GID
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return w.b.Dir(rel, attr)
	case mode&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(rel)
		if err != nil {
			return err
		}
		return w.b.Symlink(rel, target, attr)
	case mode.IsRegular():
		return w.addFile(rel, attr, st)
	case mode&fs.ModeNamedPipe != 0:
		return w.b.Device(rel, erofs.TypeFIFO, 0, attr)
	}
	return nil // sockets and devices of the host stay on the host
}

func (w *folderImage) addFile(rel string, attr erofs.Attr, st *syscall.Stat_t) error {
	key := [2]uint64{uint64(st.Dev), st.Ino}
	if st.Nlink > 1 {
		if first, ok := w.inodes[key]; ok {
			return w.b.Link(rel, first)
		}
		w.inodes[key] = rel
	}
	f, err := w.root.Open(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	// A file that grows while it is read must not become longer than it was.
	return w.b.File(rel, attr, io.LimitReader(f, max(st.Size, 0)))
}
