package gateway

import (
	"context"
	"fmt"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// caller is who asks, as the database knows it.
type caller struct {
	sandbox   squad.Sandbox
	execution squad.Execution // zero where the sandbox works for none
	task      squad.Task
	member    squad.Member
	squad     squad.Squad
	// attempts are all executions of the task: what one of them stored, the next
	// continues from.
	attempts []string
}

// caller reads who the sandbox works for. A sandbox that ended, waits in the pool
// or belongs to nobody has no way out.
func (g *Gateway) caller(ctx context.Context, sandboxID string) (*caller, error) {
	c := &caller{}
	var err error
	if c.sandbox, err = g.sandbox(ctx, sandboxID); err != nil {
		return nil, err
	}
	if c.sandbox.Status.Final() || c.sandbox.Pooled || c.sandbox.SquadID == "" {
		return nil, squad.Errorf(squad.CodeForbidden, "this sandbox works for no squad")
	}
	s := g.cfg.Store
	if c.squad, err = s.Squad(ctx, c.sandbox.SquadID); err != nil {
		return nil, fmt.Errorf("read squad of sandbox: %w", err)
	}
	taskID, memberID := c.sandbox.TaskID, c.sandbox.AgentID
	if id := c.sandbox.ExecutionID; id != "" {
		if c.execution, err = s.Execution(ctx, id); err != nil {
			return nil, fmt.Errorf("read execution of sandbox: %w", err)
		}
		taskID = c.execution.TaskID
		if c.execution.MemberID != "" {
			memberID = c.execution.MemberID
		}
	}
	if taskID != "" {
		if c.task, err = s.Task(ctx, taskID); err != nil {
			return nil, fmt.Errorf("read task of sandbox: %w", err)
		}
		past, err := s.Executions(ctx, store.ExecutionFilter{TaskID: taskID, Newest: true, Limit: 50})
		if err != nil {
			return nil, fmt.Errorf("read attempts of task: %w", err)
		}
		for _, e := range past {
			c.attempts = append(c.attempts, e.ID)
		}
	}
	if memberID != "" {
		if c.member, err = s.Member(ctx, memberID); err != nil {
			return nil, fmt.Errorf("read member of sandbox: %w", err)
		}
	}
	if (c.task.ID != "" && c.task.SquadID != c.squad.ID) || (c.member.ID != "" && c.member.SquadID != c.squad.ID) {
		return nil, squad.Errorf(squad.CodeForbidden, "this sandbox works for no squad")
	}
	return c, nil
}

func (g *Gateway) sandbox(ctx context.Context, id string) (squad.Sandbox, error) {
	if id == "" {
		return squad.Sandbox{}, squad.NotFound("sandbox", id)
	}
	sb, err := g.cfg.Store.Sandbox(ctx, id)
	if squad.CodeOf(err) == squad.CodeNotFound {
		sb, err = g.cfg.Store.SandboxByE2BID(ctx, id)
	}
	return sb, err
}

// working refuses callers whose work is over: what they spend or push would belong
// to nothing.
func (c *caller) working() error {
	if c.task.ID == "" {
		return squad.Errorf(squad.CodeForbidden, "this sandbox works for no task")
	}
	if c.execution.ID != "" && c.execution.Status.Final() {
		return squad.Errorf(squad.CodeForbidden, "the execution of this sandbox is over (%s)", c.execution.Status)
	}
	return nil
}

// branch is the one branch that the caller may push.
func (c *caller) branch() string { return git.TaskBranch(c.task.Number) }

// event begins an event of the caller's streams.
func (c *caller) event(t squad.EventType, payload []byte) squad.Event {
	return squad.Event{
		Type: t, SquadID: c.squad.ID, TaskID: c.task.ID, ExecutionID: c.execution.ID, MemberID: c.member.ID,
		SandboxID: c.sandbox.ID, RepositoryID: c.task.RepositoryID, Payload: payload,
	}
}
