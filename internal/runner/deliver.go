package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/agent"
	"agentsquad/internal/flow"
	"agentsquad/internal/forge"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// commitResult is the state of the branch after a turn.
type commitResult struct {
	Head string `json:"head"`
	New  bool   `json:"new"` // there are commits that were not pushed before
}

// pushResult is where the branch is outside.
type pushResult struct {
	Head    string         `json:"head"`
	BaseSHA string         `json:"base_sha"`
	Commits []squad.Commit `json:"commits"`
	Skip    bool           `json:"skip,omitempty"` // there was nothing to push
	// Problem is a prompt for the agent where the work could not be pushed as it is.
	Problem string `json:"problem,omitempty"`
}

// commit commits what the agent left. Whether a turn did something is read from
// git, not from what the agent says. Work that will not be pushed now (the agent
// failed, or asks) is kept outside as a checkpoint.
func (r *Runner) commit(ctx context.Context, s scene, p place, turn int, result agent.Result) (commitResult, error) {
	c, row, err := r.checkout(ctx, s, p)
	if err != nil {
		return commitResult{}, err
	}
	if result.Outcome != agent.Finished {
		if err := r.checkpoint(ctx, s, p, c, row, turn); err != nil {
			return commitResult{}, err
		}
		if result.Outcome != agent.Asked {
			return commitResult{}, flow.Permanent(r.agentFailed(ctx, s, result))
		}
		return commitResult{}, r.ask(ctx, s, result.Question)
	}
	sign, err := r.signer(ctx, s.squad.ID)
	if err != nil {
		return commitResult{}, err
	}
	done, err := c.Record(ctx, git.CommitOptions{Message: commitMessage(s, turn, result), Author: s.author(), Sign: sign})
	if err != nil {
		return commitResult{}, err
	}
	return commitResult{Head: done.Head, New: done.Head != s.execution.HeadSHA}, nil
}

// signer signs commits of a squad, nil where it has no key.
func (r *Runner) signer(ctx context.Context, squadID string) (git.Signer, error) {
	if r.cfg.SignKey == nil {
		return nil, nil
	}
	key, err := r.cfg.SignKey(ctx, squadID)
	if err != nil || len(key) == 0 {
		return nil, err
	}
	return git.SSHSigner(key)
}

// agentFailed is the error of a turn that did not end well. One that a budget ended
// says so: every agent tells it in other words.
func (r *Runner) agentFailed(ctx context.Context, s scene, result agent.Result) error {
	told, err := r.cfg.Store.Events(ctx, store.EventFilter{ExecutionID: s.execution.ID, Types: []squad.EventType{squad.EventBudgetReached}, Limit: 1})
	if err != nil {
		return err
	}
	if len(told) > 0 || strings.Contains(result.Summary, "does not allow this call") {
		return squad.Errorf(squad.CodeQuota, "budget_reached: %s", orElse(firstLine(result.Summary), "the budget does not allow another call"))
	}
	what := fmt.Sprintf("the agent ended with exit code %d", result.ExitCode)
	if result.Outcome == agent.Stopped {
		what = "the agent was stopped"
	}
	if line := firstLine(result.Summary); line != "" {
		what += ": " + line
	}
	return squad.Errorf(squad.CodeRule, "%s", what)
}

// commitMessage is the message of what the agent left uncommitted.
func commitMessage(s scene, turn int, result agent.Result) string {
	subject := forge.Title(s.task)
	if turn > 1 && s.task.PullRequestURL != "" { // before, it was a question that was answered
		subject = "fix: address review"
	}
	return fmt.Sprintf("%s\n\nTask: #%d", subject, s.task.Number)
}

// checkpoint stores the working tree outside the sandbox as it is.
func (r *Runner) checkpoint(ctx context.Context, s scene, p place, c *git.Checkout, row squad.Sandbox, turn int) error {
	sha, err := c.Checkpoint(ctx, git.CheckpointOptions{
		Ref: checkpointRef(s.execution.ID, turn), Message: fmt.Sprintf("chore: checkpoint of turn %d", turn), Author: s.author(), Base: p.BaseSHA,
		Via: r.cfg.Gateway.Via(row, s.repo),
	})
	if err != nil || sha == "" || sha == p.BaseSHA {
		return err
	}
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error { return r.noteHead(ctx, tx, s, sha, nil) })
}

// noteHead writes down which commit is safe outside the sandbox.
func (r *Runner) noteHead(ctx context.Context, tx *store.Tx, s scene, sha string, commits []squad.Commit) error {
	e, err := tx.Execution(ctx, s.execution.ID)
	if err != nil || e.Status.Final() {
		return err
	}
	_, err = r.cfg.Life.MoveExecution(ctx, tx, s.execution.ID, e.Status, func(e *squad.Execution) {
		if e.HeadSHA = sha; commits != nil {
			e.CommitHistory = commits
		}
	})
	if err != nil {
		return err
	}
	return r.assign(ctx, tx, s.member.ID, func(m *squad.Member) { m.GitContext.Head = sha })
}

