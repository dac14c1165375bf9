package gvisor

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// cgroupName is the folder of this runtime's cgroups; data folders do not share it.
func cgroupName(cfg Config) string {
	sum := sha256.Sum256([]byte(cfg.Dir))
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
	if mount := mounts["cpuacct"]; mount != "" { // counts only; version 2 counts with cpu
		if dir, err := prepareV1(filepath.Join(mount, own["cpuacct"], name)); err == nil {
			c.parents["cpuacct"] = dir
		}
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
		if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0o644); err != nil {
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
