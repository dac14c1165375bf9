package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/app"
	"agentsquad/internal/config"
)

// env is what a command may touch of the world, and the global flags.
type env struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string

	url   string
	token string
	data  string
	json  bool
}

// dataDir is the data folder in use.
func (e *env) dataDir() string {
	if e.data != "" {
		return e.data
	}
	if dir := e.getenv("SQUAD_DATA"); dir != "" {
		return dir
	}
	return config.DefaultData(e.getenv)
}

// client connects to the server.
func (e *env) client() (*client.Client, error) {
	cfg, err := e.server()
	if err != nil {
		return nil, err
	}
	return client.New(cfg)
}

// server finds the server: named by flags or environment, or through the data
// folder of this machine.
func (e *env) server() (client.Config, error) {
	token := e.token
	if token == "" {
		token = e.getenv("SQUAD_TOKEN")
	}
	cfg := client.Config{URL: e.url, Token: token}
	if cfg.URL == "" || cfg.Token == "" {
		found, err := client.FromData(e.dataDir())
		if err != nil && cfg.URL == "" {
			return cfg, err
		}
		if cfg.URL == "" {
			cfg.URL = found.URL
		}
		// The administrator's token goes to the server it is of, and no other.
		if cfg.Token == "" && err == nil && strings.TrimRight(cfg.URL, "/") == strings.TrimRight(found.URL, "/") {
			cfg.Token = found.Token
		}
		if cfg.Token == "" {
			return cfg, squad.Errorf(squad.CodeUnauthorized, "name a token for %s with --token or SQUAD_TOKEN", cfg.URL)
		}
	}
	cfg.UserAgent = "squad/" + app.Version
	return cfg, nil
}

// complain prints an error the way the rest of the output is printed.
func (e *env) complain(err error) {
	var known *squad.Error
	if !errors.As(err, &known) {
		known = &squad.Error{Code: squad.CodeInternal, Message: err.Error()}
		var usage usageError
		if errors.As(err, &usage) {
			known.Code = squad.CodeInvalid
		}
	}
	if e.json {
		_ = json.NewEncoder(e.err).Encode(map[string]string{"code": string(known.Code), "error": known.Message, "field": known.Field})
		return
	}
	text := known.Message
	if known.Field != "" && !strings.HasPrefix(text, known.Field) {
		text = known.Field + " " + text
	}
	fmt.Fprintln(e.err, "squad: "+text)
}

// show prints v as JSON, or what the function writes as aligned columns.
func (e *env) show(v any, table func(w io.Writer)) error {
	if e.json {
		enc := json.NewEncoder(e.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// done says what was done; with --json it prints the thing.
func (e *env) done(v any, format string, args ...any) error {
	return e.show(v, func(w io.Writer) { fmt.Fprintf(w, format+"\n", args...) })
}

// live says whether a person looks at the output, so that lines may move.
func (e *env) live() bool {
	f, ok := e.out.(*os.File)
	return ok && !e.json && term.IsTerminal(int(f.Fd()))
}

// call wraps the body of a command that needs the server.
func (e *env) call(f func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := e.client()
		if err != nil {
			return err
		}
		return f(cmd.Context(), c, args)
	}
}

// exactly is cobra's check of arguments with our exit code.
func exactly(n int) cobra.PositionalArgs { return asUsage(cobra.ExactArgs(n)) }

func atLeast(n int) cobra.PositionalArgs { return asUsage(cobra.MinimumNArgs(n)) }

func none() cobra.PositionalArgs { return asUsage(cobra.NoArgs) }

func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short string, aliases []string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Aliases: aliases, Args: asUsage(cobra.NoArgs), RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	c.AddCommand(subs...)
	return c
}
