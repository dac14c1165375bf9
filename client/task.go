package client

import (
	"context"
	"fmt"
	"iter"

	"agentsquad"
)

// Tasks lists tasks.
func (c *Client) Tasks(ctx context.Context, filter Values) iter.Seq2[squad.Task, error] {
	return List[squad.Task](ctx, c, "/tasks", filter)
}

// Task reads a task, by identifier or by number.
func (c *Client) Task(ctx context.Context, ref string) (squad.Task, error) {
	return get[squad.Task](ctx, c, at("tasks", ref))
}

// CreateTask makes a task.
func (c *Client) CreateTask(ctx context.Context, in squad.NewTask) (squad.Task, error) {
	return create[squad.Task](ctx, c, "/tasks", in)
}

// ChangeTask edits a task. Where version is not 0 the edit is refused with
// [squad.CodeStale] if the task has another one by now.
func (c *Client) ChangeTask(ctx context.Context, ref string, version int64, in squad.TaskChange) (squad.Task, error) {
	match := ""
	if version != 0 {
		match = fmt.Sprintf(`"%d"`, version)
	}
	return edit[squad.Task](ctx, c, at("tasks", ref), match, in)
}

// MoveTask puts a task into a column; in_progress starts it.
func (c *Client) MoveTask(ctx context.Context, ref string, in squad.TaskMove) (squad.Task, error) {
	return act[squad.Task](ctx, c, at("tasks", ref, "move"), in)
}

// DeleteTask deletes a task with its executions.
func (c *Client) DeleteTask(ctx context.Context, ref string) error {
	return c.remove(ctx, at("tasks", ref))
}

// BulkTasks changes many tasks; each is done or refused by itself.
func (c *Client) BulkTasks(ctx context.Context, in squad.TaskBulk) ([]squad.BulkResult, error) {
	out, err := act[struct {
		Items []squad.BulkResult `json:"items"`
	}](ctx, c, "/tasks/bulk", in)
	return out.Items, err
}

// RunTask starts a task.
func (c *Client) RunTask(ctx context.Context, ref string, in squad.RunOptions) (squad.Execution, error) {
	return act[squad.Execution](ctx, c, at("tasks", ref, "run"), in)
}

// RetryTask starts a task again from its last checkpoint.
func (c *Client) RetryTask(ctx context.Context, ref string, in squad.RunOptions) (squad.Execution, error) {
	return act[squad.Execution](ctx, c, at("tasks", ref, "retry"), in)
}

// CancelTask ends all executions of a task.
func (c *Client) CancelTask(ctx context.Context, ref, cause string) (squad.Task, error) {
	return act[squad.Task](ctx, c, at("tasks", ref, "cancel"), map[string]string{"cause": cause})
}

// MergeTask merges the pull request of a task.
func (c *Client) MergeTask(ctx context.Context, ref string, in squad.MergeOptions) (squad.PullRequest, error) {
	return act[squad.PullRequest](ctx, c, at("tasks", ref, "merge"), in)
}

// NudgeTask hands a message to the agent of a task.
func (c *Client) NudgeTask(ctx context.Context, ref, text string) (squad.Message, error) {
	return act[squad.Message](ctx, c, at("tasks", ref, "nudge"), map[string]string{"text": text})
}

// ForkTask tries a task several ways at once.
func (c *Client) ForkTask(ctx context.Context, ref string, in squad.ForkOptions) ([]squad.Execution, error) {
	out, err := act[struct {
		Items []squad.Execution `json:"items"`
	}](ctx, c, at("tasks", ref, "fork"), in)
	return out.Items, err
}

// DiffTask is what a task has changed against its base.
func (c *Client) DiffTask(ctx context.Context, ref string) (squad.Diff, error) {
	return get[squad.Diff](ctx, c, at("tasks", ref, "diff"))
}

// Executions lists executions.
func (c *Client) Executions(ctx context.Context, filter Values) iter.Seq2[squad.Execution, error] {
	return List[squad.Execution](ctx, c, "/executions", filter)
}

// Execution reads an execution.
func (c *Client) Execution(ctx context.Context, id string) (squad.Execution, error) {
	return get[squad.Execution](ctx, c, at("executions", id))
}

// CancelExecution ends one execution.
func (c *Client) CancelExecution(ctx context.Context, id, cause string) (squad.Execution, error) {
	return act[squad.Execution](ctx, c, at("executions", id, "cancel"), map[string]string{"cause": cause})
}

// CancelCommand ends only the command that an execution runs now.
func (c *Client) CancelCommand(ctx context.Context, id string) error {
	_, err := act[squad.Execution](ctx, c, at("executions", id, "cancel-command"), nil)
	return err
}

// Reassign continues an execution with another member.
func (c *Client) Reassign(ctx context.Context, id, memberID string) (squad.Execution, error) {
	return act[squad.Execution](ctx, c, at("executions", id, "reassign"), map[string]string{"member_id": memberID})
}

// Keep chooses one execution of a fork.
func (c *Client) Keep(ctx context.Context, id string) (squad.Execution, error) {
	return act[squad.Execution](ctx, c, at("executions", id, "keep"), nil)
}

// GitOperations lists git operations.
func (c *Client) GitOperations(ctx context.Context, filter Values) iter.Seq2[squad.GitOperation, error] {
	return List[squad.GitOperation](ctx, c, "/git-operations", filter)
}

// Pulls lists pull requests.
func (c *Client) Pulls(ctx context.Context, filter Values) iter.Seq2[squad.PullRequest, error] {
	return List[squad.PullRequest](ctx, c, "/pulls", filter)
}

// Pull reads a pull request.
func (c *Client) Pull(ctx context.Context, id string) (squad.PullRequest, error) {
	return get[squad.PullRequest](ctx, c, at("pulls", id))
}

// DiffPull is what a pull request changes.
func (c *Client) DiffPull(ctx context.Context, id string) (squad.Diff, error) {
	return get[squad.Diff](ctx, c, at("pulls", id, "diff"))
}

// Reviews lists the remarks and verdicts on a pull request.
func (c *Client) Reviews(ctx context.Context, id string) iter.Seq2[squad.ReviewComment, error] {
	return List[squad.ReviewComment](ctx, c, at("pulls", id, "reviews"), nil)
}

// ReviewPull remarks on a pull request, approves it or asks for changes.
func (c *Client) ReviewPull(ctx context.Context, id string, in squad.NewReview) (squad.ReviewComment, error) {
	return act[squad.ReviewComment](ctx, c, at("pulls", id, "reviews"), in)
}

// MergePull merges a pull request.
func (c *Client) MergePull(ctx context.Context, id string, in squad.MergeOptions) (squad.PullRequest, error) {
	return act[squad.PullRequest](ctx, c, at("pulls", id, "merge"), in)
}

// ReadyPull marks a draft as ready to be merged.
func (c *Client) ReadyPull(ctx context.Context, id string) (squad.PullRequest, error) {
	return act[squad.PullRequest](ctx, c, at("pulls", id, "ready"), nil)
}

// ClosePull closes a pull request without merging.
func (c *Client) ClosePull(ctx context.Context, id string) (squad.PullRequest, error) {
	return act[squad.PullRequest](ctx, c, at("pulls", id, "close"), nil)
}
