// Command generate writes the seccomp programs that package filter builds in, for
// the processor it runs on.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"agentsquad/internal/gvisor/reexec/filter"
)

func main() {
	if err := write("programs_" + runtime.GOARCH + ".json"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(name string) error {
	set, err := filter.Compile()
	if err != nil {
		return err
	}
	data, err := json.Marshal(set)
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}
