package gvisor

import (
	"debug/elf"
	"fmt"

	"agentsquad"
)

// checkStatic refuses a program that needs a loader: gVisor starts itself again
// in an empty root, where there is none.
func checkStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read own program: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return squad.Errorf(squad.CodeUnavailable,
				"local sandboxes need a statically linked program: build it with CGO_ENABLED=0")
		}
	}
	return nil
}
