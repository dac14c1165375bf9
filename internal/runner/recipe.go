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

// input is what an execution's flow begins with.
type input struct {
	ExecutionID string `json:"execution_id"`
}

// Signals of an execution's flow.
const (
	signalSlot = "slot" // the queue gave it its place back
	signalWake = "wake" // something happened outside: a [wake]
)

// wake tells a waiting execution what happened.
type wake struct {
	Kind   string `json:"kind"` // turn, rebase, kept, merged or closed
	Reason string `json:"reason,omitempty"`
}

// Bounds of one execution, so that a loop of failing checks and useless answers
// comes to an end.
const (
	maxTurns   = 25
	maxClashes = 3 // turns in a row that did not lead to a push
	maxLost    = 2 // sandboxes that may be lost in one turn
)

// pauseAfter is how long a sandbox stays warm after a pull request was opened:
// answers that come at once find it running.
const pauseAfter = 2 * time.Minute

// Retries of steps. Those that speak to a provider or a forge are tried again
// after transient failures; the engine stops at once at a permanent one.
var (
	transient  = flow.Retry{Attempts: 4, Backoff: time.Second, MaxBackoff: 15 * time.Second, Timeout: 20 * time.Minute, If: worthATry}
	agentRetry = flow.Retry{Attempts: 3, Backoff: time.Second, Timeout: -1, If: worthATry} // a turn has a bound of its own
)

// worthATry says whether the same thing may go better a moment later. A lost
// sandbox does not come back; rules and conflicts do not change by themselves; a
// quota is waited for outside the step, with the cause shown.
func worthATry(err error) bool {
	if errors.Is(err, errSandboxLost) {
		return false
	}
	switch squad.CodeOf(err) {
	case squad.CodeProvider, squad.CodeUnavailable, squad.CodeTimeout, squad.CodeInternal:
		return true
	}
	return false
}

// recipe is one run of the flow function. Its fields are what finished steps
// returned, so that a run after a crash has the same ones.
type recipe struct {
	*Runner
	c     flow.Context
	id    string // of the execution
	place place
	// session is the agent's conversation, over turns.
	session string
	result  agent.Result // of the last turn
	turn    int
	clashes int
	rebases int
	waits   int // of the current turn
}

// place is where the execution works.
type place struct {
	SandboxID string `json:"sandbox_id"`
	Dir       string `json:"dir"`
	Mounted   bool   `json:"mounted"` // the tree came with the sandbox
	Fresh     bool   `json:"fresh"`   // and no execution was in it before
	Branch    string `json:"branch"`
	Base      string `json:"base"`     // branch
	BaseSHA   string `json:"base_sha"` // commit of it that the work stands on
}

// execute is the flow of an execution.
func (r *Runner) execute(c flow.Context) error {
	var in input
	if err := c.Input(&in); err != nil {
		return err
	}
	x := &recipe{Runner: r, c: c, id: in.ExecutionID}
	err := x.run()
	if err == nil || errors.Is(err, flow.ErrCancelled) {
		return err // whoever cancelled it wrote the rows and started the clean-up
	}
	return c.Do("fail", func(ctx context.Context) (any, error) { return nil, r.fail(ctx, x.id, err) }, nil, transient)
}

func (x *recipe) run() error {
	if err := x.prepare(); err != nil {
		return err
	}
	n, err := x.takeTurn("")
	for err == nil {
		switch {
		case n.end != nil:
			return x.c.Do("finish", func(ctx context.Context) (any, error) { return nil, x.settle(ctx, x.id, *n.end) }, nil, transient)
		case n.prompt != "":
			n, err = x.takeTurn(n.prompt)
		case n.rebase:
			n, err = x.bringUpToDate()
		default:
			n, err = x.await(n.question)
		}
	}
	return err
}

// next says what follows: another turn with this prompt, a rebase, the end, or,
// where all are empty, a wait.
type next struct {
	prompt   string
	rebase   bool
	end      *wake
	question bool
}

