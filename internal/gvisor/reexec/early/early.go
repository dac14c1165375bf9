// Package early is what a process of gVisor does before the packages of gVisor
// are even set up, which costs more than all that some of its helpers do.
//
// Packages are set up in the order of their import paths as far as their own
// imports allow. This one imports next to nothing and comes first.
package early

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

func init() {
	if fd, dir, ok := umounter(os.Args); ok {
		os.Exit(umount(fd, dir))
	}
}

// umounter says whether this process is the helper that every sandbox starts to
// take away its /proc, and what it is told: "/proc/self/exe umount --sync-fd=3 /proc".
func umounter(args []string) (fd int, dir string, ok bool) {
	if len(args) != 4 || args[0] != "/proc/self/exe" || args[1] != "umount" {
		return 0, "", false
	}
	text, ok := strings.CutPrefix(args[2], "--sync-fd=")
	fd, err := strconv.Atoi(text)
	return fd, args[3], ok && err == nil && fd >= 0
}

// umount waits for one byte and then detaches dir, as "runsc umount" does. It
// returns the exit status.
func umount(fd int, dir string) int {
	var word [1]byte
	for {
		n, err := syscall.Read(fd, word[:])
		if err == syscall.EINTR {
			continue
		}
		if n != 1 || err != nil {
			return 128
		}
		break
	}
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		return 128
	}
	return 0
}
