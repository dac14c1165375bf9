// Package crash kills the built server while it works, again and again, and then
// counts: each task must have ended with one branch, one pull request and the right
// commits, the event log must have no gap, and nothing may be left behind.
package crash

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
)

// runs is how many tasks are run through the kills. make test does a few; set
// SQUAD_CRASH_RUNS=100 for the long form.
func runs(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("SQUAD_CRASH_RUNS"))
	if err != nil {
		return 8
	}
	return n
}

// server is the built program in a data folder of its own.
type server struct {
	t       *testing.T
	bin     string
	data    string
	address string
	cmd     *exec.Cmd
	log     bytes.Buffer
	kills   int
}

func program(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("SQUAD_BIN"); bin != "" {
		return bin
	}
	bin := filepath.Join(t.TempDir(), "squad")
	cmd := exec.Command("go", "build", "-o", bin, "agentsquad/cmd/squad")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	data, err := os.MkdirTemp("", "squad-crash-") //nolint:usetesting // unix sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, bin: program(t), data: data, address: address}
	t.Cleanup(s.end)
	return s
}

func (s *server) start() *client.Client {
	s.t.Helper()
	s.cmd = exec.Command(s.bin, "up", "--listen", s.address, "--data", s.data, "--log-level", "warn")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.data}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		if cfg, err := client.FromData(s.data); err == nil {
			if c, err := client.New(cfg); err == nil && c.Ready(s.t.Context()) == nil {
				return c
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Fatalf("the server did not become ready\n%s", s.log.String())
	return nil
}

// kill ends the server as a power cut would. Sandboxes go on.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.kills++
}

// stop ends the server gracefully.
func (s *server) stop() {
	if s.cmd == nil || s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
	}
}

