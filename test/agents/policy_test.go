package agents

import (
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/test/house"
)

// A command that the squad's policy refuses does not run, whichever agent wants it. The
// built-in loop, Claude Code and Gemini go on; Codex and OpenCode end their turn, and the
// rule is the cause.
func TestPolicy_RefusedCommandsDoNotRun(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string][]step{"policy": {
		{shell: "touch refused.txt"}, {shell: "echo fine > fine.txt"}, {text: "I did what I may."},
	}})
	s := newServer(t, m)
	c := s.crew()
	team, err := c.Squad(t.Context(), c.squad.ID)
	house.Must(t, err)
	team.Config.DenyCommands = []string{"touch *"}
	_, err = c.ChangeSquad(t.Context(), c.squad.ID, squad.SquadChange{Config: &team.Config})
	house.Must(t, err)
	check := func(t *testing.T, member squad.Member, goesOn bool) {
		t.Helper()
		k := c.run("Try (script=policy)", member)
		if !goesOn {
			var e squad.Execution
			waitFor(t, "the end", func() bool { e = c.execution(k); return e.Status.Final() })
			if !strings.Contains(e.Error, `denied by the rule "touch *"`) {
				t.Errorf("the cause is %s", e.Error)
				c.story(k)
			}
			return
		}
		k = c.until(k, "review", inReview)
		if names := c.names(k); strings.Contains(names, "refused.txt") || !strings.Contains(names, "fine.txt") {
			t.Errorf("the branch has %q", names)
			c.story(k)
		}
	}
	outer := t
	t.Run("llm", func(t *testing.T) {
		c.t = t
		defer func() { c.t = outer }()
		check(t, c.member("Max", squad.NewMember{LLMProvider: "anthropic", LLMModel: "claude-sonnet-4-5", Config: squad.MemberConfig{Agent: squad.AgentLLM}}), true)
	})
	for _, a := range real {
		t.Run(a.preset, func(t *testing.T) {
			dir := installed(t, a.preset, a.always)
			c.t = t
			defer func() { c.t = outer }()
			s.addTemplate(a.preset, dir)
			check(t, c.member(a.preset, squad.NewMember{LLMModel: a.model, Config: squad.MemberConfig{Preset: a.preset, Template: a.preset}}), a.preset == "claude" || a.preset == "gemini")
		})
	}
}
