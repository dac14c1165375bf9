package gvisor

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// overheadMB is what gVisor itself needs beside the sandbox's own memory.
const overheadMB = 160

// cgroups makes the cgroups of sandboxes. With no controllers it makes none and
// says why.
type cgroups struct {
	v2      bool
	parents map[string]string // controller to folder; all the same on v2
	missing []string          // limits that cannot be enforced, with the reason
}

// cgroupName is the folder of this runtime's cgroups; data folders do not share it. Two
// containers of one machine may call theirs by the same name, so the name is not all.
func cgroupName(cfg Config) string {
	var stat unix.Stat_t
	_ = unix.Stat(cfg.Dir, &stat)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", cfg.Dir, stat.Dev, stat.Ino))
	return fmt.Sprintf("%s-%x", cfg.CgroupParent, sum[:4])
}

// findCgroups looks for what this process may use. name is the folder under
// which sandboxes are put.
func findCgroups(name string) *cgroups {
	return findCgroupsIn("/proc/self", name)
}

// findCgroupsIn reads which cgroups there are from the files below proc.
func findCgroupsIn(proc, name string) *cgroups {
	c := &cgroups{parents: map[string]string{}}
	own, err := ownCgroups(filepath.Join(proc, "cgroup"))
	if err != nil {
		c.missing = []string{"cpu, memory and process limits of the host: " + err.Error()}
		return c
	}
	mounts := cgroupMounts(filepath.Join(proc, "mounts"))
	unified := sync.OnceValues(func() (string, error) { return baseV2(mounts["unified"], own[""], name) })
	for _, controller := range []string{"cpu", "memory", "pids"} {
		dir, err := "", error(nil)
		if mount := mounts[controller]; mount != "" {
			dir, err = prepareV1(filepath.Join(mount, own[controller], name))
		} else if mounts["unified"] != "" {
			c.v2 = true
			if dir, err = unified(); err == nil {
				dir, err = prepareV2(dir, name, controller)
			}
		} else {
			err = errors.New("no cgroup file system is mounted")
		}
		if err != nil {
			c.lacks(controller, err)
			continue
		}
		c.parents[controller] = dir
	}
	if mount := mounts["cpuacct"]; mount != "" { // counts only; version 2 counts with cpu
		if dir, err := prepareV1(filepath.Join(mount, own["cpuacct"], name)); err == nil {
			c.parents["cpuacct"] = dir
		}
	}
	return c
}

// lacks notes why a limit cannot be enforced. What has the same reason is one note.
func (c *cgroups) lacks(controller string, why error) {
	reason := " limit of the host: " + why.Error()
	for i, note := range c.missing {
		if strings.HasSuffix(note, reason) {
			c.missing[i] = strings.TrimSuffix(note, reason) + ", " + controller + reason
			return
		}
	}
	c.missing = append(c.missing, controller+reason)
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

func prepareV1(dir string) (string, error) { return dir, makeFolder(dir) }

func makeFolder(dir string) error { return os.MkdirAll(dir, 0o755) }

// baseV2 finds the cgroup below which those of sandboxes can be. Only one without
// processes of its own can hand all controllers down, except the very root; trying it
// on another would change what the processes in it are.
//
// Whoever may write to the root uses that: a session always has a shell in its cgroup,
// and systemd cannot start a service again in a cgroup that hands controllers down. Any
// other uses its own cgroup, where it must be alone, and moves to a leaf of that.
func baseV2(mount, own, name string) (string, error) {
	_, err := os.Stat(filepath.Join(mount, "cgroup.type"))
	if root := errors.Is(err, fs.ErrNotExist); root && makeFolder(filepath.Join(mount, name)) == nil {
		return mount, nil
	}
	base := filepath.Join(mount, own)
	data, err := os.ReadFile(filepath.Join(base, "cgroup.procs"))
	if err != nil {
		return "", err
	}
	here := strings.Fields(string(data))
	if alone := slices.Equal(here, []string{strconv.Itoa(os.Getpid())}); !alone && base != mount { // the root of a container is all its own
		return "", fmt.Errorf("squad is not alone in %s", base)
	}
	leaf := filepath.Join(base, name+"-server")
	if err := makeFolder(leaf); err != nil {
		return "", err
	}
	for _, pid := range here {
		err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(pid), 0o644)
		if err != nil && !errors.Is(err, unix.ESRCH) { // it may have ended
			return "", err
		}
	}
	return base, makeFolder(filepath.Join(base, name))
}

// prepareV2 switches a controller on for the children of base/name.
func prepareV2(base, name, controller string) (string, error) {
	if have, err := os.ReadFile(filepath.Join(base, "cgroup.controllers")); err != nil {
		return "", err
	} else if !hasWord(string(have), controller) {
		return "", fmt.Errorf("controller is not delegated to %s", base)
	}
	dir := filepath.Join(base, name)
	if err := enable(base, controller); err != nil {
		return "", err
	}
	return dir, enable(dir, controller)
}

func enable(dir, controller string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	if have, err := os.ReadFile(file); err == nil && hasWord(string(have), controller) {
		return nil
	}
	return os.WriteFile(file, []byte("+"+controller), 0o644)
}

func hasWord(s, word string) bool {
	for _, w := range strings.Fields(s) {
		if w == word {
			return true
		}
	}
	return false
}
