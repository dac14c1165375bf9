// Package agents runs real coding agents in real sandboxes, driven by a scripted
// model on loopback, from a task to its pull request.
package agents

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/test/house"
)

// canary is the model key that must not be found inside a sandbox.
const canary = "sk-canary-4b1d7c0e9f2a48d3b6c5"

// server is the built program whose model providers are the scripted one.
type server struct {
	*house.Server
	t *testing.T
}

func newServer(t *testing.T, m *model, env ...string) *server {
	t.Helper()
	s := &server{t: t}
	t.Cleanup(func() { // after the server's own
		if strings.Contains(s.Log.String(), canary) {
			t.Error("the model key is in the log")
		}
	})
	s.Server = house.New(t, nil, append([]string{
		"ANTHROPIC_API_KEY=" + canary, "OPENAI_API_KEY=" + canary, "GEMINI_API_KEY=" + canary,
		"ANTHROPIC_BASE_URL=" + m.url, "OPENAI_BASE_URL=" + m.url, "GOOGLE_GEMINI_BASE_URL=" + m.url,
	}, env...))
	s.Start()
	return s
}

// crew is a squad with a repository in the local forge.
type crew struct {
	*server
	squad squad.Squad
	repo  squad.Repository
}

func (s *server) crew() crew {
	s.t.Helper()
	team, err := s.CreateSquad(s.t.Context(), squad.NewSquad{Name: "Crew"})
	house.Must(s.t, err)
	repo, err := s.CreateRepository(s.t.Context(), squad.NewRepository{SquadID: team.ID, Name: "hello", ImportPath: house.Repository(s.t)})
	house.Must(s.t, err)
	return crew{s, team, repo}
}

func (c crew) member(name string, m squad.NewMember) squad.Member {
	c.t.Helper()
	m.SquadID, m.Name = c.squad.ID, name
	if m.Role == "" {
		m.Role = "developer"
	}
	out, err := c.CreateMember(c.t.Context(), m)
	house.Must(c.t, err)
	return out
}

// run puts a task on the board and starts it.
func (c crew) run(title string, m squad.Member) squad.Task {
	c.t.Helper()
	k, err := c.CreateTask(c.t.Context(), squad.NewTask{SquadID: c.squad.ID, RepositoryID: c.repo.ID, AssigneeID: m.ID, Title: title})
	house.Must(c.t, err)
	_, err = c.RunTask(c.t.Context(), k.ID, squad.RunOptions{})
	house.Must(c.t, err)
	return k
}

// until waits until the task stands as wanted.
func (c crew) until(k squad.Task, what string, is func(squad.Task) bool) squad.Task {
	c.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		now, err := c.Task(c.t.Context(), k.ID)
		if err == nil && is(now) {
			return now
		}
		if err == nil && now.Flag == squad.FlagFailed || now.Flag == squad.FlagBlocked {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.story(k)
	c.t.Fatalf("task #%d did not come to: %s", k.Number, what)
	return squad.Task{}
}

func inReview(k squad.Task) bool { return k.Status == squad.TaskInReview }

// events are the events of a task of one type, in order.
func (c crew) events(k squad.Task, types ...squad.EventType) []squad.Event {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	var out []squad.Event
	list, err := client.Collect(client.List[squad.Event](ctx, c.Client, "/events", client.Values{"task_id": k.ID}))
	house.Must(c.t, err)
	for _, e := range list {
		for _, want := range types {
			if e.Type == want {
				out = append(out, e)
			}
		}
	}
	return out
}

// texts joins the texts of events.
func texts(list []squad.Event) string {
	var b strings.Builder
	for _, e := range list {
		var p squad.Text
		_ = json.Unmarshal(e.Payload, &p)
		b.WriteString(p.Text)
	}
	return b.String()
}

func calls(list []squad.Event) []squad.ToolCall {
	var out []squad.ToolCall
	for _, e := range list {
		var p squad.ToolCall
		_ = json.Unmarshal(e.Payload, &p)
		out = append(out, p)
	}
	return out
}

// story prints what happened to a task.
func (c crew) story(k squad.Task) {
	list, err := client.Collect(client.List[squad.Event](context.Background(), c.Client, "/events", client.Values{"task_id": k.ID}))
	if err != nil {
		c.t.Logf("no story: %v", err)
	}
	for _, e := range list {
		c.t.Logf("%4d %-20s %.400s", e.Seq, e.Type, e.Payload)
	}
}

// inside runs a command in the sandbox of a running task.
func (c crew) inside(k squad.Task, line string) squad.CommandResult {
	c.t.Helper()
	e := c.execution(k)
	out, err := c.Execute(c.t.Context(), e.SandboxID, squad.Command{Shell: line})
	house.Must(c.t, err)
	return out
}

// execution is the newest execution of a task.
func (c crew) execution(k squad.Task) squad.Execution {
	c.t.Helper()
	list, err := client.Collect(client.List[squad.Execution](c.t.Context(), c.Client, "/executions", client.Values{"task_id": k.ID}))
	house.Must(c.t, err)
	if len(list) == 0 {
		c.t.Fatalf("task #%d has no execution", k.Number)
	}
	newest := list[0]
	for _, e := range list {
		if e.Attempt > newest.Attempt {
			newest = e
		}
	}
	return newest
}

// file reads a file of the task's branch in the local forge.
func (c crew) file(k squad.Task, name string) string {
	c.t.Helper()
	return house.Sh(c.t, filepath.Join(c.Data, "repos", c.repo.ID+".git"), "git show task-"+strconv.FormatInt(k.Number, 10)+":"+name)
}

// names lists the files of the task's branch.
func (c crew) names(k squad.Task) string {
	c.t.Helper()
	return house.Sh(c.t, filepath.Join(c.Data, "repos", c.repo.ID+".git"), "git ls-tree -r --name-only task-"+strconv.FormatInt(k.Number, 10))
}
