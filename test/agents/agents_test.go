package agents

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/test/house"
)

// real are the agents of others that are driven here.
var real = []struct {
	preset string
	model  string // with a price
	always bool   // installed and run by every make test
	// mute: it tells its client neither its plan nor what a command printed, and finds
	// no conversation again. So the Gemini CLI 0.61 by itself, outside a sandbox too.
	mute bool
}{
	{preset: "codex", model: "gpt-5-codex", always: true},
	{preset: "claude", model: "claude-sonnet-4-5"},
	{preset: "opencode", model: "gpt-5-mini"},
	{preset: "gemini", model: "gemini-2.5-pro", mute: true},
}

// gate is a command that waits inside the sandbox until the test lets it go on.
const gate = `touch /tmp/here; while [ ! -e /tmp/gate ]; do sleep 0.1; done; echo through the gate`

// scripts of the real agents: a first turn that stops at the gate, a second one after
// a remark, and one that uses the squad's tools.
var scripts = map[string][]step{
	"edit": {
		{thought: "I think I should write a file.", text: "First the file.", shell: `printf 'from the agent\n' > hello.txt && git add -A && git commit -qm 'feat: say hello'`},
		{plan: []string{"Write the file", "Pass the gate"}},
		{shell: gate},
		{shell: "exit 3"},
		{text: "I wrote hello.txt and committed it."},
	},
	"again": {
		{text: "Once more.", shell: `printf 'and again\n' >> hello.txt`},
		{text: "I added a line."},
	},
	"tell": {
		{mcp: "message_member", input: map[string]any{"to": "Bo", "text": "hello Bo, from the tools"}},
		{shell: `echo told > told.txt`},
		{text: "I told Bo."},
	},
}

// Each agent works on a task until its server dies with kill -9 in the middle of a
// command, is joined again, delivers, takes a remark in a second turn, uses the
// squad's tools, goes on after its command was cancelled, and is itself cancelled in
// its last task.
func TestAgents_TaskBecomesPullRequest(t *testing.T) {
	t.Parallel()
	for _, a := range real {
		t.Run(a.preset, func(t *testing.T) {
			t.Parallel()
			dir := installed(t, a.preset, a.always)
			m := newModel(t, scripts)
			s := newServer(t, m)
			s.addTemplate(a.preset, dir)
			c := s.crew()
			config := squad.MemberConfig{Agent: squad.AgentACP, Preset: a.preset, Template: a.preset}
			ada := c.member("Ada", squad.NewMember{LLMModel: a.model, Config: config})
			k := c.run("Say hello (script=edit)", ada)
			c.atGate(k)
			c.noKeyInside(k)
			s.Kill()
			s.Start()
			c.inside(k, "touch /tmp/gate")
			k = c.until(k, "review", inReview)
			c.checkDelivery(k)
			c.checkStory(k, a.mute)
			c.checkBooks(k, m, a.model)
			c.secondTurn(k, m, a.mute)
			c.useTools(a.preset, ada)
			c.cancelCommand(c.member("Fay", squad.NewMember{LLMModel: a.model, Config: config}))
			c.cancel(c.member("Cy", squad.NewMember{LLMModel: a.model, Config: config}))
			if t.Failed() {
				c.story(k)
			}
		})
	}
}

// secondTurn has the agent go on after a remark: the conversation is loaded, and
// what was told before is not told again.
func (c crew) secondTurn(k squad.Task, m *model, mute bool) {
	c.t.Helper()
	_, err := c.NudgeTask(c.t.Context(), k.ID, "Please add a line (script=again)")
	house.Must(c.t, err)
	c.until(k, "a second turn", func(now squad.Task) bool {
		return inReview(now) && strings.Contains(texts(c.events(k, squad.EventMessage)), "I added a line.") && c.execution(k).Status == squad.ExecutionWaiting
	})
	if got := c.file(k, "hello.txt"); got != "from the agent\nand again" {
		c.t.Errorf("hello.txt is %q", got)
	}
	said := texts(c.events(k, squad.EventMessage))
	if n := strings.Count(said, "First the file."); n != 1 {
		c.t.Errorf("the first turn was told %d times: %q", n, said)
	}
	known := false
	for _, r := range m.requests() {
		if strings.Contains(r.body, "script=again") && len(r.body) > 0 {
			known = known || strings.Contains(r.body, "First the file.")
		}
	}
	if !known && !mute {
		c.t.Error("the second turn does not know the first")
	}
}

// useTools has the agent write to another member through the squad's MCP server.
func (c crew) useTools(preset string, ada squad.Member) {
	c.t.Helper()
	bo := c.member("Bo", squad.NewMember{Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: "true"}})
	config := ada.Config
	dee := c.member("Dee", squad.NewMember{LLMModel: ada.LLMModel, Config: config})
	k := c.run("Tell Bo (script=tell)", dee)
	c.until(k, "review", inReview)
	list, err := client.Collect(c.Messages(c.t.Context(), client.Values{"squad_id": c.squad.ID}))
	house.Must(c.t, err)
	for _, msg := range list {
		if msg.To == "member:"+bo.ID && msg.From == "member:"+dee.ID && msg.Body == "hello Bo, from the tools" {
			return
		}
	}
	c.story(k)
	c.t.Errorf("%s did not reach the squad's tools: %+v", preset, list)
}

// cancelCommand ends only what an agent runs: it goes on, and delivers.
func (c crew) cancelCommand(fay squad.Member) {
	c.t.Helper()
	k := c.run("Do not wait (script=edit)", fay)
	c.atGate(k)
	c.until(k, "a command in its liveness", func(squad.Task) bool { return c.execution(k).Liveness.State == "command" })
	house.Must(c.t, c.CancelCommand(c.t.Context(), c.execution(k).ID))
	c.until(k, "review", inReview)
	if said := texts(c.events(k, squad.EventMessage)); !strings.Contains(said, "I wrote hello.txt") {
		c.t.Errorf("the agent did not go on: %q", said)
	}
	for _, call := range calls(c.events(k, squad.EventToolCall)) {
		if strings.Contains(call.Output, "through the gate") {
			c.t.Errorf("the command went on: %+v", call)
		}
	}
}

