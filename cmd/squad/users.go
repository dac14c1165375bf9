package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/client"
)

func newUsers(e *env) *cobra.Command {
	return group("users", "People who sign in", []string{"user"}, newUsersList(e), newUsersCreate(e), newUsersDelete(e))
}

func newUsersList(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List users", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Collect(c.Users(ctx))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "ID\tNAME\tEMAIL\tADMIN")
				for _, u := range rows {
					fmt.Fprintf(w, "%s\t%s\t%s\t%t\n", u.ID, u.Name, u.Email, u.Admin)
				}
			})
		}),
	}
}

func newUsersCreate(e *env) *cobra.Command {
	var in squad.NewUser
	cmd := &cobra.Command{
		Use: "create NAME", Aliases: []string{"add"}, Short: "Create a user and print their sign-in link", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			in.Name = args[0]
			u, err := c.CreateUser(ctx, in)
			if err != nil {
				return err
			}
			link, err := c.SignInLink(ctx, u.ID)
			if err != nil {
				return err
			}
			out := struct {
				squad.User
				SignIn squad.SignInLink `json:"sign_in"`
			}{u, link}
			return e.done(out, "created user %s (%s)\nsign in: %s", u.Name, u.ID, link.URL)
		}),
	}
	cmd.Flags().StringVar(&in.Email, "email", "", "mail address")
	cmd.Flags().BoolVar(&in.Admin, "admin", false, "administrator of the installation")
	return cmd
}

func newUsersDelete(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "delete USER", Aliases: []string{"rm"}, Short: "Delete a user with their tokens", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			u, err := findUser(ctx, c, args[0])
			if err != nil {
				return err
			}
			if err := c.DeleteUser(ctx, u.ID); err != nil {
				return err
			}
			return e.done(u, "deleted user %s", u.Name)
		}),
	}
}

func newTokens(e *env) *cobra.Command {
	return group("tokens", "Keys to the API", []string{"token"}, newTokensList(e, ""), newTokensCreate(e), newTokensDelete(e))
}

// newKeys are tokens of another kind under the name that E2B's users know.
func newKeys(e *env) *cobra.Command {
	return group("keys", "Keys for E2B SDKs", []string{"key"}, newTokensList(e, squad.TokenE2B), newKeysCreate(e), newTokensDelete(e))
}

func newTokensList(e *env, kind squad.TokenKind) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List them, without their secrets", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Collect(c.Tokens(ctx, client.Values{"kind": string(kind)}))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "ID\tNAME\tKIND\tBEGINS\tSCOPES\tEXPIRES\tLAST USED")
				for _, t := range rows {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s…\t%v\t%s\t%s\n", t.ID, t.Name, t.Kind, t.Prefix, t.Scopes, when(t.ExpiresAt, "never"), when(t.LastUsedAt, "never"))
				}
			})
		}),
	}
}

func when(t time.Time, otherwise string) string {
	if t.IsZero() {
		return otherwise
	}
	return t.Local().Format(time.DateTime)
}

func newTokensCreate(e *env) *cobra.Command {
	var in squad.NewToken
	var user string
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "create NAME", Aliases: []string{"add"}, Short: "Make a token; its secret is shown once", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			in.Name, in.ExpiresIn = args[0], int64(expires.Seconds())
			if user != "" {
				u, err := findUser(ctx, c, user)
				if err != nil {
					return err
				}
				in.UserID = u.ID
			}
			t, err := c.CreateToken(ctx, in)
			if err != nil {
				return err
			}
			return e.done(t, "%s", t.Secret)
		}),
	}
	cmd.Flags().StringSliceVar(&in.Scopes, "scope", nil, "read, write or admin; everything you may do otherwise")
	cmd.Flags().StringVar(&user, "user", "", "for another user; administrators only")
	cmd.Flags().DurationVar(&expires, "expires", 0, "time until it ends; never otherwise")
	return cmd
}

func newKeysCreate(e *env) *cobra.Command {
	var isE2B bool
	in := squad.NewToken{Kind: squad.TokenE2B}
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "create", Aliases: []string{"add"}, Short: "Make a key for E2B SDKs; it is shown once", Args: none(),
		Long: `Makes an API key that the official E2B SDKs take. Point them at this server:

  export E2B_API_KEY=…  E2B_API_URL=http://127.0.0.1:7777  E2B_SANDBOX_URL=http://127.0.0.1:7777`,
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			in.ExpiresIn = int64(expires.Seconds())
			t, err := c.CreateToken(ctx, in)
			if err != nil {
				return err
			}
			out := struct {
				squad.CreatedToken
				Key    string `json:"key"`
				APIURL string `json:"api_url"`
			}{t, t.Secret, c.URL()}
			return e.done(out, "%s", t.Secret)
		}),
	}
	cmd.Flags().BoolVar(&isE2B, "e2b", true, "a key of E2B's form; there is no other yet")
	cmd.Flags().StringVar(&in.Name, "name", "e2b", "name to tell keys apart")
	cmd.Flags().DurationVar(&expires, "expires", 0, "time until it ends; never otherwise")
	return cmd
}

func newTokensDelete(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Aliases: []string{"rm", "revoke"}, Short: "Revoke it", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.DeleteToken(ctx, args[0]); err != nil {
				return err
			}
			return e.done(map[string]string{"id": args[0]}, "revoked %s", args[0])
		}),
	}
}