// ask puts the agent's question before people.
func (r *Runner) ask(ctx context.Context, s scene, question string) error {
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		return r.send(ctx, tx, squad.Message{
			SquadID: s.squad.ID, TaskID: s.task.ID, ExecutionID: s.execution.ID, From: "member:" + s.member.ID, To: "squad", Kind: "question", Body: question,
		})
	})
}

// push brings the branch outside. A base that moved is rebased on first; what the
// agent must solve comes back as a prompt.
func (r *Runner) push(ctx context.Context, s scene, p place, work commitResult) (pushResult, error) {
	out := pushResult{Head: work.Head, BaseSHA: p.BaseSHA}
	c, row, err := r.checkout(ctx, s, p)
	if err != nil {
		return out, err
	}
	if held, err := r.holdBack(ctx, s, p, c, row); err != nil || held {
		out.Skip = held
		return out, err
	}
	_, auth, err := r.cfg.Gateway.Remote(ctx, row, s.repo)
	if err != nil {
		return out, err
	}
	tip, err := r.cfg.Gateway.Head(ctx, s.repo, p.Base)
	if err != nil {
		return out, err
	}
	moved := tip != "" && tip != p.BaseSHA
	if work.Head == "" { // not after a turn: the branch as it is
		if out.Head, err = c.Head(ctx); err != nil {
			return out, err
		}
		work.New = s.execution.PullRequestURL == ""
	}
	if !moved && !work.New {
		out.Skip = true
		return out, nil
	}
	if moved {
		err := c.Rebase(ctx, git.RebaseOptions{Onto: p.Base, Auth: auth, Fetch: true, Identity: s.author(), Keep: true})
		var clash *git.ConflictError
		if errors.As(err, &clash) {
			out.Problem = clashPrompt(s, p, clash.Files)
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if out.Head, err = c.Head(ctx); err != nil {
			return out, err
		}
		out.BaseSHA = tip
	}
	err = c.Push(ctx, git.PushOptions{
		Branch: p.Branch, Auth: auth, Rebase: !moved, Force: moved, Identity: s.author(), Via: r.cfg.Gateway.Via(row, s.repo), Head: out.Head, Base: out.BaseSHA,
	})
	if squad.CodeOf(err) == squad.CodeRule {
		out.Problem = refusedPrompt(message(err))
		return out, nil
	}
	if err != nil {
		return out, err
	}
	r.cfg.Gateway.Look()
	dir, err := r.cfg.Gateway.Dir(ctx, s.repo)
	if err != nil {
		return out, err
	}
	// Read here: what was pushed is here as well, and a program inside costs more.
	if out.Commits, err = r.cfg.Git.Log(ctx, dir, out.BaseSHA, out.Head, 100); err != nil {
		return out, err
	}
	return out, r.cfg.Store.Tx(ctx, func(tx *store.Tx) error { return r.noteHead(ctx, tx, s, out.Head, out.Commits) })
}

// openPull makes the pull request, or brings it up to date, and moves the task to
// review.
func (r *Runner) openPull(ctx context.Context, s scene, p place, push pushResult, result agent.Result) error {
	evidence := forge.Evidence{
		Summary: strings.TrimSpace(result.Summary), Commits: push.Commits, CostUSD: s.execution.ModelCostUSD + s.execution.SandboxCostUSD,
		Tokens: s.execution.TokensIn + s.execution.TokensOut,
	}
	for _, run := range result.Commands {
		evidence.Commands = append(evidence.Commands, forge.CommandRun(run))
	}
	pull, err := r.cfg.Forges.Ensure(ctx, forge.EnsureRequest{
		Repository: s.repo, Task: s.task, ExecutionID: s.execution.ID, MemberID: s.member.ID, Head: p.Branch, Base: p.Base, Evidence: evidence,
	})
	if err != nil {
		return err
	}
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		_, err := r.cfg.Life.MoveExecution(ctx, tx, s.execution.ID, squad.ExecutionRunning, func(e *squad.Execution) { e.PullRequestURL = pull.URL })
		if err != nil {
			return err
		}
		if _, err := r.cfg.Life.Edit(ctx, tx, s.task.ID, 0, func(t *squad.Task) error {
			t.PullRequestURL = pull.URL
			return nil
		}); err != nil {
			return err
		}
		_, err = r.cfg.Life.Move(ctx, tx, s.task.ID, squad.TaskInReview, squad.FlagNone, "")
		return err
	})
}