func (s *server) end() {
	s.stop()
	if s.t.Failed() {
		s.t.Logf("the server said:\n%s", tail(s.log.String(), 8000))
	}
	killWith(s.data) // the warm pool, and what a failed test left: sandboxes outlive their server
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

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

func TestCrash_TasksEndOnceWhateverHappens(t *testing.T) {
	n := runs(t)
	s := newServer(t)
	c := s.start()
	repo, tasks := s.seed(c, n)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*20*time.Second+2*time.Minute+reaped)
	defer cancel()
	for _, k := range tasks {
		if _, err := c.RunTask(ctx, k.ID, squad.RunOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for !s.all(ctx, c, tasks, squad.TaskInReview) {
		if ctx.Err() != nil {
			s.tell(c, tasks)
			t.Fatalf("not all tasks came to review in time, after %d kills", s.kills)
		}
		time.Sleep(time.Duration(300+rand.IntN(2500)) * time.Millisecond)
		if s.kills < 2*n { // then let it come to rest
			s.kill()
			c = s.start()
		}
	}
	t.Logf("%d tasks through %d kills", n, s.kills)
	s.check(ctx, c, repo, tasks)
	s.cleanUp(ctx, c, tasks)
	s.checkLeftovers(ctx, c)
}

// seed makes a squad whose agents each write one file of their own.
func (s *server) seed(c *client.Client, n int) (squad.Repository, []squad.Task) {
	s.t.Helper()
	ctx := s.t.Context()
	source := s.t.TempDir()
	sh(s.t, source, "git init -q -b main && echo hello > README.md && git add . && git -c user.name=A -c user.email=a@b commit -qm 'docs: begin'")
	crew, err := c.CreateSquad(ctx, squad.NewSquad{Name: "Crew"})
	must(s.t, err)
	repo, err := c.CreateRepository(ctx, squad.NewRepository{SquadID: crew.ID, Name: "hello", ImportPath: source})
	must(s.t, err)
	m, err := c.CreateMember(ctx, squad.NewMember{SquadID: crew.ID, Name: "Ada", Role: "developer", Config: squad.MemberConfig{
		Agent: squad.AgentCommand, MaxRunning: 4,
		Command: `for i in 1 2 3 4 5; do echo "line $i"; sleep 0.2; done; echo "$SQUAD_TASK_NUMBER" > "task-$SQUAD_TASK_NUMBER.txt"; echo end`,
	}})
	must(s.t, err)
	var tasks []squad.Task
	for i := range n {
		k, err := c.CreateTask(ctx, squad.NewTask{SquadID: crew.ID, RepositoryID: repo.ID, AssigneeID: m.ID, Title: fmt.Sprintf("Write file %d", i+1)})
		must(s.t, err)
		tasks = append(tasks, k)
	}
	return repo, tasks
}

func (s *server) all(ctx context.Context, c *client.Client, tasks []squad.Task, want squad.TaskStatus) bool {
	for _, k := range tasks {
		now, err := c.Task(ctx, k.ID)
		if err != nil || now.Status != want {
			return false
		}
	}
	return true
}

func (s *server) tell(c *client.Client, tasks []squad.Task) {
	for _, k := range tasks {
		if now, err := c.Task(context.Background(), k.ID); err == nil && now.Status != squad.TaskInReview {
			s.t.Logf("task #%d: %s %s %s", now.Number, now.Status, now.Flag, now.Cause)
			if e, err := c.Execution(context.Background(), now.ExecutionID); err == nil {
				s.t.Logf("  execution %s: %s, step %s, attempt %d: %s", e.ID, e.Status, e.Step, e.Attempt, e.Error)
			}
		}
	}
}

// check counts branches, pull requests, commits and events.
func (s *server) check(ctx context.Context, c *client.Client, repo squad.Repository, tasks []squad.Task) {
	s.t.Helper()
	bare := filepath.Join(s.data, "repos", repo.ID+".git")
	branches := strings.Fields(sh(s.t, bare, "git for-each-ref --format='%(refname:short)' refs/heads/task-*"))
	if len(branches) != len(tasks) {
		s.t.Errorf("%d branches for %d tasks: %v", len(branches), len(tasks), branches)
	}
	for _, k := range tasks {
		pulls, err := client.Collect(c.Pulls(ctx, client.Values{"task_id": k.ID}))
		must(s.t, err)
		if len(pulls) != 1 {
			s.t.Errorf("task #%d has %d pull requests", k.Number, len(pulls))
		}
		branch := fmt.Sprintf("task-%d", k.Number)
		if got := sh(s.t, bare, fmt.Sprintf("git log --format=%%s main..%s", branch)); got != fmt.Sprintf("feat: write file %d", k.Number) {
			s.t.Errorf("%s has commits %q", branch, got)
		}
		if got := sh(s.t, bare, fmt.Sprintf("git show %s:%s.txt", branch, branch)); got != strconv.FormatInt(k.Number, 10) {
			s.t.Errorf("%s has %q", branch, got)
		}
		s.checkLog(ctx, c, k)
	}
	last, err := c.LastSeq(ctx)
	must(s.t, err)
	want := int64(0)
	from := int64(0)
	for e, err := range c.StoredEvents(ctx, client.EventQuery{After: &from}) {
		must(s.t, err)
		if want++; e.Seq != want {
			s.t.Fatalf("event %d follows %d", e.Seq, want-1)
		}
	}
	if want != last {
		s.t.Errorf("%d events, the last is %d", want, last)
	}
}

// checkLog wants the agent's output whole and once in the attempt that succeeded.
func (s *server) checkLog(ctx context.Context, c *client.Client, k squad.Task) {
	now, err := c.Task(ctx, k.ID)
	must(s.t, err)
	var log strings.Builder
	from := int64(0)
	for e, err := range c.StoredEvents(ctx, client.EventQuery{ExecutionID: now.ExecutionID, Types: []squad.EventType{squad.EventLog}, After: &from}) {
		must(s.t, err)
		log.WriteString(string(e.Payload))
	}
	for i := 1; i <= 5; i++ {
		if got := strings.Count(log.String(), fmt.Sprintf("line %d\\n", i)); got != 1 {
			s.t.Errorf("task #%d: line %d was told %d times", k.Number, i, got)
		}
	}
}

// cleanUp merges everything and wants nothing to be left.
func (s *server) cleanUp(ctx context.Context, c *client.Client, tasks []squad.Task) {
	s.t.Helper()
	for _, k := range tasks {
		_, err := c.MergeTask(ctx, k.ID, squad.MergeOptions{Method: "squash"})
		must(s.t, err)
	}
	left := func() (n int) {
		for sb, err := range c.Sandboxes(ctx, nil) {
			if err == nil && !sb.Status.Final() && !sb.Pooled {
				n++
			}
		}
		return n
	}
	for !s.all(ctx, c, tasks, squad.TaskDone) || left() > 0 {
		if ctx.Err() != nil {
			s.tell(c, tasks)
			s.t.Fatalf("%d sandboxes are left", left())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
