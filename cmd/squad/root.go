package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/internal/app"
)

// Exit codes. They are part of the interface: docs/cli.md lists them.
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2
	exitNotFound     = 3
	exitUnauthorized = 4
	exitConflict     = 5
	exitQuota        = 6
	exitUnavailable  = 7
)

// run is the program without its process.
func run(e *env, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(e)
	root.SetArgs(args)
	root.SetIn(e.in)
	root.SetOut(e.out)
	root.SetErr(e.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	if strings.HasPrefix(err.Error(), "unknown command") { // cobra has no type for it
		err = usageError{err}
	}
	e.complain(err)
	return exitOf(err)
}

// exitCode ends the program with the code of a command that ran elsewhere.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// usageError is a mistake in how a command was called.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }

func exitOf(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	switch squad.CodeOf(err) {
	case squad.CodeInvalid, squad.CodeRule, squad.CodeTooLarge:
		return exitUsage
	case squad.CodeNotFound:
		return exitNotFound
	case squad.CodeUnauthorized, squad.CodeForbidden:
		return exitUnauthorized
	case squad.CodeConflict, squad.CodeStale:
		return exitConflict
	case squad.CodeQuota:
		return exitQuota
	case squad.CodeUnavailable, squad.CodeProvider, squad.CodeTimeout:
		return exitUnavailable
	default:
		return exitFailed
	}
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "squad",
		Short: "A squad of AI coding agents, each in a sandbox of its own",
		Long: `Agent Squad puts tasks on a board and has agents do them: each in a sandbox of
its own, on a branch of its own, up to a pull request that you merge.

  squad up --demo          start everything on this machine, with something to look at
  squad task add "…" --run put a task on the board and have it done
  squad events --follow    watch what happens

On the machine of the server no address or token is needed: they are found in
the data folder. From elsewhere use --url and --token, or SQUAD_URL and SQUAD_TOKEN.`,
		Version:       app.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&e.url, "url", e.getenv("SQUAD_URL"), "address of the server (SQUAD_URL)")
	flags.StringVar(&e.token, "token", "", "token to use (SQUAD_TOKEN)")
	flags.StringVar(&e.data, "data", "", "data folder of the server (SQUAD_DATA)")
	flags.BoolVar(&e.json, "json", false, "print JSON")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(&cobra.Group{ID: "server", Title: "The server:"}, &cobra.Group{ID: "work", Title: "Work:"}, &cobra.Group{ID: "access", Title: "Access:"})
	for group, commands := range map[string][]*cobra.Command{
		"server": {newUp(e), newDemo(e), newMCP(e), newDoctor(e), newConfig(e), newVersion(e), newBackup(e), newRestore(e), newOpenAPI(e), newAudit(e)},
		"work":   {newTask(e), newSquads(e), newMembers(e), newRepos(e), newSandbox(e), newTemplates(e), newEvents(e), newMessage(e)},
		"access": {newSignIn(e), newUsers(e), newTokens(e), newKeys(e), newCredentials(e)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	return root
}
