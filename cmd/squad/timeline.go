package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agentsquad"
)

// timeline prints events as lines: one each, or JSON.
type timeline struct {
	e     *env
	began time.Time
	last  string // what was printed last: a row may change in ways that a line does not show
}

func (p *timeline) print(ev squad.Event) error {
	if p.e.json {
		raw, err := json.Marshal(ev)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.e.out, "%s\n", raw)
		return err
	}
	text := describe(ev)
	line := fmt.Sprintf("%-18s %s", ev.Type, text)
	if text == "" {
		return nil
	}
	switch ev.Type {
	case squad.EventTaskUpdated, squad.EventExecutionUpdated, squad.EventMemberChanged:
		if line == p.last {
			return nil
		}
	}
	p.last = line
	at := ev.At.Local().Format("15:04:05.000")
	if p.e.live() {
		at = "\x1b[2m" + at + "\x1b[0m"
	}
	_, err := fmt.Fprintf(p.e.out, "%s  %s\n", at, line)
	return err
}

// ended says whether nothing more happens to a task without a person.
func (p *timeline) ended(ev squad.Event) (bool, error) {
	if ev.Type != squad.EventTaskUpdated {
		return false, nil
	}
	var t squad.Task
	if err := json.Unmarshal(ev.Payload, &t); err != nil {
		return false, nil
	}
	switch {
	case t.Flag == squad.FlagFailed || t.Flag == squad.FlagCancelled || t.Flag == squad.FlagBlocked:
		return true, squad.Errorf(squad.CodeConflict, "task %d is %s: %s", t.Number, t.Flag, t.Cause)
	case t.Status == squad.TaskInReview && t.PullRequestURL != "", t.Status == squad.TaskDone:
		if !p.e.json {
			fmt.Fprintf(p.e.out, "\n%s after %s: %s\n", t.Status, time.Since(p.began).Round(10*time.Millisecond), t.PullRequestURL)
		}
		return true, nil
	}
	return false, nil
}

// describe is an event in words. Output of agents is shown without control
// characters, so that it cannot move the cursor or colour the terminal.
func describe(ev squad.Event) string {
	into := func(v any) { _ = json.Unmarshal(ev.Payload, v) } // a field that is missing is shown empty
	switch ev.Type {
	case squad.EventTaskCreated, squad.EventTaskUpdated:
		var t squad.Task
		into(&t)
		return plain(fmt.Sprintf("%d %s: %s %s", t.Number, stateOf(t), t.Title, t.Cause))
	case squad.EventExecutionCreated, squad.EventExecutionUpdated:
		var x squad.Execution
		into(&x)
		why := x.Error
		if x.Status == squad.ExecutionQueued || x.Liveness.State == "quota" { // what a running one does is told by its own events
			why = x.Liveness.Detail
		}
		return plain(fmt.Sprintf("attempt %d %s %s %s", x.Attempt, x.Status, x.Step, why))
	case squad.EventMemberChanged:
		var m squad.Member
		into(&m)
		return plain(fmt.Sprintf("%s, %s %s", m.Name, m.Role, m.GitContext.Branch))
	case squad.EventStep:
		var s squad.StepProgress
		into(&s)
		return plain(fmt.Sprintf("%s %s %s %s", s.Step, s.Status, percent(s.Percent), s.Detail))
	case squad.EventGitOperation:
		var g squad.GitProgress
		into(&g)
		return plain(fmt.Sprintf("%s %s %s %s", g.Kind, g.Status, g.Phase, percent(g.Percent)))
	case squad.EventMessage, squad.EventThought, squad.EventQuestion:
		var t squad.Text
		into(&t)
		return plain(t.Text)
	case squad.EventToolCall:
		var c squad.ToolCall
		into(&c)
		return plain(fmt.Sprintf("%s %s %s", c.Status, c.Title, c.Command))
	case squad.EventLog:
		var l squad.LogChunk
		into(&l)
		return plain(strings.TrimRight(l.Text, "\n"))
	case squad.EventSandboxCreated, squad.EventSandboxStatus, squad.EventSandboxTerminated:
		var s squad.Sandbox
		into(&s)
		return plain(fmt.Sprintf("%s %s %s", s.ID, s.Status, s.Error))
	case squad.EventPRCreated, squad.EventPRUpdated, squad.EventPRMerged, squad.EventPRClosed, squad.EventChecksChanged:
		var r squad.PullRequest
		into(&r)
		return plain(fmt.Sprintf("%s %s %s", r.State, r.Title, r.URL))
	case squad.EventMessageSent:
		var m squad.Message
		into(&m)
		return plain(fmt.Sprintf("%s → %s: %s", m.From, m.To, m.Body))
	default:
		return plain(string(ev.Payload))
	}
}

func percent(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", n)
}

// plain makes text safe for a line of a terminal.
func plain(s string) string {
	const longest = 400
	s = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return ' '
		case c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x202e:
			return -1
		}
		return c
	}, s)
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return strings.Join(strings.Fields(s), " ")
}
