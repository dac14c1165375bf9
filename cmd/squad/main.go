// Command squad is the whole of Agent Squad in one binary: the server (squad
// up), its command line, and, started again under other names, the runtime and
// the daemon of its sandboxes.
package main

import (
	"os"

	"agentsquad/internal/envd"
	"agentsquad/internal/gvisor"
)

func main() {
	gvisor.Dispatch() // first: a sandbox is this program started again
	envd.Dispatch()
	os.Exit(Main())
}

// Main runs the command line of this process and returns its exit code.
func Main() int {
	return run(&env{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}, os.Args[1:])
}
