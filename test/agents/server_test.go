// Package agents runs real coding agents in real sandboxes, driven by a scripted
// model on loopback, from a task to its pull request.
package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
)

// canary is the model key that must not be found inside a sandbox.
const canary = "sk-canary-4b1d7c0e9f2a48d3b6c5"

// program is the binary under test: SQUAD_BIN (make test sets it), or one built here,
// once for all tests.
var program = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("SQUAD_BIN"); bin != "" {
		return bin, nil
	}
	dir, err := os.MkdirTemp("", "squad-agents-bin-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "squad")
	cmd := exec.Command("go", "build", "-o", bin, "agentsquad/cmd/squad")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return bin, cmd.Run()
})

// server is the built program in a data folder of its own.
type server struct {
	t       *testing.T
	bin     string
	data    string
	address string
	env     []string
	log     *os.File
	cmd     *exec.Cmd
	*client.Client
}

// newServer starts a server whose model providers are the scripted one.
func newServer(t *testing.T, m *model, env ...string) *server {
	t.Helper()
	bin, err := program()
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	l.Close()
	data, err := os.MkdirTemp("", "squad-agents-") //nolint:usetesting // unix sockets need a short path
	must(t, err)
	s := &server{t: t, bin: bin, data: data, address: address}
	s.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + data, "ANTHROPIC_API_KEY=" + canary, "OPENAI_API_KEY=" + canary, "GEMINI_API_KEY=" + canary,
		"ANTHROPIC_BASE_URL=" + m.url, "OPENAI_BASE_URL=" + m.url, "GOOGLE_GEMINI_BASE_URL=" + m.url,
	}, env...)
	s.log, err = os.Create(filepath.Join(data, "server.log"))
	must(t, err)
	t.Cleanup(s.end)
	s.start()
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.bin, "up", "--listen", s.address, "--data", s.data, "--log-format", "json")
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Env = s.log, s.log, s.env
	must(s.t, s.cmd.Start())
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		if cfg, err := client.FromData(s.data); err == nil {
			if c, err := client.New(cfg); err == nil && c.Ready(s.t.Context()) == nil {
				s.Client = c
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Fatal("the server did not become ready")
}

// kill ends the server as a power cut would. Sandboxes go on.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) end() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(30*time.Second, func() { _ = s.cmd.Process.Kill() })
		_ = s.cmd.Wait()
		late.Stop()
	}
	text, _ := os.ReadFile(s.log.Name())
	if s.t.Failed() {
		s.t.Logf("the server said:\n%s", text[max(0, len(text)-8000):])
	}
	if bytes.Contains(text, []byte(canary)) {
		s.t.Error("the model key is in the log")
	}
	s.log.Close()
	killWith(s.data) // sandboxes outlive their server
	_ = os.RemoveAll(s.data)
}

// killWith ends the processes whose command line names a folder of ours.
func killWith(folder string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte(folder)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// crew is a squad with a repository in the local forge.
type crew struct {
	*server
	squad squad.Squad
	repo  squad.Repository
}

func (s *server) crew() crew {
	s.t.Helper()
	source := s.t.TempDir()
	sh(s.t, source, "git init -q -b main && echo hello > README.md && git add . && git -c user.name=A -c user.email=a@b commit -qm 'docs: begin'")
	team, err := s.CreateSquad(s.t.Context(), squad.NewSquad{Name: "Crew"})
	must(s.t, err)
	repo, err := s.CreateRepository(s.t.Context(), squad.NewRepository{SquadID: team.ID, Name: "hello", ImportPath: source})
	must(s.t, err)
	return crew{s, team, repo}
}

func (c crew) member(name string, m squad.NewMember) squad.Member {
	c.t.Helper()
	m.SquadID, m.Name = c.squad.ID, name
	if m.Role == "" {
		m.Role = "developer"
	}
	out, err := c.CreateMember(c.t.Context(), m)
	must(c.t, err)
	return out
}

// run puts a task on the board and starts it.
func (c crew) run(title string, m squad.Member) squad.Task {
	c.t.Helper()
	k, err := c.CreateTask(c.t.Context(), squad.NewTask{SquadID: c.squad.ID, RepositoryID: c.repo.ID, AssigneeID: m.ID, Title: title})
	must(c.t, err)
	_, err = c.RunTask(c.t.Context(), k.ID, squad.RunOptions{})
	must(c.t, err)
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
	must(c.t, err)
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
	// A server that was just started again may not have its sandboxes back yet: it
	// answers 502 or 503, as to anybody, and is asked again.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		out, err := c.Execute(c.t.Context(), e.SandboxID, squad.Command{Shell: line})
		code := squad.CodeOf(err)
		if code != squad.CodeProvider && code != squad.CodeUnavailable || time.Now().After(deadline) {
			must(c.t, err)
			return out
		}
	}
}

// execution is the newest execution of a task.
func (c crew) execution(k squad.Task) squad.Execution {
	c.t.Helper()
	list, err := client.Collect(client.List[squad.Execution](c.t.Context(), c.Client, "/executions", client.Values{"task_id": k.ID}))
	must(c.t, err)
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
	return sh(c.t, filepath.Join(c.data, "repos", c.repo.ID+".git"), "git show task-"+strconv.FormatInt(k.Number, 10)+":"+name)
}

// names lists the files of the task's branch.
func (c crew) names(k squad.Task) string {
	c.t.Helper()
	return sh(c.t, filepath.Join(c.data, "repos", c.repo.ID+".git"), "git ls-tree -r --name-only task-"+strconv.FormatInt(k.Number, 10))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}
