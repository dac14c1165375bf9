package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Scratch is a place for objects that may be thrown away: git run with its Env
// reads the repository's objects and writes new ones here. Keep moves them into
// the repository, Close forgets them.
type Scratch struct {
	repo string // the bare repository or .git folder
	dir  string
}

// NewScratch makes a scratch beside the objects of the repository in gitDir, on
// the same file system so that Keep is a rename.
func NewScratch(gitDir string) (*Scratch, error) {
	parent := filepath.Join(gitDir, "squad-scratch")
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return nil, fmt.Errorf("make scratch: %w", err)
	}
	return scratchIn(parent, "objects-", gitDir)
}

var errNoMemoryScratch = errors.New("no scratch in memory")

const (
	memoryFolder = "/dev/shm"
	memoryPrefix = "squad-objects-"
	memoryNeeded = 1 << 30 // free, or it is not touched
)

// newMemoryScratch makes a scratch whose objects are never kept in memory, where the
// machine has a folder there with room. It is removed by Close; what a killed server
// left is removed by the next.
func newMemoryScratch(gitDir string) (*Scratch, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(memoryFolder, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < memoryNeeded {
		return nil, errNoMemoryScratch
	}
	old, err := filepath.Glob(filepath.Join(memoryFolder, memoryPrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("look for old scratches: %w", err)
	}
	for _, dir := range old {
		var st unix.Stat_t
		if unix.Lstat(dir, &st) == nil && int(st.Uid) == os.Geteuid() && time.Since(time.Unix(st.Mtim.Unix())) > time.Hour {
			os.RemoveAll(dir)
		}
	}
	return scratchIn(memoryFolder, memoryPrefix, gitDir)
}

func scratchIn(parent, prefix, gitDir string) (*Scratch, error) {
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, fmt.Errorf("make scratch: %w", err)
	}
	for _, sub := range []string{"info", "pack"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o750); err != nil {
			return nil, fmt.Errorf("make scratch: %w", err)
		}
	}
	return &Scratch{repo: gitDir, dir: dir}, nil
}

// Env makes git write into the scratch and read from both.
func (s *Scratch) Env() []string {
	return []string{
		"GIT_OBJECT_DIRECTORY=" + s.dir,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(s.repo, "objects"),
		"GIT_QUARANTINE_PATH=" + s.dir, // git refuses to update refs meanwhile
	}
}

// Size is the number of bytes of the objects in the scratch.
func (s *Scratch) Size() (int64, error) {
	var n int64
	err := filepath.WalkDir(s.dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// Keep moves the objects into the repository. A pack's index goes last, since git
// takes a pack to be whole once it sees the index.
func (s *Scratch) Keep(ctx context.Context) error {
	into := filepath.Join(s.repo, "objects")
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("read scratch: %w", err)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !e.IsDir() || e.Name() == "info" {
			continue
		}
		if err := keepFolder(filepath.Join(s.dir, e.Name()), filepath.Join(into, e.Name())); err != nil {
			return fmt.Errorf("keep objects: %w", err)
		}
	}
	return nil
}

func keepFolder(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		if err := makeReadable(to); err != nil {
			return err
		}
	}
	for _, last := range []bool{false, true} {
		for _, f := range files {
			if f.IsDir() || (filepath.Ext(f.Name()) == ".idx") != last || filepath.Ext(f.Name()) == ".keep" {
				continue
			}
			target := filepath.Join(to, f.Name())
			if _, err := os.Lstat(target); err == nil {
				continue // same name means same content
			}
			if err := os.Rename(filepath.Join(from, f.Name()), target); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeReadable makes a folder of objects, which others than the server read too.
func makeReadable(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(dir, 0o755) // whatever the umask is
}

// Close removes the scratch and all that was not kept.
func (s *Scratch) Close() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove scratch: %w", err)
	}
	return nil
}

// ClearScratch removes scratches that are older than age: what a server that was
// killed left behind.
func ClearScratch(gitDir string, age time.Duration) error {
	parent := filepath.Join(gitDir, "squad-scratch")
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read scratch: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < age {
			continue
		}
		if err := os.RemoveAll(filepath.Join(parent, e.Name())); err != nil {
			return fmt.Errorf("remove scratch: %w", err)
		}
	}
	return nil
}
