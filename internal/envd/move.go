package envd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// moveAcross moves between file systems, where a rename cannot: a copy beside
// the target, put in place when it is whole, then the source is removed.
func moveAcross(ctx context.Context, from, to string) error {
	temp, err := os.MkdirTemp(filepath.Dir(to), ".move-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	copied := filepath.Join(temp, "x")
	err = filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rel, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		return copyOne(at, filepath.Join(copied, rel), d)
	})
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if err := os.Rename(copied, to); err != nil {
		return err
	}
	return os.RemoveAll(from)
}

// copyOne copies one entry with its mode, owner and time.
func copyOne(from, to string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		if err := os.Mkdir(to, info.Mode().Perm()|0o700); err != nil {
			return err
		}
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, to); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		if err := copyFile(from, to, info.Mode().Perm()); err != nil {
			return err
		}
	default:
		return fmt.Errorf("'%s' is a special file and cannot be moved to another file system", from)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := os.Lchown(to, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return nil
	}
	return errors.Join(os.Chmod(to, info.Mode()), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
