package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/client"
)

func newSquads(e *env) *cobra.Command {
	return group("squads", "Teams of members", []string{"squad"}, newSquadsList(e), newSquadsCreate(e), newSquadsDelete(e), newSquadsUser(e))
}

func newSquadsList(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List squads", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Collect(c.Squads(ctx, nil))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "ID\tNAME\tSTATUS\tDESCRIPTION")
				for _, s := range rows {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.ID, s.Name, s.Status, s.Description)
				}
			})
		}),
	}
}

func newSquadsCreate(e *env) *cobra.Command {
	var in squad.NewSquad
	cmd := &cobra.Command{
		Use: "create NAME", Aliases: []string{"add"}, Short: "Create a squad", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			in.Name = args[0]
			s, err := c.CreateSquad(ctx, in)
			if err != nil {
				return err
			}
			return e.done(s, "created squad %s (%s)", s.Name, s.ID)
		}),
	}
	cmd.Flags().StringVar(&in.Description, "description", "", "what the squad is for")
	cmd.Flags().IntVar(&in.Config.MaxRunning, "max-running", 0, "executions at once")
	cmd.Flags().Float64Var(&in.Config.Budget.DayUSD, "budget-day", 0, "most US dollars in a day")
	return cmd
}

func newSquadsDelete(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "delete SQUAD", Aliases: []string{"rm"}, Short: "Delete a squad with its members, repositories and tasks", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := findSquad(ctx, c, args[0])
			if err != nil {
				return err
			}
			if err := c.DeleteSquad(ctx, s.ID); err != nil {
				return err
			}
			return e.done(s, "deleted squad %s", s.Name)
		}),
	}
}

func newSquadsUser(e *env) *cobra.Command {
	var role string
	var out bool
	cmd := &cobra.Command{
		Use: "user SQUAD USER", Short: "Give a person a role in a squad, or take them out", Args: exactly(2),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := findSquad(ctx, c, args[0])
			if err != nil {
				return err
			}
			u, err := findUser(ctx, c, args[1])
			if err != nil {
				return err
			}
			if out {
				if err := c.DeleteSquadUser(ctx, s.ID, u.ID); err != nil {
					return err
				}
				return e.done(u, "%s is no longer in %s", u.Name, s.Name)
			}
			place, err := c.PutSquadUser(ctx, s.ID, u.ID, squad.UserRole(role))
			if err != nil {
				return err
			}
			return e.done(place, "%s is now %s in %s", u.Name, role, s.Name)
		}),
	}
	cmd.Flags().StringVar(&role, "role", "member", "admin, member or viewer")
	cmd.Flags().BoolVar(&out, "remove", false, "take the person out")
	return cmd
}

func newMembers(e *env) *cobra.Command {
	return group("members", "Agents of a squad", []string{"member"}, newMembersList(e), newMembersCreate(e), newMembersDelete(e))
}

func newMembersList(e *env) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List members", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			filter, err := squadFilter(ctx, c, name)
			if err != nil {
				return err
			}
			rows, err := client.Collect(c.Members(ctx, filter))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "ID\tNAME\tROLE\tAGENT\tACTIVE\tTASK")
				for _, m := range rows {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%t\t%s\n", m.ID, m.Name, m.Role, m.Config.Agent, m.IsActive, m.CurrentTaskID)
				}
			})
		}),
	}
	cmd.Flags().StringVar(&name, "squad", "", "only of this squad")
	return cmd
}

// squadFilter is the filter of a list by the name of a squad, if one is given.
func squadFilter(ctx context.Context, c *client.Client, name string) (client.Values, error) {
	if name == "" {
		return client.Values{}, nil
	}
	s, err := findSquad(ctx, c, name)
	return client.Values{"squad_id": s.ID}, err
}

func newMembersCreate(e *env) *cobra.Command {
	var in squad.NewMember
	var squadName, agent string
	cmd := &cobra.Command{
		Use: "create NAME", Aliases: []string{"add"}, Short: "Create a member", Args: exactly(1),
		Example: `  squad members create Ada --role developer --agent acp --preset claude
  squad members create Script --agent command --command 'make fix'
  squad members create Max --agent llm --provider anthropic --model claude-sonnet-5`,
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := findSquad(ctx, c, squadName)
			if err != nil {
				return err
			}
			in.SquadID, in.Name, in.Config.Agent = s.ID, args[0], squad.AgentKind(agent)
			m, err := c.CreateMember(ctx, in)
			if err != nil {
				return err
			}
			return e.done(m, "created member %s (%s)", m.Name, m.ID)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&squadName, "squad", "", "squad (name or identifier)")
	f.StringVar(&in.Role, "role", "developer", "developer, reviewer, tester, project_manager, …")
	f.StringVar(&in.Specialization, "specialization", "", "what the member is good at")
	f.StringVar(&agent, "agent", "command", "command, acp or llm")
	f.StringVar(&in.Config.Preset, "preset", "", "ACP preset: claude, codex, gemini, opencode")
	f.StringVar(&in.Config.Command, "command", "", "command of a command or ACP agent")
	f.StringVar(&in.Config.Template, "template", "", "template of its sandboxes; the squad's otherwise")
	f.StringVar(&in.LLMProvider, "provider", "", "anthropic or openai")
	f.StringVar(&in.LLMModel, "model", "", "model")
	f.StringVar(&in.SystemPrompt, "prompt", "", "system prompt")
	f.IntVar(&in.Config.MaxRunning, "max-running", 0, "executions at once")
	f.Float64Var(&in.Config.Budget.DayUSD, "budget-day", 0, "most US dollars in a day")
	return cmd
}

func newMembersDelete(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "delete MEMBER", Aliases: []string{"rm"}, Short: "Delete a member", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			m, err := findMember(ctx, c, "", args[0])
			if err != nil {
				return err
			}
			if err := c.DeleteMember(ctx, m.ID); err != nil {
				return err
			}
			return e.done(m, "deleted member %s", m.Name)
		}),
	}
}
