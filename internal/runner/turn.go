package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	squad "agentsquad"
	"agentsquad/internal/agent"
	"agentsquad/internal/flow"
	"agentsquad/internal/store"
)

// liveTurn is a turn that this node drives now.
type liveTurn struct {
	turn   agent.Turn
	driver agent.Driver
	inbox  chan squad.Message
	// stop ends what the agent runs now, with a cause.
	stop context.CancelCauseFunc
	// watch keeps the turn's liveness.
	watch *watch
}

// runAgent runs one turn, or joins it where it runs already.
func (x *recipe) runAgent(ctx context.Context, number int, prompt, session string) (agent.Result, error) {
	s, err := x.scene(ctx, x.id)
	if err != nil {
		return agent.Result{}, err
	}
	driver := x.cfg.Drivers[s.kind()]
	if driver == nil {
		return agent.Result{}, flow.Permanent(squad.Errorf(squad.CodeRule, "member %s wants an agent of kind %q, which is not available here", s.member.Name, s.kind()))
	}
	if err := x.beginTurn(ctx, number); err != nil {
		return agent.Result{}, err
	}
	t, err := x.newTurn(ctx, s, number, prompt, session)
	if err != nil {
		return agent.Result{}, err
	}
	sink := turnSink{store: x.cfg.Store, key: turnKey(x.id, number)}
	position, err := sink.position(ctx)
	if err != nil {
		return agent.Result{}, err
	}
	return x.drive(ctx, s, driver, t, sink, position)
}

// drive runs the turn with everything around it: bounds, liveness, inbox.
func (x *recipe) drive(ctx context.Context, s scene, driver agent.Driver, t agent.Turn, sink turnSink, position int64) (agent.Result, error) {
	limit := s.member.Config.Timeout
	if limit <= 0 {
		limit = x.cfg.Limits.TurnTimeout
	}
	bounded, cancelTimeout := context.WithTimeoutCause(ctx, limit, errTurnTimeout)
	defer cancelTimeout()
	turnCtx, stop := context.WithCancelCause(bounded)
	defer stop(nil)

	watch := newWatch(x.Runner, x.id)
	live := &liveTurn{turn: t, driver: driver, inbox: make(chan squad.Message, 64), stop: stop, watch: watch}
	live.turn.Inbox = live.inbox
	x.setLive(x.id, live)
	defer x.setLive(x.id, nil)

	out := agent.NewStream(turnCtx, sink, s.event("", nil), position)
	out.Seen = watch.seen
	watching, endWatch := context.WithCancel(turnCtx)
	defer endWatch()
	go watch.run(watching)

	start := time.Now()
	result, err := driver.Turn(turnCtx, live.turn, out)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if ctx.Err() != nil { // the step was cut off: whoever joins next continues from what is stored
		return result, context.Cause(ctx)
	}
	err = errors.Join(err, out.Close(closing))
	if errors.Is(context.Cause(turnCtx), errSandboxLost) {
		return result, errSandboxLost
	}
	if cause := context.Cause(turnCtx); cause != nil && ctx.Err() == nil {
		if stopErr := driver.Stop(closing, live.turn); stopErr != nil {
			x.cfg.Log.WarnContext(ctx, "stop agent", "execution_id", x.id, "error", stopErr)
		}
		return agent.Result{Outcome: agent.Stopped, Summary: cause.Error(), ExitCode: -1}, nil
	}
	progress := squad.StepProgress{Step: squad.StepAgent, Status: "succeeded", DurationMS: time.Since(start).Milliseconds(), Detail: firstLine(result.Summary)}
	if err != nil || result.Outcome == agent.Failed {
		progress.Status = "failed"
	}
	return result, errors.Join(err, x.cfg.Events.Append(ctx, s.event(squad.EventStep, progress)))
}

var errTurnTimeout = errors.New("the turn reached its time limit")

// kind is how the member's agent is driven.
func (s scene) kind() squad.AgentKind {
	switch {
	case s.member.Config.Agent != "":
		return s.member.Config.Agent
	case s.member.Config.Preset != "":
		return squad.AgentACP
	case s.member.Config.Command != "":
		return squad.AgentCommand
	}
	return squad.AgentLLM
}

