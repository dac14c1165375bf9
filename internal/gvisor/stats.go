package gvisor

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentsquad"
)

// Stats is what a sandbox uses at one moment, as the host sees it.
type Stats struct {
	At          time.Time     `json:"at"`
	CPU         time.Duration `json:"cpu"`          // processor time since the last start
	CPUCount    float64       `json:"cpu_count"`    // its limit
	MemoryBytes int64         `json:"memory_bytes"` // held now, caches left out
	CacheBytes  int64         `json:"cache_bytes"`
	MemoryLimit int64         `json:"memory_limit"`
	DiskBytes   int64         `json:"disk_bytes"` // written by it
	DiskLimit   int64         `json:"disk_limit"`
	Processes   int           `json:"processes"` // host processes and threads that serve it
}

// Stats reads what the sandbox uses; a paused one uses disk only.
func (s *Sandbox) Stats(_ context.Context) (Stats, error) {
	rec := s.record()
	if rec.Status.Final() {
		return Stats{}, squad.NotFound("sandbox", s.id)
	}
	st := Stats{
		At: now(), CPUCount: min(rec.CPU, float64(runtime.NumCPU())),
		MemoryLimit: rec.MemoryMB << 20, DiskLimit: rec.DiskMB << 20,
	}
	if rec.Status != squad.SandboxRunning {
		st.DiskBytes = imageSize(s.box.image())
		return st, nil
	}
	_, gofer := s.rt.runsc.processes(s.id)
	for _, pid := range append([]int{rec.PID, gofer}, childrenOf(rec.PID)...) {
		if pid > 1 {
			addProcess(&st, pid)
		}
	}
	st.DiskBytes = overlayBytes(rec.PID, s.box.overlay())
	readCgroup(&st, rec.Cgroups)
	return st, nil
}

// addProcess adds one host process from /proc, the only source where there are
// no cgroups.
func addProcess(st *Stats, pid int) {
	proc := "/proc/" + strconv.Itoa(pid)
	if data, err := os.ReadFile(proc + "/stat"); err == nil {
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		if len(fields) > 17 {
			user, _ := strconv.ParseInt(fields[11], 10, 64)
			system, _ := strconv.ParseInt(fields[12], 10, 64)
			deadUser, _ := strconv.ParseInt(fields[13], 10, 64)
			deadSystem, _ := strconv.ParseInt(fields[14], 10, 64)
			threads, _ := strconv.Atoi(fields[17])
			st.CPU += time.Duration(user+system+deadUser+deadSystem) * 10 * time.Millisecond // USER_HZ is 100 on Linux
			st.Processes += threads
		}
	}
	if data, err := os.ReadFile(proc + "/statm"); err == nil {
		if f := strings.Fields(string(data)); len(f) > 2 {
			rss, _ := strconv.ParseInt(f[1], 10, 64)
			st.MemoryBytes += rss * int64(os.Getpagesize())
		}
	}
}

// childrenOf returns the processes that the gVisor process started to run the
// sandbox's code.
func childrenOf(pid int) []int {
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	var pids []int
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		for _, f := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// overlayBytes is how much the sandbox has on disk: its overlay files have no
// name any more and are found by the descriptors that hold them.
func overlayBytes(pid int, dir string) int64 {
	fds, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	var n int64
	seen := map[uint64]bool{}
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if err != nil || !strings.HasPrefix(target, dir+"/") {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(fd, &st) == nil && !seen[st.Ino] {
			seen[st.Ino] = true
			n += st.Blocks * 512
		}
	}
	return n
}

// readCgroup replaces the sums of /proc by the kernel's own accounts.
func readCgroup(st *Stats, dirs []string) {
	number := func(path string) (int64, bool) {
		data, err := os.ReadFile(path)
		if err != nil {
			return 0, false
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		return n, err == nil
	}
	for _, dir := range dirs {
		for _, file := range []string{"memory.usage_in_bytes", "memory.current"} {
			if n, ok := number(filepath.Join(dir, file)); ok {
				st.CacheBytes = cgroupCache(dir)
				st.MemoryBytes = max(n-st.CacheBytes, 0)
			}
		}
		if n, ok := number(filepath.Join(dir, "cpuacct.usage")); ok {
			st.CPU = time.Duration(n)
		} else if n, ok := cgroupField(dir, "cpu.stat", "usage_usec"); ok {
			st.CPU = time.Duration(n) * time.Microsecond
		}
		if n, ok := number(filepath.Join(dir, "pids.current")); ok {
			st.Processes = int(n)
		}
	}
}

// cgroupCache is the part of the memory that the kernel can take back.
func cgroupCache(dir string) int64 {
	for _, field := range []string{"total_inactive_file", "inactive_file"} {
		if n, ok := cgroupField(dir, "memory.stat", field); ok {
			return n
		}
	}
	return 0
}

// cgroupField reads one line of a cgroup's table.
func cgroupField(dir, file, field string) (int64, bool) {
	data, _ := os.ReadFile(filepath.Join(dir, file))
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) == 2 && f[0] == field {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
