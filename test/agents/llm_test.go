package agents

import (
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/test/house"
)

func in(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// everyTool uses each tool of the built-in loop once, is refused twice by the
// provider, asks a person and goes on with the answer.
var everyTool = []step{
	{text: "I look around.", tool: "list_files", input: in()},
	{tool: "search", input: in("pattern", "hel+o")},
	{tool: "read_file", input: in("path", "README.md")},
	{status: 529, wait: time.Second},
	{tool: "write_file", input: in("path", "notes.txt", "text", "one\ntwo\n")},
	{tool: "edit_file", input: in("path", "notes.txt", "old", "two", "new", "three")},
	{tool: "run_command", input: in("command", "cat notes.txt; exit 4")},
	{tool: "git_status", input: in()},
	{tool: "git_diff", input: in()},
	{tool: "git_commit", input: in("message", "docs: add notes")},
	{tool: "no_such_tool", input: in()},
	{tool: "write_member", input: in("to", "Bo", "text", "notes are there")},
	{tool: "ask", input: in("question", "Which colour?")},
}

func TestLLM_UsesEveryToolAndAsksAPerson(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string][]step{
		"tools": everyTool,
		"blue":  {{tool: "write_file", input: in("path", "colour.txt", "text", "blue\n")}, {tool: "finish", input: in("summary", "Notes and colour are there.")}},
	})
	c := newServer(t, m).crew()
	bo := c.member("Bo", squad.NewMember{Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: "true"}})
	for _, provider := range []string{"anthropic", "openai"} {
		m.mu.Lock()
		m.refused = map[string]int{}
		m.mu.Unlock()
		model := map[string]string{"anthropic": "claude-sonnet-4-5", "openai": "gpt-5-mini"}[provider]
		max := c.member("Max "+provider, squad.NewMember{LLMProvider: provider, LLMModel: model, Config: squad.MemberConfig{Agent: squad.AgentLLM}})
		k := c.run("Use the tools (script=tools)", max)
		c.until(k, "a question", func(squad.Task) bool { return c.execution(k).Status == squad.ExecutionWaiting })
		if got := texts(c.events(k, squad.EventQuestion)); got != "Which colour?" {
			t.Errorf("asked %q", got)
		}
		_, err := c.NudgeTask(t.Context(), k.ID, "Blue, please (script=blue)")
		house.Must(t, err)
		k = c.until(k, "review", inReview)
		if notes, colour := c.file(k, "notes.txt"), c.file(k, "colour.txt"); notes != "one\nthree" || colour != "blue" {
			t.Errorf("notes %q, colour %q", notes, colour)
		}
		c.checkTools(k)
		list, err := client.Collect(c.Messages(t.Context(), client.Values{"squad_id": c.squad.ID}))
		house.Must(t, err)
		told := false
		for _, msg := range list {
			told = told || msg.To == "member:"+bo.ID && msg.From == "member:"+max.ID
		}
		if !told {
			t.Errorf("Bo was not told: %+v", list)
		}
		if e := c.execution(k); e.TokensOut != int64(len(everyTool)-1+2)*usageOut {
			t.Errorf("%d tokens out", e.TokensOut)
		}
		if t.Failed() {
			c.story(k)
		}
	}
}

// checkTools wants each tool's outcome as the model and the page see it.
func (c crew) checkTools(k squad.Task) {
	c.t.Helper()
	var failed, done []string
	for _, call := range calls(c.events(k, squad.EventToolCall)) {
		name, _, _ := strings.Cut(call.Title, " ")
		switch call.Status {
		case "completed":
			done = append(done, name)
			if name == "run_command" && (call.ExitCode == nil || *call.ExitCode != 4 || !strings.Contains(call.Output, "three")) {
				c.t.Errorf("command %+v", call)
			}
		case "failed":
			failed = append(failed, name)
		}
	}
	want := "list_files search read_file write_file edit_file run_command git_status git_diff git_commit write_member ask write_file finish"
	if got := strings.Join(done, " "); got != want || len(failed) > 0 {
		c.t.Errorf("done %q, failed %q", got, failed)
	}
	var log strings.Builder
	for _, e := range c.events(k, squad.EventLog) {
		log.Write(e.Payload)
	}
	if !strings.Contains(log.String(), "it is asked again in 1s") {
		c.t.Errorf("the refusal with Retry-After was not told: %s", log.String())
	}
}

// A spent budget ends the execution with its cause, for the built-in loop and for
// an agent of others, and no call is made past it.
func TestBudget_EndsTheExecutionWithItsCause(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string][]step{"much": {{shell: "echo 1"}, {shell: "echo 2"}, {shell: "echo 3"}, {shell: "echo 4"}, {shell: "echo 5"}}})
	s := newServer(t, m)
	c := s.crew()
	members := []squad.Member{
		c.member("Max", squad.NewMember{LLMProvider: "anthropic", LLMModel: "claude-sonnet-4-5", Config: squad.MemberConfig{Agent: squad.AgentLLM}}),
	}
	t.Run("codex", func(t *testing.T) {
		s.addTemplate("codex", installed(t, "codex", true))
		members = append(members, c.member("Cody", squad.NewMember{LLMModel: "gpt-5-mini", Config: squad.MemberConfig{Preset: "codex", Template: "codex"}}))
	})
	for _, member := range members {
		before := len(m.requests())
		k, err := c.CreateTask(t.Context(), squad.NewTask{
			SquadID: c.squad.ID, RepositoryID: c.repo.ID, AssigneeID: member.ID, Title: "Spend (script=much)", Budget: squad.Budget{Tokens: 2 * (usageIn + usageOut)},
		})
		house.Must(t, err)
		_, err = c.RunTask(t.Context(), k.ID, squad.RunOptions{})
		house.Must(t, err)
		var e squad.Execution
		waitFor(t, "the budget's end", func() bool { e = c.execution(k); return e.Status.Final() })
		if e.Status != squad.ExecutionFailed || !strings.HasPrefix(e.Error, "budget_reached: ") || e.ErrorCode != squad.CodeQuota {
			t.Errorf("%s: execution %s, %s: %s", member.Name, e.Status, e.ErrorCode, e.Error)
			c.story(k)
		}
		if now, err := c.Task(t.Context(), k.ID); err != nil || !strings.HasPrefix(now.Cause, "budget_reached: ") {
			t.Errorf("%s: cause %q, %v", member.Name, now.Cause, err)
		}
		if calls := len(m.requests()) - before; calls > 3 {
			t.Errorf("%s: %d calls past the budget", member.Name, calls)
		}
	}
}

func TestLLM_LoopIsStopped(t *testing.T) {
	t.Parallel()
	var same []step
	for range 40 { // the page is told once a second
		same = append(same, step{tool: "run_command", input: in("command", "sleep 0.2; echo again")})
	}
	m := newModel(t, map[string][]step{"loop": same})
	c := newServer(t, m).crew()
	max := c.member("Max", squad.NewMember{LLMProvider: "openai", LLMModel: "gpt-5-mini", Config: squad.MemberConfig{Agent: squad.AgentLLM}})
	k := c.run("Loop (script=loop)", max)
	var e squad.Execution
	waitFor(t, "the loop's end", func() bool { e = c.execution(k); return e.Status.Final() })
	if !strings.Contains(e.Error, "the same input 20 times in a row") {
		t.Errorf("execution %s: %s", e.Status, e.Error)
	}
	looping := false
	for _, ev := range c.events(k, squad.EventExecutionUpdated) {
		looping = looping || strings.Contains(string(ev.Payload), `"state":"looping"`)
	}
	if !looping {
		t.Error("the page was not told that it loops")
	}
}
