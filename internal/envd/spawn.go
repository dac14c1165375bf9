package envd

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// spawner starts children and reports their exit. As process 1 it also reaps
// whatever orphans the kernel hands to it, which is why os/exec cannot be used
// in this package: its own waiting would race with the reaper.
type spawner struct {
	reaping bool
	born    chan os.Signal // wakes the reaper when it has found no children

	mu      sync.Mutex
	waiting map[int]func(syscall.WaitStatus)
}

// newSpawner returns a spawner; with reap it takes over all children of this
// process from now on, for the life of the process.
func newSpawner(reap bool) *spawner {
	s := &spawner{reaping: reap, born: make(chan os.Signal, 1), waiting: map[int]func(syscall.WaitStatus){}}
	if reap {
		signal.Notify(s.born, syscall.SIGCHLD)
		go s.reap()
	}
	return s
}

// start runs the program at path. exited is called once, from another
// goroutine, must not block, and may be called before start returns.
func (s *spawner) start(path string, argv []string, attr *syscall.ProcAttr, exited func(int, syscall.WaitStatus)) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script without an interpreter line: shells run it
		argv = append([]string{"sh", path}, argv[1:]...)
		pid, err = syscall.ForkExec("/bin/sh", argv, attr)
	}
	if err != nil {
		return 0, fmt.Errorf("fork/exec %s: %w", path, err)
	}
	if s.reaping {
		s.waiting[pid] = func(ws syscall.WaitStatus) { exited(pid, ws) }
		select {
		case s.born <- syscall.SIGCHLD:
		default:
		}
		return pid, nil
	}
	go func() {
		var ws syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &ws, 0, nil); !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		exited(pid, ws)
	}()
	return pid, nil
}

// reap collects every child that ends. It sits in one blocking call; only when
// there is no child at all does it wait for a signal instead.
func (s *spawner) reap() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			<-s.born
			continue
		}
		s.mu.Lock()
		exited := s.waiting[pid]
		delete(s.waiting, pid)
		s.mu.Unlock()
		if exited != nil {
			exited(ws)
		}
	}
}

// lookPath finds cmd as a shell with this environment would.
func lookPath(cmd string, env []string) (string, error) {
	if cmd == "" {
		return "", errors.New("the command is empty")
	}
	if strings.ContainsRune(cmd, '/') {
		return cmd, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, cmd)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", fmt.Errorf("%q: executable file not found in $PATH", cmd)
}
