package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// controllers are those that a sandbox has cgroups of, in this order.
var controllers = []string{"cpu", "memory", "pids", "cpuacct"}

// dirs are the folders that the cgroups of a sandbox have, made or not.
func (c *cgroups) dirs(id string) []string {
	var dirs []string
	for _, controller := range controllers {
		if parent := c.parents[controller]; parent != "" && !slices.Contains(dirs, filepath.Join(parent, id)) {
			dirs = append(dirs, filepath.Join(parent, id))
		}
	}
	return dirs
}

// create makes the cgroups of one sandbox and sets its limits.
func (c *cgroups) create(id string, l Limits) error {
	for _, dir := range c.dirs(id) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
	}
	for _, controller := range controllers {
		if c.parents[controller] == "" {
			continue
		}
		for file, value := range c.settings(controller, l) {
			if err := os.WriteFile(filepath.Join(c.parents[controller], id, file), []byte(value), 0o644); err != nil {
				return fmt.Errorf("set %s: %w", file, err)
			}
		}
		if controller == "memory" {
			if err := c.limitSwap(filepath.Join(c.parents[controller], id), l); err != nil {
				return err
			}
		}
	}
	return nil
}

// limitSwap keeps a sandbox that has used up its memory from going on in the swap space
// of the machine, where the kernel counts that.
func (c *cgroups) limitSwap(dir string, l Limits) error {
	file, value := "memory.memsw.limit_in_bytes", memoryBytes(l) // of both together
	if c.v2 {
		file, value = "memory.swap.max", "0"
	}
	path := filepath.Join(dir, file)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		return fmt.Errorf("set %s: %w", file, err)
	}
	return nil
}

func memoryBytes(l Limits) string { return strconv.FormatInt((l.MemoryMB+overheadMB)<<20, 10) }

// settings are the files of one controller and what is written to them.
func (c *cgroups) settings(controller string, l Limits) map[string]string {
	const period = 100_000 // microseconds
	quota := strconv.FormatInt(max(int64(l.CPU*period), 1000), 10)
	bytes := memoryBytes(l)
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
	if controller == "pids" {
		return map[string]string{"pids.max": tasks}
	}
	return nil
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

// abandoned is how old an empty cgroup of another runtime is that nobody is about to
// use.
const abandoned = 10 * time.Minute

// pruneOthers removes what runtimes left whose data folder is gone: cgroups of
// sandboxes without a process, and their parents. Only on version 1, where one that is
// in use again is simply made again.
func (c *cgroups) pruneOthers(prefix string) {
	if c.v2 {
		return
	}
	for _, parent := range c.parents {
		others, _ := filepath.Glob(filepath.Join(filepath.Dir(parent), prefix+"-*"))
		for _, other := range others {
			if other == parent {
				continue
			}
			boxes, _ := os.ReadDir(other)
			for _, box := range boxes {
				if info, err := box.Info(); err == nil && box.IsDir() && time.Since(info.ModTime()) > abandoned {
					_ = unix.Rmdir(filepath.Join(other, box.Name())) // refused while a process is in it
				}
			}
			_ = unix.Rmdir(other)
		}
	}
}

// prune removes the parents, if nothing is left in them.
func (c *cgroups) prune() {
	for _, parent := range c.parents {
		_ = unix.Rmdir(parent)
	}
}
