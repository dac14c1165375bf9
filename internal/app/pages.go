package app

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// letGo gives back the pages of the program's own file that only its start touched:
// the programs that it carries, the set-up of its packages. What is needed again is
// read from the kernel's cache. Written pages are not among them.
func letGo(ctx context.Context, log *slog.Logger) {
	n, err := dropProgramPages()
	if err != nil {
		log.DebugContext(ctx, "pages of the program were kept", "error", err)
		return
	}
	log.DebugContext(ctx, "pages of the program were given back", "mapped_bytes", n)
}

func dropProgramPages() (bytes uintptr, err error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var from, to uintptr
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); err != nil {
			return bytes, fmt.Errorf("read own mappings: %w", err)
		}
		if !strings.HasSuffix(lines.Text(), " "+self) || strings.Contains(mode, "w") {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
			return bytes, fmt.Errorf("give pages back: %w", errno)
		}
		bytes += to - from
	}
	return bytes, lines.Err()
}
