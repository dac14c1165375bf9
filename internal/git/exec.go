package git

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Stream tells the two outputs of a program apart.
type Stream int

// The outputs.
const (
	Stdout Stream = iota + 1
	Stderr
)

// Command is one run of a program. Env is added to what the place gives.
type Command struct {
	Argv  []string
	Env   []string
	Dir   string
	Stdin io.Reader
	// Output is called with each piece of output, never twice at once, and must
	// not keep the bytes. It may be nil.
	Output func(Stream, []byte)
}

// Exec is a place where programs run. Run returns the exit code of a program that
// ran to its end, whatever the code is, and an error only where it did not.
type Exec interface {
	Run(ctx context.Context, c Command) (exitCode int, err error)
}

// File is a file to write.
type File struct {
	Path string // absolute
	Data []byte
}

// Writer is a place whose files this program can write without a program there,
// which would cost more than the writing. Files are written in their order.
type Writer interface {
	WriteFiles(ctx context.Context, files []File) error
}

// Host runs programs on this machine, in a process group of their own that is
// killed when the context ends. The zero value has a minimal environment.
type Host struct {
	// Path is the PATH of the program; default is the usual system folders.
	Path string
	// Home is its HOME; default is a folder that does not exist.
	Home string
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Run implements [Exec].
func (h Host) Run(ctx context.Context, c Command) (int, error) {
	if len(c.Argv) == 0 {
		return -1, errors.New("run program: no arguments")
	}
	path, home := h.Path, h.Home
	if path == "" {
		path = systemPath
	}
	if home == "" {
		home = "/nonexistent"
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env = append([]string{"PATH=" + path, "HOME=" + home, "LANG=C.UTF-8"}, c.Env...)
	cmd.Dir = c.Dir
	cmd.Stdin = c.Stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if c.Output != nil {
		gate := make(chan struct{}, 1)
		cmd.Stdout = &pipeTo{gate: gate, stream: Stdout, to: c.Output}
		cmd.Stderr = &pipeTo{gate: gate, stream: Stderr, to: c.Output}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return -1, context.Cause(ctx)
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case errors.Is(err, exec.ErrWaitDelay):
		// The program ended well without reading all of its input.
		return cmd.ProcessState.ExitCode(), nil
	case err != nil:
		return -1, err
	}
	return 0, nil
}

// pipeTo hands output on, one piece at a time over both streams.
type pipeTo struct {
	gate   chan struct{}
	stream Stream
	to     func(Stream, []byte)
}

func (p *pipeTo) Write(b []byte) (int, error) {
	p.gate <- struct{}{}
	defer func() { <-p.gate }()
	p.to(p.stream, b)
	return len(b), nil
}
