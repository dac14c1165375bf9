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

func newTaskRun(e *env, again bool) *cobra.Command {
	var in squad.RunOptions
	var member string
	var follow bool
	use, short := "run TASK", "Start a task"
	if again {
		use, short = "retry TASK", "Start a task again from its last checkpoint"
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Task(ctx, args[0])
			if err != nil {
				return err
			}
			var unused string
			if err := nameTask(ctx, c, t.SquadID, "", member, &unused, &in.MemberID); err != nil {
				return err
			}
			from, err := newestSeq(ctx, c)
			if err != nil {
				return err
			}
			start := c.RunTask
			if again {
				start = c.RetryTask
			}
			x, err := start(ctx, t.ID, in)
			if err != nil {
				return err
			}
			if follow {
				return followTask(ctx, e, c, t, from)
			}
			return e.done(x, "task %d %s", t.Number, stands(x))
		}),
	}
	cmd.Flags().StringVar(&member, "member", "", "another member than the assignee")
	cmd.Flags().StringVar(&in.Message, "message", "", "more instructions for this attempt")
	cmd.Flags().BoolVar(&follow, "follow", false, "watch it until it waits for you or ends")
	return cmd
}

func newTaskCancel(e *env) *cobra.Command {
	var cause string
	cmd := &cobra.Command{
		Use: "cancel TASK", Short: "End all executions of a task; its work stays on the branch", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.CancelTask(ctx, args[0], cause)
			if err != nil {
				return err
			}
			return e.done(t, "task %d is now %s", t.Number, stateOf(t))
		}),
	}
	cmd.Flags().StringVar(&cause, "cause", "cancelled on the command line", "why")
	return cmd
}

func newTaskMerge(e *env) *cobra.Command {
	var in squad.MergeOptions
	cmd := &cobra.Command{
		Use: "merge TASK", Short: "Merge the pull request of a task", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			p, err := c.MergeTask(ctx, args[0], in)
			if err != nil {
				return err
			}
			return e.done(p, "pull request %d is %s", p.Number, p.State)
		}),
	}
	cmd.Flags().StringVar(&in.Method, "method", "", "merge, squash or rebase; the repository's policy otherwise")
	return cmd
}

func newTaskNudge(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "nudge TASK MESSAGE", Short: "Hand a message to the agent", Args: exactly(2),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			m, err := c.NudgeTask(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return e.done(m, "sent")
		}),
	}
}

func newTaskFork(e *env) *cobra.Command {
	var in squad.ForkOptions
	cmd := &cobra.Command{
		Use: "fork TASK", Short: "Try a task several ways at once", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			executions, err := c.ForkTask(ctx, args[0], in)
			if err != nil {
				return err
			}
			return e.show(executions, func(w io.Writer) {
				for _, x := range executions {
					fmt.Fprintf(w, "%s\t%s\n", x.ID, x.Status)
				}
			})
		}),
	}
	cmd.Flags().IntVar(&in.Count, "count", 3, "how many ways")
	return cmd
}

func newTaskDiff(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "diff TASK", Short: "Show what a task has changed", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			d, err := c.DiffTask(ctx, args[0])
			if err != nil {
				return err
			}
			if e.json {
				return e.show(d, nil)
			}
			for _, f := range d.Files {
				fmt.Fprintf(e.out, "%s %s (+%d -%d)\n", f.Status, f.Path, f.Additions, f.Deletions)
				fmt.Fprintln(e.out, f.Patch)
			}
			return nil
		}),
	}
}

func newTaskLogs(e *env) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "logs TASK", Short: "Show what happened to a task, from its beginning", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Task(ctx, args[0])
			if err != nil {
				return err
			}
			if follow {
				return followTask(ctx, e, c, t, 0)
			}
			p := &timeline{e: e}
			for ev, err := range client.List[squad.Event](ctx, c, "/events", client.Values{"task_id": t.ID}) {
				if err != nil {
					return err
				}
				if err := p.print(ev); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "go on until it waits for you or ends")
	return cmd
}

// newestSeq is where to begin following, fixed before something is started.
func newestSeq(ctx context.Context, c *client.Client) (int64, error) {
	return c.LastSeq(ctx)
}

// followTask prints the timeline of a task until it waits for a person or is over.
func followTask(ctx context.Context, e *env, c *client.Client, t squad.Task, from int64) error {
	p := &timeline{e: e, began: time.Now()}
	for ev, err := range c.Events(ctx, client.EventQuery{TaskID: t.ID, After: &from}) {
		if err != nil {
			return err
		}
		if err := p.print(ev); err != nil {
			return err
		}
		if done, err := p.ended(ev); done {
			return err
		}
	}
	return nil
}
