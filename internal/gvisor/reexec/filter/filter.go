// Package filter holds the seccomp programs of gVisor's processes, compiled ahead.
//
// gVisor confines its kernel and its file process by seccomp programs. Its own
// releases carry them compiled; the Go module does not, and compiles them anew in
// every sandbox, which costs a quarter of a start. Here they are compiled once, by
// `go generate`, for the one way in which we start sandboxes; gVisor falls back to
// its compiler for every other. A test compiles them again and compares, so that
// an upgrade of gVisor without `go generate` does not pass.
package filter

import (
	"encoding/json"
	"fmt"
	_ "unsafe" // go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	kernel "gvisor.dev/gvisor/runsc/boot/filter"
	files "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

//go:generate go run agentsquad/internal/gvisor/reexec/filter/generate

// Set is the programs of both kinds of processes.
type Set struct {
	Kernel []precompiledseccomp.Program
	Files  []precompiledseccomp.Program
}

// Where gVisor looks for programs that were compiled ahead.
var (
	//go:linkname kernelPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
	kernelPrograms map[string]precompiledseccomp.Program
	//go:linkname filePrograms gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
	filePrograms map[string]precompiledseccomp.Program
)

// Register hands the programs to gVisor. Without them for this processor it does
// nothing.
func Register() error {
	set, err := Known()
	if err != nil || len(set.Kernel) == 0 {
		return err
	}
	kernel.ListPrecompiled() // makes the maps
	files.ListPrecompiled()
	if kernelPrograms == nil || filePrograms == nil {
		return fmt.Errorf("register seccomp programs: gVisor keeps them elsewhere now")
	}
	for _, p := range set.Kernel {
		kernelPrograms[p.Name] = p
	}
	for _, p := range set.Files {
		filePrograms[p.Name] = p
	}
	return nil
}

// Known are the programs for this processor that are built in.
func Known() (set Set, err error) {
	if len(builtIn) == 0 {
		return set, nil
	}
	if err := json.Unmarshal(builtIn, &set); err != nil {
		return set, fmt.Errorf("read seccomp programs: %w", err)
	}
	return set, nil
}
