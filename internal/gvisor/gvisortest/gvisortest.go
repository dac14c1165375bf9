// Package gvisortest lets tests with real sandboxes run however they were built.
package gvisortest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"agentsquad/internal/gvisor"
)

// Static ends a test program that cannot be a sandbox's program, since it was linked
// with cgo, by running the same tests built without it. Call it in TestMain, after
// [gvisor.Dispatch]. Where the program can, it does nothing.
func Static() {
	if gvisor.CheckProgram() == nil {
		return
	}
	code, err := again()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build the tests without cgo: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// Runsc is the program that a runtime with this data folder starts as runsc.
func Runsc(dir string) string {
	found, _ := filepath.Glob(filepath.Join(dir, "bin", "runsc-*"))
	if len(found) == 0 {
		return "/proc/self/exe"
	}
	return found[0]
}

// again builds and runs the tests of the current folder, where tests always run.
func again() (int, error) {
	dir, err := os.MkdirTemp("", "static-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, filepath.Base(os.Args[0]))
	build := exec.Command("go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	run := exec.Command(program, os.Args[1:]...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = run.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
