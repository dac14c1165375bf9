package runner

import (
	"context"
	"errors"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/gateway"
	"agentsquad/internal/git"
	"agentsquad/internal/store"
)

// scene is what a step works with, read afresh for each try.
type scene struct {
	execution squad.Execution
	task      squad.Task
	member    squad.Member
	squad     squad.Squad
	repo      squad.Repository
}

func (r *Runner) scene(ctx context.Context, executionID string) (s scene, err error) {
	if s.execution, err = r.cfg.Store.Execution(ctx, executionID); err != nil {
		return s, err
	}
	if s.task, err = r.cfg.Store.Task(ctx, s.execution.TaskID); err != nil {
		return s, err
	}
	if s.squad, err = r.cfg.Store.Squad(ctx, s.execution.SquadID); err != nil {
		return s, err
	}
	if s.execution.MemberID == "" {
		return s, squad.Errorf(squad.CodeRule, "task #%d has nobody to do it: assign a member", s.task.Number)
	}
	if s.member, err = r.cfg.Store.Member(ctx, s.execution.MemberID); err != nil {
		return s, err
	}
	if s.task.RepositoryID == "" {
		return s, squad.Errorf(squad.CodeRule, "task #%d names no repository to work on", s.task.Number)
	}
	s.repo, err = r.cfg.Store.Repository(ctx, s.task.RepositoryID)
	return s, err
}

// provider is where the task's sandboxes run; "" leaves it to the installation.
func (s scene) provider() string { return orElse(s.task.Provider, s.squad.Config.Provider) }

// template is what its sandboxes start from; "" leaves it to the provider.
func (s scene) template() string {
	return orElse(s.task.Template, orElse(s.member.Config.Template, s.squad.Config.Template))
}

// base is the branch that the work goes into.
func (s scene) base() string { return orElse(s.task.BaseBranch, s.repo.DefaultBranch) }

// dir is where the checkout is inside the sandbox.
func (s scene) dir() string { return gateway.CheckoutPath(s.repo) }

// author is the name on the member's commits.
func (s scene) author() git.Identity {
	c := s.member.Config
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s.member.Name)
	return git.Identity{Name: orElse(c.AuthorName, s.member.Name), Email: orElse(c.AuthorMail, strings.Trim(slug, "-")+"@squad.local")}
}

// step runs a named part of the recipe in the journal and shows it on the board:
// the row says where the execution stands, events how long each part took.
func (x *recipe) step(name squad.Step, key string, out any, do func(context.Context, scene) (any, error)) error {
	return x.c.Do(key, func(ctx context.Context) (any, error) {
		s, err := x.scene(ctx, x.id)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		if err := x.enter(ctx, x.id, name); err != nil {
			return nil, err
		}
		v, err := do(ctx, s)
		progress := squad.StepProgress{Step: name, Status: "succeeded", DurationMS: time.Since(start).Milliseconds()}
		if err != nil {
			progress.Status, progress.Detail = "failed", message(err)
		}
		if name == squad.StepSandbox && squad.CodeOf(err) == squad.CodeQuota {
			progress.Status = "retrying"
		}
		return v, errors.Join(err, x.cfg.Events.Append(ctx, s.event(squad.EventStep, progress)))
	}, out, transient)
}

func (s scene) event(t squad.EventType, payload any) squad.Event {
	return squad.Event{
		Type: t, SquadID: s.execution.SquadID, TaskID: s.task.ID, ExecutionID: s.execution.ID, MemberID: s.execution.MemberID,
		SandboxID: s.execution.SandboxID, RepositoryID: s.task.RepositoryID, Payload: event.Payload(payload),
	}
}

// enter notes that the execution is in a step.
func (r *Runner) enter(ctx context.Context, id string, step squad.Step) error {
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, id)
		if err != nil {
			return err
		}
		if e.Status.Final() {
			return squad.Errorf(squad.CodeConflict, "the execution has ended (%s)", e.Status)
		}
		if e.Step == step && e.Status == squad.ExecutionRunning {
			return nil
		}
		_, err = r.cfg.Life.MoveExecution(ctx, tx, id, squad.ExecutionRunning, func(e *squad.Execution) {
			e.Step, e.Percent = step, 0
			e.Liveness = squad.Liveness{State: "working", Since: tx.Now}
		})
		return err
	})
}

// showQuota says what an execution without a sandbox waits for; entering the next step
// ends it.
func (r *Runner) showQuota(ctx context.Context, id, detail string) error {
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, id)
		if err != nil || e.Status != squad.ExecutionRunning || e.Liveness.State == "quota" && e.Liveness.Detail == detail {
			return err
		}
		_, err = r.cfg.Life.MoveExecution(ctx, tx, id, squad.ExecutionRunning, func(e *squad.Execution) {
			e.Liveness = squad.Liveness{State: "quota", Detail: detail, Since: tx.Now}
		})
		return err
	})
}

// message is what users read of an error.
func message(err error) string {
	var e *squad.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "internal error; the log says more"
}

func retryAfter(err error) time.Duration {
	var e *squad.Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
