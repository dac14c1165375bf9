package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	squad "agentsquad"
	"agentsquad/client"
)

// Play runs the demonstration to its end and writes a timeline: three pull
// requests, a conflict seen before anybody merges, one merge, and the other side
// of the conflict brought up to date. It returns an error if any of it did not
// come true. pace is the pause in seconds between the lines of the agents; people
// who watch also get time to see the conflict before the merge.
func Play(ctx context.Context, c *client.Client, out io.Writer, pace float64) error {
	p := &play{c: c, out: out, pace: pace, start: time.Now(), pulls: map[string]squad.PullRequest{}}
	var err error
	if p.last, err = c.LastSeq(ctx); err != nil {
		return err
	}
	if p.cast, err = Seed(ctx, c, pace); err != nil {
		return err
	}
	p.say("squad %q: %d members, repository %s, %d tasks", p.cast.Squad.Name, len(p.cast.Members), p.cast.Repository.Name, len(p.cast.Tasks))
	if err := p.cast.Start(ctx, c); err != nil {
		return err
	}
	p.friendlier, p.world = p.cast.Tasks[1], p.cast.Tasks[2]
	for e, err := range c.Events(ctx, client.EventQuery{SquadID: p.cast.Squad.ID, After: &p.last}) {
		if err != nil {
			return err
		}
		if err := p.see(ctx, e); err != nil {
			return err
		}
		if done, err := p.done(ctx); err != nil || done {
			if err == nil {
				p.say("all true: 3 pull requests, 1 conflict seen before a merge and solved, 1 merged")
			}
			return err
		}
	}
	return errors.Join(errors.New("the demonstration did not come to its end"), ctx.Err())
}

// play is a demonstration under way, and what was observed of it.
type play struct {
	c     *client.Client
	out   io.Writer
	pace  float64
	start time.Time
	last  int64
	cast  *Cast

	friendlier, world squad.Task // the two that change the same line
	pulls             map[string]squad.PullRequest
	conflictSeen      bool
	merging           bool
	merged            bool
	mended            bool // the other one was rebased and is clean again
}

// linesToLook is how long a conflict stays to be looked at, in lines of an agent.
const linesToLook = 10

func (p *play) say(format string, args ...any) {
	fmt.Fprintf(p.out, "%6.2fs  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// see tells an event and does what a person would do about it.
func (p *play) see(ctx context.Context, e squad.Event) error {
	n := p.number(e.TaskID)
	switch e.Type {
	case squad.EventStep:
		var s squad.StepProgress
		if json.Unmarshal(e.Payload, &s) == nil && s.Status != "running" {
			p.say("#%d  %-12s %s in %d ms", n, s.Step, s.Status, s.DurationMS)
		}
	case squad.EventMessage, squad.EventThought:
		var t squad.Text
		if json.Unmarshal(e.Payload, &t) == nil {
			p.say("#%d  %s: %s", n, e.Type, strings.TrimSpace(t.Text))
		}
	case squad.EventPRCreated, squad.EventPRUpdated, squad.EventPRMerged:
		var pull squad.PullRequest
		if json.Unmarshal(e.Payload, &pull) == nil {
			p.pull(e.Type, n, pull)
		}
	case squad.EventConflictDetected:
		var x squad.Conflict
		if json.Unmarshal(e.Payload, &x) == nil {
			p.conflictSeen = p.conflictSeen || !p.merging
			p.say("#%d  conflict with %s in %s", n, p.other(x), strings.Join(x.Files, ", "))
		}
	case squad.EventTaskUpdated:
		var t squad.Task
		if json.Unmarshal(e.Payload, &t) == nil && t.Flag != "" {
			return fmt.Errorf("task #%d is %s: %s", t.Number, t.Flag, t.Cause)
		}
	}
	return p.merge(ctx)
}

func (p *play) pull(kind squad.EventType, n int64, pull squad.PullRequest) {
	p.pulls[pull.TaskID] = pull
	switch kind {
	case squad.EventPRCreated:
		p.say("#%d  pull request %q", n, pull.Title)
	case squad.EventPRMerged:
		p.merged = true
		p.say("#%d  merged as %.10s", n, pull.MergeSHA)
	}
}

// merge merges the friendlier greeting once all three pull requests are open and
// the radar has seen the clash.
func (p *play) merge(ctx context.Context) error {
	if p.merging || len(p.pulls) < 3 || !p.conflictSeen {
		return nil
	}
	p.merging = true
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(linesToLook * p.pace * float64(time.Second))):
	}
	_, err := p.c.MergeTask(ctx, p.friendlier.ID, squad.MergeOptions{Method: "squash"})
	if err != nil {
		return fmt.Errorf("merge task #%d: %w", p.friendlier.Number, err)
	}
	return nil
}

// done says whether everything that the demonstration promises is so.
func (p *play) done(ctx context.Context) (bool, error) {
	if !p.merged {
		return false, nil
	}
	if !p.mended {
		pull, ok := p.pulls[p.world.ID]
		if !ok || pull.State != squad.PullOpen || pull.Mergeable != "clean" {
			return false, nil
		}
		diff, err := p.c.DiffPull(ctx, pull.ID)
		if err != nil {
			return false, err
		}
		p.mended = len(diff.Files) == 1 && strings.Contains(diff.Files[0].Patch, `+echo "Good to see you, ${1:-world}!"`)
	}
	t, err := p.c.Task(ctx, p.friendlier.ID)
	return p.mended && t.Status == squad.TaskDone, err
}

func (p *play) number(taskID string) int64 {
	for _, t := range p.cast.Tasks {
		if t.ID == taskID {
			return t.Number
		}
	}
	return 0
}

func (p *play) other(x squad.Conflict) string {
	if x.OtherTaskID == "" {
		return "the base branch"
	}
	return fmt.Sprintf("#%d", p.number(x.OtherTaskID))
}
