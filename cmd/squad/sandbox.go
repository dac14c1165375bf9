package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/app"
)

func newSandbox(e *env) *cobra.Command {
	return group("sandbox", "Isolated machines", []string{"sandboxes", "sb"},
		newSandboxCreate(e), newSandboxList(e), newSandboxExec(e), newSandboxShell(e), newSandboxCopy(e),
		newSandboxVerb(e, "pause", "Pause a sandbox, keeping its memory", (*client.Client).PauseSandbox),
		newSandboxVerb(e, "resume", "Resume a sandbox", (*client.Client).ResumeSandbox),
		newSandboxFork(e), newSandboxKill(e))
}

func newSandboxCreate(e *env) *cobra.Command {
	var in squad.SandboxRequest
	var squadName, repo string
	cmd := &cobra.Command{
		Use: "create", Aliases: []string{"add"}, Short: "Create a sandbox and wait until it runs", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			s, err := findSquad(ctx, c, squadName)
			if err != nil {
				return err
			}
			in.SquadID = s.ID
			var unused string
			if err := nameTask(ctx, c, s.ID, repo, "", &in.RepositoryID, &unused); err != nil {
				return err
			}
			b, err := c.CreateSandbox(ctx, in)
			if err != nil {
				return err
			}
			return e.done(b, "%s", b.ID)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&squadName, "squad", "", "squad that pays for it")
	f.StringVar(&repo, "repo", "", "repository to have a checkout of")
	f.StringVar(&in.Template, "template", "", "template; the squad's otherwise")
	f.StringVar(&in.Provider, "provider", "", "local or e2b")
	f.IntVar(&in.TimeoutSec, "timeout", 0, "lifetime in seconds")
	return cmd
}

func newSandboxList(e *env) *cobra.Command {
	var squadName string
	var all bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List sandboxes", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			filter, err := squadFilter(ctx, c, squadName)
			if err != nil {
				return err
			}
			if !all {
				filter["status"] = "created,running,paused"
			}
			rows, err := client.Collect(c.Sandboxes(ctx, filter))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "ID\tSTATUS\tPROVIDER\tTEMPLATE\tCOMMANDS\tCPU\tMEMORY\tCREATED\tMADE IN\tCOST")
				for _, b := range rows {
					cpu, memory := useOf(b.Use)
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d ms\t%s\n", b.ID, b.Status, b.Provider, b.Template, b.CommandCount,
						cpu, memory, when(b.CreatedAt, ""), b.CreateMS, dollars(b.CostUSD))
				}
			})
		}),
	}
	cmd.Flags().StringVar(&squadName, "squad", "", "only of this squad")
	cmd.Flags().BoolVar(&all, "all", false, "also those that have ended")
	return cmd
}

// useOf is what a sandbox used when it was last looked at, in words.
func useOf(use squad.SandboxSample) (cpu, memory string) {
	if use.At.IsZero() {
		return "-", "-"
	}
	return fmt.Sprintf("%.0f%%", use.CPUPct), fmt.Sprintf("%d MB", use.MemoryMB)
}

func newSandboxExec(e *env) *cobra.Command {
	var in squad.Command
	cmd := &cobra.Command{
		Use: "exec SANDBOX -- COMMAND...", Short: "Run a command in a sandbox; its exit code is ours", Args: atLeast(2),
		Example: `  squad sandbox exec 0192… -- git status
  squad sandbox exec 0192… 'cd repo && make test | tail'`,
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			in.Shell = args[1]
			if len(args) > 2 {
				in.Shell = quoted(args[1:])
			}
			res, err := execute(ctx, e, c, args[0], in)
			if err != nil {
				return err
			}
			if res.ExitCode != 0 {
				return exitCode(res.ExitCode & 0xff)
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&in.Dir, "cwd", "", "directory to run in")
	f.StringVar(&in.User, "user", "", "user to run as")
	f.IntVar(&in.TimeoutSec, "timeout", 0, "longest time in seconds; 5 minutes otherwise")
	return cmd
}

// execute runs a command with its output shown as it comes, or whole as JSON.
func execute(ctx context.Context, e *env, c *client.Client, id string, in squad.Command) (squad.CommandResult, error) {
	if e.json {
		res, err := c.Execute(ctx, id, in)
		if err != nil {
			return res, err
		}
		return res, e.show(res, nil)
	}
	streams := squad.Streams{Stdin: e.in, Stdout: e.out, Stderr: e.err}
	if f, ok := e.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		streams.Stdin = nil // squad sandbox shell is for those who type
	}
	res, err := c.Exec(ctx, id, in, streams)
	if err == nil && res.Error != "" {
		fmt.Fprintln(e.err, "squad: "+res.Error)
	}
	return res, err
}

// quoted makes one shell text of several arguments, each kept as it is.
func quoted(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}

func newSandboxVerb(e *env, verb, short string, do func(*client.Client, context.Context, string) (squad.Sandbox, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " SANDBOX", Short: short, Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			b, err := do(c, ctx, args[0])
			if err != nil {
				return err
			}
			return e.done(b, "%s is %s", b.ID, b.Status)
		}),
	}
}

func newSandboxFork(e *env) *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use: "fork SANDBOX", Short: "Make copies of a sandbox as it is now", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			rows, err := c.ForkSandbox(ctx, args[0], count)
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				for _, b := range rows {
					fmt.Fprintln(w, b.ID)
				}
			})
		}),
	}
	cmd.Flags().IntVar(&count, "count", 1, "how many")
	return cmd
}

func newSandboxKill(e *env) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "kill SANDBOX... | --all", Aliases: []string{"rm", "delete"}, Short: "Destroy sandboxes",
		Long: `Destroys sandboxes, with what is in them that was not pushed.

With --all it destroys every one, and those that a stopped server of the data folder
left running.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return none()(cmd, args)
			}
			return atLeast(1)(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every sandbox that this installation has")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		ctx := cmd.Context()
		c, err := e.client()
		if all && squad.CodeOf(err) == squad.CodeUnavailable {
			return killLeft(ctx, e, err)
		}
		if err != nil {
			return err
		}
		if all {
			for sb, err := range c.Sandboxes(ctx, nil) {
				if err != nil {
					return err
				}
				if !sb.Status.Final() {
					ids = append(ids, sb.ID)
				}
			}
		}
		for _, id := range ids {
			if err := c.DeleteSandbox(ctx, id); err != nil {
				return err
			}
		}
		return e.done(map[string][]string{"destroyed": ids}, "destroyed %s", cmp.Or(strings.Join(ids, ", "), "none"))
	}
	return cmd
}

// killLeft is kill --all where no server runs; why says so.
func killLeft(ctx context.Context, e *env, why error) error {
	data, err := filepath.Abs(e.dataDir())
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(data, "sandboxes")); err != nil {
		return why
	}
	n, err := app.KillLeft(ctx, data)
	if err != nil {
		return err
	}
	return e.done(map[string]int{"left_destroyed": n}, "no server runs; destroyed %d sandboxes that it had left", n)
}
