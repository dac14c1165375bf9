package envd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const maxPath = 4096

// resolvePath turns what a caller wrote into an absolute path: "~" is the
// user's home, a relative path starts there, and an empty one is workdir, or
// the home where none is set.
func resolvePath(path string, who *account, workdir string) (string, error) {
	switch {
	case len(path) > maxPath:
		return "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	case path == "":
		path = workdir
		if path == "" {
			path = who.home
		}
	case path == "~":
		path = who.home
	case strings.HasPrefix(path, "~/"):
		path = filepath.Join(who.home, path[2:])
	case strings.HasPrefix(path, "~"):
		return "", fmt.Errorf("cannot expand the home of another user in '%s'", path)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(who.home, path)
	}
	if !filepath.IsAbs(path) { // a home that is itself relative
		path = "/" + path
	}
	if strings.ContainsRune(path, 0) {
		return "", errors.New("the path holds a zero byte")
	}
	return filepath.Clean(path), nil
}

// makeDirs creates dir and its missing parents, mode 0755, owned by who.
func makeDirs(dir string, who *account) error {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil {
			if !info.IsDir() {
				return &os.PathError{Op: "mkdir", Path: at, Err: errNotDir}
			}
			break
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		missing = append(missing, at)
		if at == "/" {
			break
		}
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := os.Mkdir(missing[i], 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := giveTo(missing[i], who); err != nil {
			return err
		}
	}
	return nil
}

// checkDir says what is wrong with a working directory, if anything.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("cwd '%s' does not exist", dir)
	case err != nil:
		return fmt.Errorf("cwd '%s' cannot be used: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("cwd '%s' is not a directory", dir)
	}
	return nil
}

var errNotDir = errors.New("not a directory")

// giveTo changes the owner, where this process may do that at all.
func giveTo(path string, who *account) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, int(who.uid), int(who.gid))
}
