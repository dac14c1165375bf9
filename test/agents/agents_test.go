package agents

import (
	"strings"
	"testing"

	squad "agentsquad"
)

// real are the agents of others that are driven here.
var real = []struct {
	preset string
	model  string // with a price
	always bool   // installed by make test even where it is not cached
}{
	{"codex", "gpt-5-codex", true},
	{"claude", "claude-sonnet-4-5", false},
	{"opencode", "gpt-5-mini", false},
}

// gate is a command that waits inside the sandbox until the test lets it go on.
const gate = `touch /tmp/here; while [ ! -e /tmp/gate ]; do sleep 0.1; done; echo through the gate`

func TestAgents_TaskBecomesPullRequest(t *testing.T) {
	t.Parallel()
	for _, a := range real {
		t.Run(a.preset, func(t *testing.T) {
			t.Parallel()
			dir := installed(t, a.preset, a.always)
			m := newModel(t, map[string][]step{"edit": {
				{thought: "I think I should write a file.", text: "First the file.", shell: `printf 'from the agent\n' > hello.txt && git add -A && git commit -qm 'feat: say hello'`},
				{shell: gate},
				{shell: "exit 3"},
				{text: "I wrote hello.txt and committed it."},
			}})
			s := newServer(t, m)
			s.addTemplate(a.preset, dir)
			c := s.crew()
			ada := c.member("Ada", squad.NewMember{LLMModel: a.model, Config: squad.MemberConfig{Agent: squad.AgentACP, Preset: a.preset, Template: a.preset}})
			k := c.run("Say hello (script=edit)", ada)
			c.atGate(k)
			c.noKeyInside(k)
			c.inside(k, "touch /tmp/gate")
			k = c.until(k, "review", inReview)
			c.checkDelivery(k)
			c.checkStory(k)
			c.checkBooks(k, m, a.model)
			if t.Failed() {
				c.story(k)
			}
		})
	}
}

// atGate waits until the agent's command waits at the gate.
func (c crew) atGate(k squad.Task) {
	c.t.Helper()
	c.until(k, "the gate", func(now squad.Task) bool {
		list, err := c.runningCommand(k)
		return err == nil && list
	})
}

func (c crew) runningCommand(k squad.Task) (bool, error) {
	for _, call := range calls(c.events(k, squad.EventToolCall)) {
		if strings.Contains(call.Command, "/tmp/here") {
			return c.inside(k, "test -e /tmp/here").ExitCode == 0, nil
		}
	}
	return false, nil
}

// noKeyInside looks for the real model key in all that the sandbox holds.
func (c crew) noKeyInside(k squad.Task) {
	c.t.Helper()
	pattern := "sk-[c]anary" // does not find itself
	out := c.inside(k, `cat /proc/[0-9]*/environ | tr '\0' '\n' > /tmp/environs
grep -c SQUAD_TASK_NUMBER= /tmp/environs
grep `+pattern+` /tmp/environs /proc/[0-9]*/cmdline && echo LEAK
sudo grep -rlsI `+pattern+` / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr --exclude-dir=opt && echo LEAK; true`)
	if strings.Contains(out.Stdout, "LEAK") || strings.HasPrefix(out.Stdout, "0") {
		c.t.Errorf("looking for the model key inside: %s%s", out.Stdout, out.Stderr)
	}
}

// checkDelivery wants the agent's commit on the branch and one pull request.
func (c crew) checkDelivery(k squad.Task) {
	c.t.Helper()
	if got := c.file(k, "hello.txt"); got != "from the agent" {
		c.t.Errorf("hello.txt is %q", got)
	}
	if k.PullRequestURL == "" {
		c.t.Error("no pull request")
	}
	e := c.execution(k)
	if len(e.CommitHistory) != 1 || e.CommitHistory[0].Subject != "feat: say hello" {
		c.t.Errorf("commits %+v", e.CommitHistory)
	}
}

// checkStory wants what the agent did as typed events.
func (c crew) checkStory(k squad.Task) {
	c.t.Helper()
	if got := texts(c.events(k, squad.EventMessage)); !strings.Contains(got, "First the file.") || !strings.Contains(got, "I wrote hello.txt and committed it.") {
		c.t.Errorf("said %q", got)
	}
	if got := texts(c.events(k, squad.EventThought)); !strings.Contains(got, "I think I should write a file.") {
		c.t.Errorf("thought %q", got)
	}
	ended := map[string]squad.ToolCall{}
	for _, call := range calls(c.events(k, squad.EventToolCall)) {
		if call.Status == "completed" || call.Status == "failed" {
			ended[call.Command] = call
		}
	}
	var seen []string
	for command, call := range ended {
		if call.Kind != "execute" {
			c.t.Errorf("call %q is of kind %s", command, call.Kind)
		}
		switch {
		case strings.Contains(command, "hello.txt"):
			seen = append(seen, "write")
		case strings.Contains(command, "/tmp/gate"):
			seen = append(seen, "gate")
			if !strings.Contains(call.Output, "through the gate") {
				c.t.Errorf("output of the gate: %q", call.Output)
			}
		case strings.Contains(command, "exit 3"):
			seen = append(seen, "exit")
			if call.ExitCode != nil && *call.ExitCode != 3 {
				c.t.Errorf("exit code %d", *call.ExitCode)
			}
		}
	}
	if len(seen) != 3 {
		c.t.Errorf("calls that ended: %q of %+v", seen, ended)
	}
}

// checkBooks wants every paid call counted, and the key added by the gateway only.
func (c crew) checkBooks(k squad.Task, m *model, name string) {
	c.t.Helper()
	paid := int64(0)
	for _, r := range m.requests() {
		if r.key != canary {
			c.t.Errorf("%s came with key %q", r.path, r.key)
		}
		if strings.HasSuffix(r.path, "/messages") || strings.HasSuffix(r.path, "/responses") || strings.HasSuffix(r.path, "/chat/completions") {
			paid++
			if !strings.Contains(r.body, `"model":"`+name+`"`) {
				c.t.Errorf("a call for another model: %.200s", r.body)
			}
		}
	}
	e := c.execution(k)
	if paid < 4 || e.TokensIn != paid*usageIn || e.TokensOut != paid*usageOut || e.ModelCostUSD <= 0 {
		c.t.Errorf("%d calls are booked as %d in, %d out, $%f", paid, e.TokensIn, e.TokensOut, e.ModelCostUSD)
	}
	if len(c.events(k, squad.EventUsage)) == 0 {
		c.t.Error("no usage event")
	}
}
