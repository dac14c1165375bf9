package gvisor

import (
	"bytes"
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

	"agentsquad/internal/gvisor/words"
)

// bootID names the running boot of the host; process numbers of another mean
// nothing.
func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// startTime returns when a process began, in ticks since boot, and false when
// there is no such process or it is dead and only waits to be reaped.
func startTime(pid int) (uint64, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	i := bytes.LastIndexByte(data, ')') // the name before it may hold anything
	if i < 0 {
		return 0, false
	}
	fields := strings.Fields(string(data[i+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	n, err := strconv.ParseUint(fields[19], 10, 64)
	return n, err == nil
}

// readPID reads a pid file.
func readPID(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read pid: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("read pid: %q is not one", data)
	}
	return pid, nil
}

// process is a running process that is not our child, held so that its number
// cannot pass to another.
type process struct {
	pid int
	raw int // the number of fd, whose Fd method would take it from the poller
	fd  *os.File
	// gone is closed when the process was seen to have ended.
	gone chan struct{}
}

// openProcess holds the process pid that began at started (0: whichever it is).
func openProcess(pid int, started uint64) (*process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	p := &process{pid: pid, raw: fd, fd: os.NewFile(uintptr(fd), "pidfd"), gone: make(chan struct{})}
	if now, ok := startTime(pid); !ok || (started != 0 && now != started) {
		p.close()
		return nil, fmt.Errorf("open process %d: %w", pid, os.ErrProcessDone)
	}
	return p, nil
}

// wait returns when the process has ended or close was called.
func (p *process) wait() error {
	conn, err := p.fd.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return n > 0 || (err != nil && !errors.Is(err, unix.EINTR))
	})
}

// kill ends the process at once; a dead one is fine.
func (p *process) kill() error {
	err := unix.PidfdSendSignal(p.raw, unix.SIGKILL, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", p.pid, err)
	}
	return nil
}

func (p *process) close() { _ = p.fd.Close() }

// killAndWait ends a process and waits until it is gone.
func killAndWait(ctx context.Context, pid int, started uint64) error {
	p, err := openProcess(pid, started)
	if err != nil {
		return nil // gone already
	}
	defer p.close()
	if err := p.kill(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- p.wait() }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kill process %d: %w", pid, context.Cause(ctx))
	case <-time.After(10 * time.Second):
		return fmt.Errorf("kill process %d: it does not end", pid)
	}
}

// isRunsc says whether a process is one of gVisor's, by the name it was started
// with.
func isRunsc(pid int) bool {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return bytes.HasPrefix(data, []byte("runsc")) || bytes.HasPrefix(data, []byte(words.SelfExe))
}

// runscProcess is a process of gVisor and the sandbox it works for.
type runscProcess struct {
	pid int
	id  string
}

// runscProcesses finds the processes of gVisor that keep their state in root.
func runscProcesses(root string) []runscProcess {
	var found []runscProcess
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(data, []byte("runsc")) {
			continue
		}
		args := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
		if !slices.Contains(args, "--root="+root) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		found = append(found, runscProcess{pid: pid, id: args[len(args)-1]})
	}
	return found
}