// prepare makes the place: sandbox, checkout, branch. A quota of the provider is
// no failure: the execution waits and asks again.
func (x *recipe) prepare() error {
	for try := 1; ; try++ {
		err := x.step(squad.StepSandbox, fmt.Sprintf("sandbox/%d", try), &x.place, func(ctx context.Context, s scene) (any, error) {
			p, err := x.makeSandbox(ctx, s, x.c.Fence())
			if squad.CodeOf(err) == squad.CodeQuota {
				err = errors.Join(err, x.showQuota(ctx, x.id, message(err)))
			}
			return p, err
		})
		if err == nil {
			break
		}
		if squad.CodeOf(err) != squad.CodeQuota || try >= 500 {
			return err
		}
		if err := x.c.Sleep(fmt.Sprintf("quota/%d", try), quotaWait(err)); err != nil {
			return err
		}
	}
	if err := x.step(squad.StepClone, "clone", &x.place, func(ctx context.Context, s scene) (any, error) { return x.clone(ctx, s, x.place) }); err != nil {
		return err
	}
	return x.step(squad.StepBranch, "branch", &x.place, func(ctx context.Context, s scene) (any, error) { return x.branch(ctx, s, x.place) })
}

// takeTurn lets the agent work once and delivers what it did.
func (x *recipe) takeTurn(prompt string) (next, error) {
	if x.turn++; x.turn > maxTurns {
		return next{}, squad.Errorf(squad.CodeRule, "the execution took %d turns and came to no end", maxTurns)
	}
	n := x.turn
	result, err := x.work(n, prompt)
	if err != nil {
		return next{}, err
	}
	x.session, x.result = result.Session, result
	var work commitResult
	err = x.step(squad.StepCommit, x.key("commit"), &work, func(ctx context.Context, s scene) (any, error) { return x.commit(ctx, s, x.place, n, result) })
	if err != nil || result.Outcome == agent.Asked {
		return next{question: true}, err
	}
	if work.Head == x.place.BaseSHA {
		return next{}, x.nothing(n, result)
	}
	return x.deliver(x.key, work, result)
}

// work is one turn of the agent. A sandbox that is lost under it is replaced, the
// work comes back from the last checkpoint, and the turn begins anew there.
func (x *recipe) work(turn int, prompt string) (agent.Result, error) {
	for try := 1; ; try++ {
		key, again := x.key("agent"), x.key("replace")
		if try > 1 {
			key, again = fmt.Sprintf("%s.%d", key, try), fmt.Sprintf("%s.%d", again, try)
		}
		var end turnEnd
		err := x.c.Do(key, func(ctx context.Context) (any, error) {
			result, err := x.runAgent(ctx, turn, prompt, x.session)
			if errors.Is(err, errSandboxLost) {
				return turnEnd{Lost: true}, nil
			}
			return turnEnd{Result: result}, err
		}, &end, agentRetry)
		if err != nil || !end.Lost {
			return end.Result, err
		}
		if try > maxLost {
			return end.Result, squad.Errorf(squad.CodeProvider, "the sandbox was lost %d times in one turn", try)
		}
		err = x.step(squad.StepSandbox, again, &x.place, func(ctx context.Context, s scene) (any, error) { return x.replace(ctx, s, turn) })
		if err != nil {
			return end.Result, err
		}
		x.session = "" // it went with the sandbox
	}
}

// turnEnd is what the journal keeps of a turn.
type turnEnd struct {
	agent.Result
	Lost bool `json:"lost,omitempty"`
}

// replace makes the place anew, and forgets how far the lost agent was heard.
func (x *recipe) replace(ctx context.Context, s scene, turn int) (place, error) {
	if _, err := x.cfg.Sandboxes.Status(ctx, squad.System(), x.place.SandboxID); err != nil { // writes down what is true
		return x.place, err
	}
	lost := squad.Liveness{State: "sandbox_lost", Detail: "its sandbox was lost; it goes on in a new one", Since: time.Now().UTC()}
	if err := x.noteLiveness(ctx, x.id, lost); err != nil {
		return x.place, err
	}
	p, err := x.resume(ctx, s, x.place, x.c.Fence())
	if err != nil {
		return p, err
	}
	return p, x.cfg.Store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSetting(ctx, turnKey(x.id, turn)) })
}

// bringUpToDate rebases the branch on a base that moved under it. Where that goes
// by itself no agent is asked.
func (x *recipe) bringUpToDate() (next, error) {
	x.rebases++
	key := func(step string) string { return fmt.Sprintf("rebase.%s/%d", step, x.rebases) }
	return x.deliver(key, commitResult{}, x.result)
}

