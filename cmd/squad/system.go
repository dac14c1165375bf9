package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/app"
	"agentsquad/internal/config"
)

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  none(),
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": app.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return e.done(v, "squad %s (%s, %s/%s)", app.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}

func newDoctor(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine this machine and the server, with a remedy for each finding",
		Long: `Checks what Agent Squad needs: isolation of sandboxes, cgroups, git, disk, the
database, forge tokens and their permissions, keys, the clock. Where a server
runs, it is asked too. The exit code is 1 when a check failed.`,
		Args: none(),
	}
	given := configFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
		defer cancel()
		flags := given()
		cfg, loadErr := config.Load(config.Sources{Flags: flags, Getenv: e.getenv})
		checks := app.Examine(ctx, cfg, loadErr)
		if c, err := e.client(); err == nil {
			if more, err := c.Doctor(ctx); err == nil {
				checks = app.MergeChecks(checks, more)
			} else {
				checks = append(checks, squad.Check{Name: "server", Status: "failed", Detail: err.Error(), Remedy: "start it with `squad up`, or look at its log"})
			}
		} else {
			checks = append(checks, squad.Check{Name: "server", Status: "skipped", Detail: "no server runs with this data folder"})
		}
		return report(e, checks)
	}
	return cmd
}

func report(e *env, checks []squad.Check) error {
	failed := 0
	err := e.show(checks, func(w io.Writer) {
		for _, c := range checks {
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Status, c.Name, c.Detail)
			if c.Remedy != "" && c.Status != "ok" {
				fmt.Fprintf(w, "\t\t→ %s\n", c.Remedy)
			}
		}
	})
	for _, c := range checks {
		if c.Status == "failed" {
			failed++
		}
	}
	if err == nil && failed > 0 {
		return exitCode(exitFailed)
	}
	return err
}

func newOpenAPI(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Print the OpenAPI 3.1 document of the API",
		Args:  none(),
		RunE: func(*cobra.Command, []string) error {
			doc, err := app.OpenAPI()
			if err != nil {
				return err
			}
			_, err = e.out.Write(append(doc, '\n'))
			return err
		},
	}
}

func newAudit(e *env) *cobra.Command {
	var filter = client.Values{}
	var actor, action, subject string
	var limit int
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who changed what, newest first",
		Args:  none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			filter["actor"], filter["action"], filter["subject"] = actor, action, subject
			entries := []squad.AuditEntry{}
			for entry, err := range c.Audit(ctx, filter) {
				if err != nil {
					return err
				}
				if entries = append(entries, entry); len(entries) == limit {
					break
				}
			}
			return e.show(entries, func(w io.Writer) {
				fmt.Fprintln(w, "AT\tACTOR\tACTION\tSUBJECT\tFROM")
				for _, x := range entries {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", x.At.Local().Format(time.DateTime), x.Actor, x.Action, x.Subject, x.Remote)
				}
			})
		}),
	}
	cmd.Flags().StringVar(&actor, "actor", "", "only of this actor, for example user:<id>")
	cmd.Flags().StringVar(&action, "action", "", "only this action, for example task.create")
	cmd.Flags().StringVar(&subject, "subject", "", "only about this identifier")
	cmd.Flags().IntVar(&limit, "limit", 50, "most entries")
	return cmd
}

func newBackup(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write everything that the server keeps into one file",
		Long: `Writes database, keys and the repositories of the local forge into one file. It
may run while the server does. The file holds secrets: keep it as you keep the
data folder.`,
		Args: exactly(1),
	}
	given := configFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := config.Load(config.Sources{Flags: given(), Getenv: e.getenv})
		if err != nil {
			return usageError{err}
		}
		size, err := app.Backup(cmd.Context(), cfg, args[0])
		if err != nil {
			return err
		}
		return e.done(map[string]any{"file": args[0], "bytes": size}, "wrote %s (%s)", args[0], bytesText(size))
	}
	return cmd
}

func newRestore(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Fill an empty data folder and database from a backup",
		Long:  `Restores a backup into a data folder and a database that hold nothing yet. The server must not run.`,
		Args:  exactly(1),
	}
	given := configFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := config.Load(config.Sources{Flags: given(), Getenv: e.getenv})
		if err != nil {
			return usageError{err}
		}
		if err := app.Restore(cmd.Context(), cfg, args[0]); err != nil {
			return err
		}
		return e.done(map[string]any{"file": args[0], "data": cfg.Data}, "restored %s into %s", args[0], cfg.Data)
	}
	return cmd
}

func newSignIn(e *env) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use:   "signin",
		Short: "Print a link that signs you in once",
		Args:  none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			id := "me"
			if user != "" {
				u, err := findUser(ctx, c, user)
				if err != nil {
					return err
				}
				id = u.ID
			}
			link, err := c.SignInLink(ctx, id)
			if err != nil {
				return err
			}
			return e.done(link, "%s", link.URL)
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "for another user (name or identifier)")
	return cmd
}

func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, suffix := float64(n)/unit, "KMGT"
	for value >= unit && len(suffix) > 1 {
		value /= unit
		suffix = suffix[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, suffix[0])
}

// secretFrom reads a secret from a file or the input, never from an argument:
// arguments are seen by every process of the machine.
func secretFrom(e *env, path string) (string, error) {
	r := e.in
	if path != "-" && path != "" {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		r = f
	}
	raw, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil {
		return "", err
	}
	for len(raw) > 0 && (raw[len(raw)-1] == '\n' || raw[len(raw)-1] == '\r') {
		raw = raw[:len(raw)-1]
	}
	if len(raw) == 0 {
		return "", squad.Invalid("secret", "is empty; write it to the input or name a file with --from")
	}
	return string(raw), nil
}
