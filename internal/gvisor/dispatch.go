package gvisor

import (
	"os"
	"path/filepath"
	"strings"

	"gvisor.dev/gvisor/runsc/cli/maincli"
)

// selfExe is how runsc names its own program when it starts its helpers.
const selfExe = "/proc/self/exe"

// Dispatch hands this process over to gVisor when it was started as gVisor. It
// is the first line of main and of every TestMain that makes sandboxes, because
// sandboxes are made by running this very program again under another name; in
// any other process it returns at once.
//
// A process is gVisor's when argument 0 begins with "runsc" or is
// /proc/self/exe (runsc starts some of its helpers that way), or when it is
// called as "squad runsc …".
func Dispatch() {
	switch name := filepath.Base(os.Args[0]); {
	case os.Args[0] == selfExe, strings.HasPrefix(name, "runsc"):
	case len(os.Args) > 1 && os.Args[1] == "runsc":
		os.Args = os.Args[1:]
	default:
		return
	}
	if err := joinCgroups(); err != nil {
		os.Stderr.WriteString("join cgroup: " + err.Error() + "\n")
		os.Exit(exitCgroup)
	}
	if isRootlessRestore(os.Args) {
		os.Exit(rootlessRestore())
	}
	os.Args = adjustBoot(os.Args)
	maincli.Main()
	os.Exit(0)
}

// exitCgroup is the exit status of a runsc that could not enter its cgroups.
const exitCgroup = 120
