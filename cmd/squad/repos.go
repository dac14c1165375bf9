package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/client"
)

func newRepos(e *env) *cobra.Command {
	return group("repos", "Code that a squad works on", []string{"repo", "repositories"}, newReposList(e), newReposAdd(e), newReposDelete(e))
}

func newReposList(e *env) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List repositories", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			filter, err := squadFilter(ctx, c, name)
			if err != nil {
				return err
			}
			rows, err := client.Collect(c.Repositories(ctx, filter))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "ID\tNAME\tFORGE\tBRANCH\tURL")
				for _, r := range rows {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.Name, r.Forge, r.DefaultBranch, r.URL)
				}
			})
		}),
	}
	cmd.Flags().StringVar(&name, "squad", "", "only of this squad")
	return cmd
}

func newReposAdd(e *env) *cobra.Command {
	var in squad.NewRepository
	var squadName, forge, credential, from string
	cmd := &cobra.Command{
		Use: "add NAME", Aliases: []string{"create"}, Short: "Add a repository", Args: exactly(1),
		Example: `  squad repos add demo --import ~/src/demo
  squad repos add owner/name --forge github --credential my-token`,
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := findSquad(ctx, c, squadName)
			if err != nil {
				return err
			}
			in.SquadID, in.Name, in.Forge = s.ID, args[0], squad.ForgeKind(forge)
			if credential != "" {
				found, err := findCredential(ctx, c, credential)
				if err != nil {
					return err
				}
				in.CredentialID = found.ID
			}
			if from != "" {
				if in.ImportPath, err = filepath.Abs(from); err != nil {
					return err
				}
			}
			r, err := c.CreateRepository(ctx, in)
			if err != nil {
				return err
			}
			return e.done(r, "added repository %s (%s)", r.Name, r.ID)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&squadName, "squad", "", "squad (name or identifier)")
	f.StringVar(&forge, "forge", "local", "local, github or gitea")
	f.StringVar(&in.URL, "clone-url", "", "clone address, where the name does not tell it")
	f.StringVar(&in.APIURL, "api-url", "", "API address of the forge, where it is not github.com's")
	f.StringVar(&in.DefaultBranch, "branch", "", "default branch; asked from the forge otherwise")
	f.StringVar(&credential, "credential", "", "credential (name or identifier)")
	f.StringVar(&from, "import", "", "copy a repository of this machine into the local forge")
	return cmd
}

func newReposDelete(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "delete REPO", Aliases: []string{"rm"}, Short: "Remove a repository; a remote one stays on its forge", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			r, err := findRepo(ctx, c, "", args[0])
			if err != nil {
				return err
			}
			if err := c.DeleteRepository(ctx, r.ID); err != nil {
				return err
			}
			return e.done(r, "removed repository %s", r.Name)
		}),
	}
}

func newCredentials(e *env) *cobra.Command {
	return group("credentials", "Secrets that stay in the server", []string{"credential"}, newCredentialsList(e), newCredentialsAdd(e), newCredentialsDelete(e))
}

func newCredentialsList(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List credentials, without their secrets", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Collect(c.Credentials(ctx, nil))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "ID\tNAME\tKIND\tPROVIDER\tHINT\tSQUAD")
				for _, x := range rows {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, x.Name, x.Kind, x.Provider, x.Hint, x.SquadID)
				}
			})
		}),
	}
}

func newCredentialsAdd(e *env) *cobra.Command {
	var in squad.NewCredential
	var squadName, kind, from string
	cmd := &cobra.Command{
		Use: "add NAME", Aliases: []string{"create"}, Short: "Store a secret, read from the input or a file", Args: exactly(1),
		Example: `  squad credentials add github --kind token --provider github < token.txt
  squad credentials add claude --kind model_key --provider anthropic --from key.txt`,
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			if squadName != "" {
				s, err := findSquad(ctx, c, squadName)
				if err != nil {
					return err
				}
				in.SquadID = s.ID
			}
			secret, err := secretFrom(e, from)
			if err != nil {
				return err
			}
			in.Name, in.Kind, in.Secret = args[0], squad.CredentialKind(kind), secret
			x, err := c.CreateCredential(ctx, in)
			if err != nil {
				return err
			}
			return e.done(x, "stored credential %s (%s)", x.Name, x.ID)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&squadName, "squad", "", "squad it belongs to; the whole installation otherwise")
	f.StringVar(&kind, "kind", "token", "token, github_app, model_key, e2b_key, webhook or sign_key")
	f.StringVar(&in.Provider, "provider", "", "github, gitea, anthropic, openai, gemini or e2b; for one server only, as in gitea:git.example.com")
	f.StringVar(&from, "from", "-", "file that holds the secret; - is the input")
	return cmd
}

func newCredentialsDelete(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "delete CREDENTIAL", Aliases: []string{"rm"}, Short: "Delete a credential", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			x, err := findCredential(ctx, c, args[0])
			if err != nil {
				return err
			}
			if err := c.DeleteCredential(ctx, x.ID); err != nil {
				return err
			}
			return e.done(x, "deleted credential %s", x.Name)
		}),
	}
}