func (x *recipe) newTurn(ctx context.Context, s scene, number int, prompt, session string) (agent.Turn, error) {
	row, err := x.cfg.Store.Sandbox(ctx, x.place.SandboxID)
	if err != nil {
		return agent.Turn{}, err
	}
	sb, err := x.cfg.Sandboxes.Open(ctx, squad.System(), x.place.SandboxID)
	if err != nil {
		return agent.Turn{}, explain(err)
	}
	env, err := x.cfg.Gateway.AgentEnv(ctx, row, s.member)
	if err != nil {
		return agent.Turn{}, err
	}
	author := s.author()
	if env == nil {
		env = map[string]string{}
	}
	env["GIT_AUTHOR_NAME"], env["GIT_AUTHOR_EMAIL"] = author.Name, author.Email
	env["GIT_COMMITTER_NAME"], env["GIT_COMMITTER_EMAIL"] = author.Name, author.Email
	if prompt == "" {
		prompt = firstPrompt(s, x.place)
	}
	var may func(context.Context, string) error
	if c := s.squad.Config; len(c.AllowCommands)+len(c.DenyCommands)+len(c.RoleCommands) > 0 {
		who := squad.Actor{Kind: squad.TokenAgent, MemberID: s.member.ID, SquadID: s.squad.ID, TaskID: s.task.ID, SandboxID: row.ID, MemberRole: s.member.Role}
		may = func(ctx context.Context, line string) error { return x.cfg.Sandboxes.CheckCommand(ctx, who, row, line) }
	}
	return agent.Turn{
		Number: number, May: may, Task: s.task, Execution: s.execution, Member: s.member, Dir: x.place.Dir, Prompt: prompt, Session: session, Env: env, Box: box{sb},
	}, nil
}

// beginTurn writes down which turn it is.
func (r *recipe) beginTurn(ctx context.Context, number int) error {
	if err := r.enter(ctx, r.id, squad.StepAgent); err != nil {
		return err
	}
	return r.cfg.Store.Tx(ctx, func(tx *store.Tx) error {
		e, err := tx.Execution(ctx, r.id)
		if err != nil || e.Turn == number {
			return err
		}
		_, err = r.cfg.Life.MoveExecution(ctx, tx, r.id, squad.ExecutionRunning, func(e *squad.Execution) { e.Turn = number })
		return err
	})
}

func (r *Runner) setLive(executionID string, live *liveTurn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if live == nil {
		delete(r.turns, executionID)
		return
	}
	r.turns[executionID] = live
}

func (r *Runner) live(executionID string) *liveTurn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[executionID]
}

// SandboxLost tells the turn that works in a sandbox that it is gone: it goes on in
// a new one at once, however long its own connections would have taken to notice.
func (r *Runner) SandboxLost(row squad.Sandbox) {
	if live := r.live(row.ExecutionID); live != nil && live.turn.Execution.SandboxID == row.ID {
		live.stop(errSandboxLost)
	}
}

// stopTurn ends the agent of an execution inside its sandbox, whichever node
// drives it.
func (r *Runner) stopTurn(ctx context.Context, e squad.Execution) error {
	if e.SandboxID == "" || e.Turn == 0 {
		return nil
	}
	row, err := r.cfg.Store.Sandbox(ctx, e.SandboxID)
	if err != nil || row.Status.Final() {
		return err
	}
	s, err := r.scene(ctx, e.ID)
	if err != nil {
		return err
	}
	driver := r.cfg.Drivers[s.kind()]
	if driver == nil {
		return nil
	}
	sb, err := r.cfg.Sandboxes.Open(ctx, squad.System(), e.SandboxID)
	if err != nil {
		return explain(err)
	}
	if err := driver.Stop(ctx, agent.Turn{Number: e.Turn, Execution: e, Member: s.member, Box: box{sb}}); err != nil {
		return fmt.Errorf("stop agent: %w", err)
	}
	return nil
}