// cancel stops an agent in the middle of a command; nothing that it started stays.
func (c crew) cancel(cy squad.Member) {
	c.t.Helper()
	team, err := c.Squad(c.t.Context(), c.squad.ID)
	house.Must(c.t, err)
	team.Config.Cleanup.KeepSandbox = time.Hour
	_, err = c.ChangeSquad(c.t.Context(), c.squad.ID, squad.SquadChange{Config: &team.Config})
	house.Must(c.t, err)
	k := c.run("Wait (script=edit)", cy)
	c.atGate(k)
	box := c.execution(k).SandboxID
	const search = `pgrep -f 'tmp/[g]ate|codex-ac[p]|claud[e]|opencod[e]|gemin[i]'`
	if c.inside(k, search).Stdout == "" {
		c.t.Error("nothing runs before the cancel")
	}
	_, err = c.CancelTask(c.t.Context(), k.ID, "enough")
	house.Must(c.t, err)
	c.until(k, "a kept sandbox", func(squad.Task) bool {
		sb, err := c.Sandbox(c.t.Context(), box)
		return err == nil && sb.Status == squad.SandboxPaused
	})
	_, err = c.ResumeSandbox(c.t.Context(), box)
	house.Must(c.t, err)
	out, err := c.Execute(c.t.Context(), box, squad.Command{Shell: search})
	house.Must(c.t, err)
	if out.Stdout != "" {
		ps, _ := c.Execute(c.t.Context(), box, squad.Command{Shell: "ps -ef"})
		c.t.Errorf("after the cancel there are still: %s\n%s", out.Stdout, ps.Stdout)
	}
}

// atGate waits until the agent's command waits at the gate.
func (c crew) atGate(k squad.Task) {
	c.t.Helper()
	c.until(k, "the gate", func(squad.Task) bool {
		for _, call := range calls(c.events(k, squad.EventToolCall)) {
			if strings.Contains(call.Command, "/tmp/here") {
				return c.inside(k, "test -e /tmp/here").ExitCode == 0
			}
		}
		return false
	})
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
func (c crew) checkStory(k squad.Task, mute bool) {
	c.t.Helper()
	planned := false
	for _, e := range c.events(k, squad.EventPlan) {
		planned = planned || strings.Contains(string(e.Payload), "Write the file") && strings.Contains(string(e.Payload), "Pass the gate")
	}
	if !planned && !mute {
		c.t.Error("it told no plan")
	}
	if got := texts(c.events(k, squad.EventMessage)); strings.Count(got, "First the file.") != 1 || strings.Count(got, "I wrote hello.txt and committed it.") != 1 {
		c.t.Errorf("said %q", got)
	}
	if got := texts(c.events(k, squad.EventThought)); strings.Count(got, "I think I should write a file.") != 1 {
		c.t.Errorf("thought %q", got)
	}
	ended := map[string]squad.ToolCall{}
	for _, call := range calls(c.events(k, squad.EventToolCall)) {
		if call.Status == "completed" || call.Status == "failed" {
			ended[call.Command] = call
		}
	}
	var seen []string
	delete(ended, "") // the plan
	for command, call := range ended {
		if call.Kind != "execute" {
			c.t.Errorf("call %q is of kind %s", command, call.Kind)
		}
		switch {
		case strings.Contains(command, "hello.txt"):
			seen = append(seen, "write")
		case strings.Contains(command, "/tmp/gate"):
			seen = append(seen, "gate")
			if !strings.Contains(call.Output, "through the gate") && !mute {
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

// checkBooks wants every paid call in the books once, as the script's answer says, and
// the key added by the gateway only. A call that the agent left before its end is
// estimated: its input by its length, its output by what came.
func (c crew) checkBooks(k squad.Task, m *model, name string) {
	c.t.Helper()
	paid := int64(0)
	for _, r := range m.requests() {
		if r.key != canary {
			c.t.Errorf("%s came with key %q", r.path, r.key)
		}
		if strings.HasSuffix(r.path, "/messages") || strings.HasSuffix(r.path, "/responses") || strings.HasSuffix(r.path, "/chat/completions") || strings.HasSuffix(r.path, "enerateContent") {
			paid++
			if !strings.Contains(r.body, `"model":"`+name+`"`) && geminiModel(r.path) != name {
				c.t.Errorf("a call for another model: %.200s", r.body)
			}
		}
	}
	e := c.execution(k)
	if paid < 4 {
		c.t.Errorf("%d calls were paid for", paid)
	}
	var in, out, calls int64
	for _, ev := range c.events(k, squad.EventUsage) {
		var u squad.Usage
		house.Must(c.t, json.Unmarshal(ev.Payload, &u))
		calls, in, out = calls+1, in+u.TokensIn, out+u.TokensOut
		whole := u.TokensIn == usageIn && u.TokensOut == usageOut
		left := u.TokensIn >= usageIn && u.TokensOut < usageOut
		if !whole && !left || u.CostUSD <= 0 {
			c.t.Errorf("a call is booked as %+v", u)
		}
	}
	if calls != paid || e.TokensIn != in || e.TokensOut != out || e.ModelCostUSD <= 0 {
		c.t.Errorf("%d calls are booked as %d: %d in, %d out; the execution has %d in, %d out, $%f", paid, calls, in, out, e.TokensIn, e.TokensOut, e.ModelCostUSD)
	}
}
