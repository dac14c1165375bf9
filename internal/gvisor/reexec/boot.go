package reexec

import (
	"agentsquad/internal/gvisor/words"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// adjustBoot rewrites the arguments of the process that becomes a sandbox's
// kernel: runsc, which is told to leave cgroups alone, would show the whole
// host's memory and processors inside.
func adjustBoot(args []string) []string {
	at, bundle := -1, ""
	for i, a := range args {
		switch {
		case a == "boot":
			at = i
		case at >= 0 && strings.HasPrefix(a, "--bundle="):
			bundle = strings.TrimPrefix(a, "--bundle=")
		case at >= 0 && strings.HasPrefix(a, "--cpu-num"):
			return args // already done, before it changed root
		}
	}
	if bundle == "" {
		return args
	}
	data, err := os.ReadFile(filepath.Join(bundle, words.BootNote))
	if err != nil {
		return args
	}
	var cpus int
	var memory uint64
	if _, err := fmt.Sscan(string(data), &cpus, &memory); err != nil {
		return args
	}
	out := append([]string{}, args[:at+1]...)
	out = append(out, fmt.Sprintf("--cpu-num=%d", cpus))
	for i := at + 1; i < len(args); i++ {
		if args[i] == "--total-memory" && i+1 < len(args) {
			i++
			out = append(out, fmt.Sprintf("--total-memory=%d", memory))
			continue
		}
		out = append(out, args[i])
	}
	return out
}
