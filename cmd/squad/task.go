package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/client"
)

func newTask(e *env) *cobra.Command {
	return group("task", "Work on the board", []string{"tasks"},
		newTaskAdd(e), newTaskList(e), newTaskShow(e), newTaskEdit(e), newTaskMove(e), newTaskDelete(e),
		newTaskRun(e, false), newTaskRun(e, true), newTaskCancel(e), newTaskMerge(e), newTaskNudge(e), newTaskFork(e),
		newTaskLogs(e), newTaskDiff(e))
}

func newTaskAdd(e *env) *cobra.Command {
	var in squad.NewTask
	var squadName, repo, member, status string
	var priority int
	var follow bool
	cmd := &cobra.Command{
		Use: "add TITLE", Aliases: []string{"create"}, Short: "Put a task on the board", Args: exactly(1),
		Example: `  squad task add "Add a license file" --repo demo --member Ada --run --follow
  squad task add "Fix the login" --description "$(cat report.md)" --priority 2`,
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			s, err := findSquad(ctx, c, squadName)
			if err != nil {
				return err
			}
			in.SquadID, in.Title, in.Status = s.ID, args[0], squad.TaskStatus(status)
			in.Priority = &priority
			if err := nameTask(ctx, c, s.ID, repo, member, &in.RepositoryID, &in.AssigneeID); err != nil {
				return err
			}
			if err := resolveTasks(ctx, c, in.DependsOn); err != nil {
				return err
			}
			from, err := newestSeq(ctx, c)
			if err != nil {
				return err
			}
			t, err := c.CreateTask(ctx, in)
			if err != nil {
				return err
			}
			if follow {
				return followTask(ctx, e, c, t, from)
			}
			if !in.Run || len(in.DependsOn) == 0 || t.ExecutionID == "" {
				return e.done(t, "task %d: %s", t.Number, t.Title)
			}
			x, err := c.Execution(ctx, t.ExecutionID)
			if err != nil {
				return err
			}
			return e.done(t, "task %d: %s; it %s", t.Number, t.Title, stands(x))
		}),
	}
	f := cmd.Flags()
	f.StringVar(&squadName, "squad", "", "squad (name or identifier)")
	f.StringVar(&repo, "repo", "", "repository (name or identifier)")
	f.StringVar(&member, "member", "", "member who does it (name or identifier)")
	f.StringVar(&in.Description, "description", "", "what is to be done, in Markdown")
	f.StringVar(&status, "status", "todo", "backlog or todo")
	f.IntVar(&priority, "priority", 1, "0 low, 1 normal, 2 high, 3 urgent")
	f.StringSliceVar(&in.Labels, "label", nil, "label; may be repeated")
	f.StringSliceVar(&in.DependsOn, "after", nil, "task that must be done first (number or identifier); with --run it waits for it in the queue")
	f.StringVar(&in.BaseBranch, "base", "", "branch to start from")
	f.StringVar(&in.Provider, "provider", "", "where its sandboxes run: local or e2b; the squad's otherwise")
	f.StringVar(&in.Template, "template", "", "what its sandboxes start from; the member's or the squad's otherwise")
	f.Float64Var(&in.Budget.TaskUSD, "budget", 0, "most US dollars")
	f.BoolVar(&in.Run, "run", false, "start it at once")
	f.BoolVar(&follow, "follow", false, "watch it until it waits for you or ends")
	return cmd
}

// stands says in words where an execution that was just asked for is.
func stands(x squad.Execution) string {
	if x.Liveness.State == "dependency" {
		return x.Liveness.Detail
	}
	return fmt.Sprintf("runs, attempt %d", x.Attempt)
}

// nameTask resolves the names of a repository and a member.
func nameTask(ctx context.Context, c *client.Client, squadID, repo, member string, repoID, memberID *string) error {
	if repo != "" {
		r, err := findRepo(ctx, c, squadID, repo)
		if err != nil {
			return err
		}
		*repoID = r.ID
	}
	if member != "" {
		m, err := findMember(ctx, c, squadID, member)
		if err != nil {
			return err
		}
		*memberID = m.ID
	}
	return nil
}

// resolveTasks turns numbers into identifiers, in place.
func resolveTasks(ctx context.Context, c *client.Client, refs []string) error {
	for i, ref := range refs {
		t, err := c.Task(ctx, ref)
		if err != nil {
			return err
		}
		refs[i] = t.ID
	}
	return nil
}

func newTaskList(e *env) *cobra.Command {
	var squadName, member, repo string
	var status []string
	var label, text string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List tasks", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			filter, err := squadFilter(ctx, c, squadName)
			if err != nil {
				return err
			}
			var repoID, memberID string
			if err := nameTask(ctx, c, filter["squad_id"], repo, member, &repoID, &memberID); err != nil {
				return err
			}
			filter["repository_id"], filter["assignee_id"] = repoID, memberID
			filter["status"], filter["label"], filter["q"] = strings.Join(status, ","), label, text
			rows, err := client.Collect(c.Tasks(ctx, filter))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "NO\tSTATUS\tPRIORITY\tTITLE\tBRANCH\tPULL REQUEST\tCOST")
				for _, t := range rows {
					fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Number, stateOf(t), priorities[t.Priority], t.Title, t.GitBranch, t.PullRequestURL, dollars(t.CostUSD))
				}
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&squadName, "squad", "", "only of this squad")
	f.StringVar(&repo, "repo", "", "only of this repository")
	f.StringVar(&member, "member", "", "only of this member")
	f.StringSliceVar(&status, "status", nil, "only in these columns")
	f.StringVar(&label, "label", "", "only with this label")
	f.StringVar(&text, "search", "", "only with these words")
	return cmd
}

