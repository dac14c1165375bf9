package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agentsquad"
)

// folder is a sandbox's own folder on the host. All a sandbox leaves on disk is
// in it (and in runsc's root and its cgroups).
type folder string

func (f folder) state() string   { return filepath.Join(string(f), "state.json") }
func (f folder) log() string     { return filepath.Join(string(f), "runsc.log") }
func (f folder) bundle() string  { return filepath.Join(string(f), "bundle") }
func (f folder) overlay() string { return filepath.Join(string(f), "overlay") }
func (f folder) door() string    { return filepath.Join(string(f), "door") }
func (f folder) shown() string   { return filepath.Join(string(f), "shown") }
func (f folder) lent() string    { return filepath.Join(f.shown(), "lent") }
func (f folder) image() string   { return filepath.Join(string(f), "image") }
func (f folder) pid() string     { return filepath.Join(string(f), "pid") }

// make creates the folder and what is in it; an existing one is a conflict.
func (f folder) make() error {
	if err := os.Mkdir(string(f), 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return squad.Wrap(squad.CodeConflict, err, "sandbox %q exists already", filepath.Base(string(f)))
		}
		return fmt.Errorf("make sandbox folder: %w", err)
	}
	return f.parts()
}

func (f folder) parts() error {
	for d, mode := range map[string]fs.FileMode{f.bundle(): 0o700, f.overlay(): 0o700, f.shown(): 0o755, filepath.Join(f.bundle(), "rootfs"): 0o755} {
		if err := os.MkdirAll(d, mode); err != nil {
			return fmt.Errorf("make sandbox folder: %w", err)
		}
	}
	return os.Chmod(f.shown(), 0o755) //nolint:gosec // users inside read it; outside it lies in a closed folder
}

// spread asks ext4 to put each folder in dir into a part of the disk of its own, as it
// does for those in a root. Next to each other, new sandboxes look for room among the
// many small files that others have just left, which costs up to a twentieth of a start
// where there is no journal. Any other file system is left alone.
func spread(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	const topDir = 0x20000 // FS_TOPDIR_FL
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&topDir == 0 {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|topDir)
	}
}

// record is what is kept of a sandbox on disk.
type record struct {
	Info
	// PID and Started name the sandbox's process without doubt: a process
	// number is used again, its start time is not. Boot is the host's boot.
	PID     int    `json:"pid,omitempty"`
	Started uint64 `json:"started,omitempty"`
	Boot    string `json:"boot,omitempty"`
	// Root is what the sandbox was made from; a later change of the template
	// does not change it.
	Root Root `json:"root"`
	// Envd is the image that holds the daemon.
	Envd string `json:"envd"`
	// Runsc is the program that started it: a checkpoint is read best by the
	// very same one.
	Runsc string `json:"runsc,omitempty"`
	// Held are the sandbox's own names for its images.
	Held held `json:"held,omitempty"`
	// Lent is a folder of what it is lent from its beginning, see [Sandbox.Lend].
	Lent string `json:"-"`
	// Cgroups are the folders of its cgroups.
	Cgroups []string `json:"cgroups,omitempty"`
}

// writeJSON replaces a file in one step, so that a crash leaves the old or the
// new one.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

func readRecord(f folder) (record, error) {
	var rec record
	data, err := os.ReadFile(f.state())
	if err != nil {
		return rec, fmt.Errorf("read sandbox state: %w", err)
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, fmt.Errorf("read sandbox state: %w", err)
	}
	return rec, nil
}
