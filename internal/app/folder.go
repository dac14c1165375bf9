package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentsquad"
)

// folder is the data folder, held by one server at a time.
type folder struct {
	dir  string
	lock *os.File
}

// openFolder makes the folder where it is missing, for this user only, and
// takes its lock. The lock goes with the process, however it ends.
func openFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "the data folder %s cannot be made; name another one with --data", dir)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "server.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "the data folder %s cannot be written", dir)
	}
	f := &folder{dir: dir, lock: lock}
	if err := f.take(); err != nil {
		_ = lock.Close()
		return nil, squad.Wrap(squad.CodeConflict, err, "another server runs with the data folder %s", dir)
	}
	return f, nil
}

// take gets the lock. A server that was killed while it started a program leaves the
// lock with that program until it runs, which on a busy machine takes a while; so
// unless the server that the folder announces is alive, take waits a moment.
func (f *folder) take() error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := unix.Flock(int(f.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || f.served() || time.Now().After(deadline) {
			return err
		}
	}
}

// served says whether the process that announced itself in the folder lives.
func (f *folder) served() bool {
	var server struct{ PID int }
	raw, err := os.ReadFile(f.path("server.json"))
	return err == nil && json.Unmarshal(raw, &server) == nil && server.PID > 0 && unix.Kill(server.PID, 0) == nil
}

func (f *folder) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

// id names the data folder, whichever process serves it.
func (f *folder) id() (string, error) {
	id, err := readSecret(f.path("node.id"))
	if err != nil || id != "" {
		return id, err
	}
	id = squad.NewID()
	return id, writeFile(f.path("node.id"), []byte(id+"\n"))
}

// announce writes where the server is, for the CLI on this machine.
func (f *folder) announce(url string) error {
	raw, err := json.Marshal(map[string]any{"url": url, "pid": os.Getpid()})
	if err != nil {
		return err
	}
	return writeFile(f.path("server.json"), raw)
}

func (f *folder) close() error {
	err := os.Remove(f.path("server.json"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.lock.Close())
}

// writeFile replaces a file whole, readable by this user only.
func writeFile(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// readSecret reads a one-line file; a missing one is empty.
func readSecret(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(raw)), err
}
