package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentsquad/internal/app"
	"agentsquad/internal/config"
)

// configFlags adds a flag for each setting of the server, and returns those that
// were given.
func configFlags(cmd *cobra.Command) func() map[string]string {
	for _, o := range config.Default().Options() {
		if o.Name == "data" { // a global flag already
			continue
		}
		f := cmd.Flags().VarPF(o.Value, o.Name, "", o.Usage+" ("+strings.Join(o.Env, ", ")+")")
		if o.Value.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	return func() map[string]string {
		given := map[string]string{}
		cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
		for _, global := range []string{"url", "token", "json", "help", "version"} {
			delete(given, global)
		}
		return given
	}
}

func newUp(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the server",
		Long: `Starts everything on this machine: database, sandboxes, forge, web page and API.
It prints a link that signs you in once, and runs until it is interrupted.

Settings come from flags, SQUAD_* variables, a YAML file and defaults, in this
order; "squad config" shows them.`,
		Example: `  squad up --demo
  squad up --listen 0.0.0.0:7777 --data /srv/squad --public-url https://squad.example.com
  DATABASE_URL=postgres://… squad up`,
		Args: none(),
	}
	given := configFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(config.Sources{Flags: given(), Getenv: e.getenv})
		if err != nil {
			return usageError{fmt.Errorf("the settings are not right:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))}
		}
		return up(cmd.Context(), e, cfg)
	}
	return cmd
}

func up(ctx context.Context, e *env, cfg *config.Config) error {
	began := time.Now()
	house, err := app.Start(ctx, cfg, app.NewLogger(cfg, e.err))
	if err != nil {
		return err
	}
	link, err := house.SignInLink(ctx)
	if err == nil {
		err = e.show(map[string]any{"url": house.URL(), "sign_in": link.URL, "data": cfg.Data, "ready_ms": time.Since(began).Milliseconds()}, func(w io.Writer) {
			fmt.Fprintf(w, "Agent Squad %s is ready after %d ms.\n\n", app.Version, time.Since(began).Milliseconds())
			fmt.Fprintf(w, "  Page\t%s\n", house.URL())
			fmt.Fprintf(w, "  Sign in\t%s\n", link.URL)
			fmt.Fprintf(w, "  \t(works once, for %d minutes; `squad signin` prints another)\n", int(time.Until(link.ExpiresAt).Round(time.Minute).Minutes()))
			fmt.Fprintf(w, "  Data\t%s\n\n", cfg.Data)
		})
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-house.Failed():
		}
	}
	if stopErr := house.Stop(); err == nil {
		err = stopErr
	}
	return err
}

func newConfig(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings and where each comes from, secrets masked",
		Args:  none(),
	}
	given := configFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		cfg, loadErr := config.Load(config.Sources{Flags: given(), Getenv: e.getenv})
		if err := e.show(cfg.Rows(), func(w io.Writer) { _ = cfg.Print(w) }); err != nil {
			return err
		}
		if loadErr != nil {
			return usageError{fmt.Errorf("the settings are not right:\n  %s", strings.ReplaceAll(loadErr.Error(), "\n", "\n  "))}
		}
		return nil
	}
	return cmd
}
