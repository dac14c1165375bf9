// Command envd is the daemon inside a local sandbox. It is kept a small binary of
// its own, because every command of the sandbox is a child of it.
package main

import (
	"os"

	"agentsquad/internal/envd"
)

func main() {
	envd.Dispatch()
	os.Exit(envd.Main(os.Args[1:])) // by whatever other name
}
