package gvisor

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupEnv tells a runsc which cgroups it enters before it does anything, so
// that all it starts is born inside.
const cgroupEnv = "SQUAD_CGROUPS"

// joinCgroups moves this process into the cgroups named by the environment.
func joinCgroups() error {
	dirs := os.Getenv(cgroupEnv)
	if dirs == "" {
		return nil
	}
	_ = os.Unsetenv(cgroupEnv)
	for _, dir := range strings.Split(dirs, ":") {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
}

// overheadMB is what gVisor itself needs beside the sandbox's own memory.
const overheadMB = 160

// cgroups makes the cgroups of sandboxes. With no controllers it makes none and
// says why.
type cgroups struct {
	v2      bool
	parents map[string]string // controller to folder; all the same on v2
	missing []string          // limits that cannot be enforced, with the reason
}

// cgroupName is the folder of this runtime's cgroups; data folders do not share it.
func cgroupName(cfg Config) string {
	sum := sha256.Sum256([]byte(cfg.Dir))
	return fmt.Sprintf("%s-%x", cfg.CgroupParent, sum[:4])
}

// findCgroups looks for what this process may use. name is the folder under
// which sandboxes are put.
func findCgroups(name string) *cgroups {
	c := &cgroups{parents: map[string]string{}}
	own, err := ownCgroups("/proc/self/cgroup")
	if err != nil {
		c.missing = []string{"cpu, memory and process limits of the host: " + err.Error()}
		return c
	}
	mounts := cgroupMounts("/proc/self/mounts")
	for _, controller := range []string{"cpu", "memory", "pids"} {
		dir, err := "", error(nil)
		if mount := mounts[controller]; mount != "" {
			dir, err = prepareV1(filepath.Join(mount, own[controller], name))
		} else if mount := mounts["unified"]; mount != "" {
			c.v2 = true
			dir, err = prepareV2(filepath.Join(mount, own[""]), name, controller)
		} else {
			err = errors.New("no cgroup file system is mounted")
		}
		if err != nil {
			c.missing = append(c.missing, fmt.Sprintf("%s limit of the host: %v", controller, err))
			continue
		}
		c.parents[controller] = dir
	}
	return c
}

// ownCgroups reads which cgroup this process is in, by controller; "" is v2.
func ownCgroups(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read own cgroup: %w", err)
	}
	defer f.Close()
	own := map[string]string{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		parts := strings.SplitN(sc.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own, nil
}

// cgroupMounts finds where controllers are mounted: by name on v1, "unified" for v2.
func cgroupMounts(path string) map[string]string {
	found := map[string]string{}
	data, _ := os.ReadFile(path)
	for _, line := range strings.Split(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		switch f[2] {
		case "cgroup2":
			found["unified"] = f[1]
		case "cgroup":
			for _, option := range strings.Split(f[3], ",") {
				found[option] = f[1]
			}
		}
	}
	return found
}

func prepareV1(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, nil
}

// prepareV2 makes own/name with the controller switched on for its children. A
// cgroup with processes of its own cannot hand out controllers (the root can),
// so this process moves to a leaf beside it first.
func prepareV2(own, name, controller string) (string, error) {
	if have, err := os.ReadFile(filepath.Join(own, "cgroup.controllers")); err != nil {
		return "", err
	} else if !hasWord(string(have), controller) {
		return "", fmt.Errorf("controller is not delegated to %s", own)
	}
	dir := filepath.Join(own, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := enable(own, controller); errors.Is(err, unix.EBUSY) {
		leaf := filepath.Join(own, name+"-server")
		if err := os.MkdirAll(leaf, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0); err != nil {
			return "", err
		}
		if err := enable(own, controller); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	return dir, enable(dir, controller)
}

func enable(dir, controller string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	if have, err := os.ReadFile(file); err == nil && hasWord(string(have), controller) {
		return nil
	}
	return os.WriteFile(file, []byte("+"+controller), 0)
}

func hasWord(s, word string) bool {
	for _, w := range strings.Fields(s) {
		if w == word {
			return true
		}
	}
	return false
}

// create makes the cgroups of one sandbox and returns their folders.
func (c *cgroups) create(id string, l Limits) ([]string, error) {
	var dirs []string
	made := map[string]bool{}
	for _, controller := range []string{"cpu", "memory", "pids"} {
		parent := c.parents[controller]
		if parent == "" {
			continue
		}
		dir := filepath.Join(parent, id)
		if !made[dir] {
			if err := os.MkdirAll(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return dirs, fmt.Errorf("make cgroup: %w", err)
			}
			made[dir] = true
			dirs = append(dirs, dir)
		}
		for file, value := range c.settings(controller, l) {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
				return dirs, fmt.Errorf("set %s: %w", file, err)
			}
		}
	}
	return dirs, nil
}

// settings are the files of one controller and what is written to them.
func (c *cgroups) settings(controller string, l Limits) map[string]string {
	const period = 100_000 // microseconds
	quota := strconv.FormatInt(max(int64(l.CPU*period), 1000), 10)
	bytes := strconv.FormatInt((l.MemoryMB+overheadMB)<<20, 10)
	tasks := strconv.Itoa(l.MaxProcs*4 + 1024) // threads of gVisor that serve them
	switch {
	case controller == "cpu" && c.v2:
		return map[string]string{"cpu.max": quota + " " + strconv.Itoa(period)}
	case controller == "cpu":
		return map[string]string{"cpu.cfs_quota_us": quota}
	case controller == "memory" && c.v2:
		return map[string]string{"memory.max": bytes}
	case controller == "memory":
		return map[string]string{"memory.limit_in_bytes": bytes}
	}
	return map[string]string{"pids.max": tasks}
}

// cgroupPIDs returns the processes in a cgroup.
func cgroupPIDs(dir string) []int {
	data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	var pids []int
	for _, f := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeCgroups ends all that is left in the cgroups and removes them.
func removeCgroups(ctx context.Context, dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		for tries := 0; ; tries++ {
			err := unix.Rmdir(dir)
			if err == nil || errors.Is(err, unix.ENOENT) {
				break
			}
			if tries > 200 || ctx.Err() != nil {
				errs = append(errs, fmt.Errorf("remove cgroup %s: %w", dir, err))
				break
			}
			for _, pid := range cgroupPIDs(dir) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			time.Sleep(5 * time.Millisecond) // the kernel empties it soon after
		}
	}
	return errors.Join(errs...)
}

// oomKilled says whether the kernel ended a process of these cgroups for want of
// memory.
func oomKilled(dirs []string) bool {
	for _, dir := range dirs {
		for _, file := range []string{"memory.oom_control", "memory.events"} {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				continue
			}
			for _, line := range strings.Split(string(data), "\n") {
				f := strings.Fields(line)
				if len(f) == 2 && f[0] == "oom_kill" && f[1] != "0" {
					return true
				}
			}
		}
	}
	return false
}

// dirs are the folders that the cgroups of a sandbox have, made or not.
func (c *cgroups) dirs(id string) []string {
	var dirs []string
	for _, parent := range c.parents {
		dirs = append(dirs, filepath.Join(parent, id))
	}
	return dirs
}

// strays are cgroups of sandboxes that known does not know.
func (c *cgroups) strays(known func(id string) bool) []string {
	var dirs []string
	for _, parent := range c.parents {
		entries, _ := os.ReadDir(parent)
		for _, e := range entries {
			if e.IsDir() && !known(e.Name()) {
				dirs = append(dirs, filepath.Join(parent, e.Name()))
			}
		}
	}
	return dirs
}

// prune removes the parents, if nothing is left in them.
func (c *cgroups) prune() {
	for _, parent := range c.parents {
		_ = unix.Rmdir(parent)
	}
}