// deliver pushes and opens the pull request, or brings it up to date.
func (x *recipe) deliver(key func(string) string, work commitResult, result agent.Result) (next, error) {
	var push pushResult
	err := x.step(squad.StepPush, key("push"), &push, func(ctx context.Context, s scene) (any, error) { return x.push(ctx, s, x.place, work) })
	if err != nil || push.Skip {
		return next{}, err
	}
	if push.Problem != "" {
		if x.clashes++; x.clashes > maxClashes {
			return next{}, squad.Errorf(squad.CodeConflict, "%d turns could not solve it: %s", maxClashes, firstLine(push.Problem))
		}
		return next{prompt: push.Problem}, nil
	}
	x.clashes, x.place.BaseSHA = 0, push.BaseSHA
	return next{}, x.step(squad.StepPull, key("pull"), nil, func(ctx context.Context, s scene) (any, error) {
		return nil, x.openPull(ctx, s, x.place, push, result)
	})
}

// nothing judges a turn that left no new commit. The first one must do something;
// an answer to a review may be words alone.
func (x *recipe) nothing(turn int, result agent.Result) error {
	if turn == 1 {
		return squad.Errorf(squad.CodeRule, "the agent says %q and changed nothing", orElse(firstLine(result.Summary), string(result.Outcome)))
	}
	return nil
}

// await parks the execution until something happens that concerns it. It holds no
// place in the queue meanwhile, after a while no memory, and no goroutine.
func (x *recipe) await(question bool) (next, error) {
	for {
		// A turn may be waited on several times: a rebase is no turn of its own.
		x.waits++
		n := x.waits
		wait := func(step string) string { return fmt.Sprintf("%s/%d.%d", step, x.turn, n) }
		err := x.c.Do(wait("park"), func(ctx context.Context) (any, error) { return nil, x.park(ctx, x.id, question) }, nil, transient)
		if err != nil {
			return next{}, err
		}
		w, err := x.awaitWake(wait)
		if err != nil {
			return next{}, err
		}
		if w.Kind == "merged" || w.Kind == "closed" {
			return next{end: &w}, nil
		}
		// What was said since the last turn, in one text. Several remarks wake the
		// flow several times and make one turn.
		prompt, rebase := "", w.Kind == "rebase" || w.Kind == "kept"
		if err := x.c.Do(wait("gather"), func(ctx context.Context) (any, error) { return x.gather(ctx, x.id) }, &prompt, transient); err != nil {
			return next{}, err
		}
		if prompt == "" && !rebase {
			continue
		}
		// Another turn goes through the queue like any other.
		if err := x.c.Do(wait("queue"), func(ctx context.Context) (any, error) { return nil, x.requeue(ctx, x.id) }, nil, transient); err != nil {
			return next{}, err
		}
		if _, err := x.c.Await(signalSlot, x.cfg.Limits.ReviewWait, nil); err != nil {
			return next{}, err
		}
		err = x.step(squad.StepSandbox, wait("resume"), &x.place, func(ctx context.Context, s scene) (any, error) { return x.resume(ctx, s, x.place, x.c.Fence()) })
		return next{prompt: prompt, rebase: rebase}, err
	}
}

func (x *recipe) awaitWake(key func(string) string) (wake, error) {
	var w wake
	came, err := x.c.Await(signalWake, pauseAfter, &w)
	if err != nil || came {
		return w, err
	}
	if err := x.c.Do(key("pause"), func(ctx context.Context) (any, error) { return nil, x.pause(ctx, x.place) }, nil, transient); err != nil {
		return w, err
	}
	came, err = x.c.Await(signalWake, x.cfg.Limits.ReviewWait, &w)
	if err == nil && !came {
		w = wake{Kind: "closed", Reason: "nobody answered in " + x.cfg.Limits.ReviewWait.String()}
	}
	return w, err
}

// key names a step of the current turn.
func (x *recipe) key(step string) string { return fmt.Sprintf("%s/%d", step, x.turn) }

func quotaWait(err error) time.Duration {
	if wait := retryAfter(err); wait > 0 {
		return min(wait, 5*time.Minute)
	}
	return 15 * time.Second
}
