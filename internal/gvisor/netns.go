package gvisor

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// emptyNetwork makes a network namespace with nothing in it, which the file
// processes of all sandboxes share. Held by a descriptor only, it leaves no
// mount behind, whatever becomes of us.
func emptyNetwork() (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- result{err: fmt.Errorf("make network namespace: %w", err)}
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		done <- result{f, err}
	}()
	r := <-done
	return r.f, r.err
}
