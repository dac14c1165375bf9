package gvisor

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"agentsquad"
)

// lockDir takes the data folder for this process; the lock ends with the file or
// the process.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "runtime.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := flock(f); err != nil {
		_ = f.Close()
		return nil, squad.Wrap(squad.CodeConflict, err, "another process runs sandboxes in %s", dir)
	}
	return f, nil
}

// lockPatience bounds the wait for a lock whose holder was killed while it started
// a program: the lock stays with that program until it runs.
const lockPatience = 5 * time.Second

func flock(f *os.File) error {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
