package main

import (
	"context"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/client"
)

func newEvents(e *env) *cobra.Command {
	var follow bool
	var squadName, taskRef string
	var q client.EventQuery
	var after int64
	var types []string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List events, or watch them as they happen",
		Example: `  squad events --follow
  squad events --task 12 --json | jq .payload`,
		Args: none(),
	}
	cmd.RunE = e.call(func(ctx context.Context, c *client.Client, _ []string) error {
		if squadName != "" {
			s, err := findSquad(ctx, c, squadName)
			if err != nil {
				return err
			}
			q.SquadID = s.ID
		}
		if taskRef != "" {
			t, err := c.Task(ctx, taskRef)
			if err != nil {
				return err
			}
			q.TaskID = t.ID
		}
		for _, t := range types {
			q.Types = append(q.Types, squad.EventType(t))
		}
		if cmd.Flags().Changed("after") || !follow {
			q.After = &after
		}
		p := &timeline{e: e}
		events := c.Events(ctx, q)
		if !follow {
			events = c.StoredEvents(ctx, q)
		}
		for ev, err := range events {
			if ctx.Err() != nil {
				return nil // interrupted: that is how following ends
			}
			if err != nil {
				return err
			}
			if err := p.print(ev); err != nil {
				return err
			}
		}
		return nil
	})
	f := cmd.Flags()
	f.BoolVar(&follow, "follow", false, "go on as events happen")
	f.StringVar(&squadName, "squad", "", "only of this squad")
	f.StringVar(&taskRef, "task", "", "only of this task")
	f.StringVar(&q.ExecutionID, "execution", "", "only of this execution")
	f.StringVar(&q.SandboxID, "sandbox", "", "only of this sandbox")
	f.StringSliceVar(&types, "type", nil, "only these types")
	f.Int64Var(&after, "after", 0, "begin behind this event")
	return cmd
}

func newMessage(e *env) *cobra.Command {
	var in squad.NewMessage
	var squadName, member, taskRef string
	cmd := &cobra.Command{
		Use: "message TEXT", Short: "Write to a member or to the whole squad", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := findSquad(ctx, c, squadName)
			if err != nil {
				return err
			}
			in.SquadID, in.Body, in.To = s.ID, args[0], "squad"
			if member != "" {
				m, err := findMember(ctx, c, s.ID, member)
				if err != nil {
					return err
				}
				in.To = "member:" + m.ID
			}
			if taskRef != "" {
				t, err := c.Task(ctx, taskRef)
				if err != nil {
					return err
				}
				in.TaskID = t.ID
			}
			m, err := c.SendMessage(ctx, in)
			if err != nil {
				return err
			}
			return e.done(m, "sent to %s", m.To)
		}),
	}
	cmd.Flags().StringVar(&squadName, "squad", "", "squad (name or identifier)")
	cmd.Flags().StringVar(&member, "member", "", "member (name or identifier); the whole squad otherwise")
	cmd.Flags().StringVar(&taskRef, "task", "", "task that it is about")
	return cmd
}
