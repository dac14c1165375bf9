// Command runsc is gVisor with our additions and nothing else. `make build` puts
// it into squad, which would otherwise start itself, a much larger program,
// several times for each sandbox.
package main

import (
	"fmt"
	"os"

	"agentsquad/internal/gvisor/reexec"
)

func main() {
	reexec.Dispatch()
	fmt.Fprintln(os.Stderr, "this program must be called runsc")
	os.Exit(2)
}
