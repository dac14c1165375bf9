// Package reexec is the side of gVisor: what a process does that was started to
// be one of gVisor's. It enters the cgroups of its sandbox, corrects what runsc
// would tell the sandbox about the machine, and becomes runsc.
//
// It imports little besides gVisor, so that the program of command runsc, which
// every sandbox starts half a dozen times, stays as small as it can be.
package reexec

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"gvisor.dev/gvisor/runsc/cli/maincli"

	_ "agentsquad/internal/gvisor/reexec/early" // before all else
	"agentsquad/internal/gvisor/reexec/filter"
	"agentsquad/internal/gvisor/words"
)

// Dispatch hands this process over to gVisor when it was started as gVisor, and
// returns at once in any other: when argument 0 begins with "runsc" or is
// /proc/self/exe (runsc starts some of its helpers that way), or when it is called
// as "squad runsc …".
func Dispatch() {
	switch name := filepath.Base(os.Args[0]); {
	case os.Args[0] == words.SelfExe, strings.HasPrefix(name, "runsc"):
	case len(os.Args) > 1 && os.Args[1] == "runsc":
		os.Args = os.Args[1:]
	default:
		return
	}
	if err := joinCgroups(); err != nil {
		fmt.Fprintln(os.Stderr, "join cgroup:", err)
		os.Exit(words.ExitCgroup)
	}
	if isRootlessRestore(os.Args) {
		os.Exit(rootlessRestore())
	}
	os.Args = adjustBoot(os.Args)
	if slices.Contains(os.Args, "boot") || slices.Contains(os.Args, "gofer") {
		spare()
		if err := filter.Register(); err != nil { // slower, and as safe
			fmt.Fprintln(os.Stderr, err)
		}
	} else {
		debug.SetGCPercent(-1) // it lives for a moment
	}
	maincli.Main()
	os.Exit(0)
}

// joinCgroups moves this process into the cgroups named by the environment.
func joinCgroups() error {
	dirs, ok := os.LookupEnv(words.CgroupEnv)
	if !ok || dirs == "" {
		return nil
	}
	_ = os.Unsetenv(words.CgroupEnv)
	for _, dir := range strings.Split(dirs, ":") {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
}
