package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentsquad"
	"agentsquad/client"
)

func newSandboxShell(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "shell SANDBOX", Short: "Open a terminal in a sandbox", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			in, ok := e.in.(*os.File)
			if !ok || !term.IsTerminal(int(in.Fd())) {
				return squad.Invalid("", "a shell needs a terminal; use `squad sandbox exec` instead")
			}
			return shell(ctx, e, c, in, args[0])
		}),
	}
}

func shell(ctx context.Context, e *env, c *client.Client, in *os.File, id string) error {
	fd := int(in.Fd())
	cols, rows, err := term.GetSize(fd)
	if err != nil {
		return err
	}
	t, err := c.Terminal(ctx, id, cols, rows)
	if err != nil {
		return err
	}
	defer t.Close()
	state, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(fd, state) }()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	go func() {
		for range resized {
			if cols, rows, err := term.GetSize(fd); err == nil {
				_ = t.Resize(cols, rows) // the next change of size tries again
			}
		}
	}()
	go func() { // ends with the process: a read of the keyboard cannot be woken
		_, _ = io.Copy(t, in)
		_ = t.Close()
	}()
	_, err = io.Copy(e.out, t)
	return err
}