var priorities = map[int]string{0: "low", 1: "normal", 2: "high", 3: "urgent"}

func stateOf(t squad.Task) string {
	if t.Flag == squad.FlagNone {
		return string(t.Status)
	}
	return string(t.Status) + " (" + string(t.Flag) + ")"
}

func dollars(usd float64) string {
	if usd == 0 {
		return "-"
	}
	return fmt.Sprintf("$%.2f", usd)
}

func newTaskShow(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "show TASK", Short: "Show a task and its executions", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			t, err := c.Task(ctx, args[0])
			if err != nil {
				return err
			}
			executions, err := client.Collect(c.Executions(ctx, client.Values{"task_id": t.ID}))
			if err != nil {
				return err
			}
			out := struct {
				squad.Task
				Executions []squad.Execution `json:"executions"`
			}{t, executions}
			return e.show(out, func(w io.Writer) { showTask(w, t, executions) })
		}),
	}
}

func showTask(w io.Writer, t squad.Task, executions []squad.Execution) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	line("Task", fmt.Sprintf("%d: %s", t.Number, t.Title))
	line("Status", stateOf(t))
	line("Cause", t.Cause)
	line("Priority", priorities[t.Priority])
	line("Labels", strings.Join(t.Labels, ", "))
	line("Branch", t.GitBranch)
	line("Pull request", t.PullRequestURL)
	line("Cost", dollars(t.CostUSD))
	line("Identifier", t.ID)
	for _, x := range executions {
		took := ""
		if !x.FinishedAt.IsZero() && !x.StartedAt.IsZero() {
			took = x.FinishedAt.Sub(x.StartedAt).Round(time.Millisecond).String()
		}
		why := x.Error
		if !x.Status.Final() {
			why = x.Liveness.Detail
		}
		fmt.Fprintf(w, "Attempt %d\t%s %s %s %s\n", x.Attempt, x.Status, x.Step, took, why)
	}
	if t.Description != "" {
		fmt.Fprintf(w, "\n%s\n", t.Description)
	}
}

func newTaskEdit(e *env) *cobra.Command {
	var title, description, member, repo string
	var priority int
	var labels, after []string
	cmd := &cobra.Command{Use: "edit TASK", Short: "Change what is said about a task", Args: exactly(1)}
	cmd.RunE = e.call(func(ctx context.Context, c *client.Client, args []string) error {
		t, err := c.Task(ctx, args[0])
		if err != nil {
			return err
		}
		var in squad.TaskChange
		given := cmd.Flags().Changed
		if given("title") {
			in.Title = &title
		}
		if given("description") {
			in.Description = &description
		}
		if given("priority") {
			in.Priority = &priority
		}
		if given("label") {
			in.Labels = &labels
		}
		if given("after") {
			if err := resolveTasks(ctx, c, after); err != nil {
				return err
			}
			in.DependsOn = &after
		}
		repoID, memberID := t.RepositoryID, t.AssigneeID
		if err := nameTask(ctx, c, t.SquadID, repo, member, &repoID, &memberID); err != nil {
			return err
		}
		in.RepositoryID, in.AssigneeID = &repoID, &memberID
		if t, err = c.ChangeTask(ctx, t.ID, t.Version, in); err != nil {
			return err
		}
		return e.done(t, "task %d: %s", t.Number, t.Title)
	})
	f := cmd.Flags()
	f.StringVar(&title, "title", "", "title")
	f.StringVar(&description, "description", "", "description")
	f.StringVar(&member, "member", "", "member who does it")
	f.StringVar(&repo, "repo", "", "repository")
	f.IntVar(&priority, "priority", 1, "0 low, 1 normal, 2 high, 3 urgent")
	f.StringSliceVar(&labels, "label", nil, "labels, in place of those it has")
	f.StringSliceVar(&after, "after", nil, "tasks that must be done first, in place of those it has; empty for none")
	return cmd
}

func newTaskMove(e *env) *cobra.Command {
	var in squad.TaskMove
	var flag string
	cmd := &cobra.Command{
		Use: "move TASK STATUS", Short: "Put a task into a column; in_progress starts it", Args: exactly(2),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			in.Status, in.Flag = squad.TaskStatus(args[1]), squad.TaskFlag(flag)
			t, err := c.MoveTask(ctx, args[0], in)
			if err != nil {
				return err
			}
			return e.done(t, "task %d is now %s", t.Number, stateOf(t))
		}),
	}
	cmd.Flags().StringVar(&flag, "flag", "", "blocked, failed or cancelled")
	cmd.Flags().StringVar(&in.Cause, "cause", "", "why the flag is set")
	return cmd
}

func newTaskDelete(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "delete TASK...", Aliases: []string{"rm"}, Short: "Delete tasks with their executions", Args: atLeast(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			for _, ref := range args {
				if err := c.DeleteTask(ctx, ref); err != nil {
					return err
				}
			}
			return e.done(map[string][]string{"deleted": args}, "deleted %s", strings.Join(args, ", "))
		}),
	}
}
