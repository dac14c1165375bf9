package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"agentsquad/client"
	"agentsquad/internal/app"
	"agentsquad/internal/config"
	"agentsquad/internal/demo"
)

func newDemo(e *env) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole of it in a throw-away folder: three agents, three pull requests",
		Long: `Starts a server in a throw-away data folder and has three scripted agents do three
tasks on a small repository, each in a sandbox of its own. Two of them change the
same line: the conflict is seen before anybody merges, one is merged, and the
other is brought up to date by its agent. No key and no network are needed.

The exit code is 0 only if all of that came true.`,
		Args: none(),
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data folder and say where it is")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Minute)
		defer cancel()
		return playDemo(ctx, e, keep)
	}
	return cmd
}

func playDemo(ctx context.Context, e *env, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "squad-demo-")
	if err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	cfg, err := config.Load(config.Sources{Flags: map[string]string{"data": dir, "listen": "127.0.0.1:0", "provider": "local", "log-level": "error"}, Getenv: noEnv})
	if err != nil {
		return err
	}
	house, err := app.Start(ctx, cfg, app.NewLogger(cfg, e.err))
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer func() {
		if !keep {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
			err = errors.Join(err, house.KillSandboxes(end))
			cancel()
		}
		err = errors.Join(err, house.Stop())
		if keep {
			fmt.Fprintf(e.out, "kept %s\n", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	found, err := client.FromData(dir)
	if err != nil {
		return err
	}
	c, err := client.New(found)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "A server on %s with its data in %s.\n\n", house.URL(), dir)
	return demo.Play(ctx, c, e.out, 0)
}

// noEnv keeps the demonstration away from keys and databases of the machine.
func noEnv(string) string { return "" }
