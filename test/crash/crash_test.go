// Package crash kills the built server while it works, again and again, and then
// counts: each task must have ended with one branch, one pull request and the right
// commits, the event log must have no gap, and nothing may be left behind.
package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/test/house"
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

// server is the built program, and how often it was killed.
type server struct {
	*house.Server
	t     *testing.T
	kills int
}

// kill ends the server as a crash would, and starts it again.
func (s *server) kill() {
	s.Kill()
	s.kills++
	s.Start()
}

func TestCrash_TasksEndOnceWhateverHappens(t *testing.T) {
	n := runs(t)
	s := &server{Server: house.New(t, []string{"--log-level", "warn"}, nil), t: t}
	s.Start()
	repo, tasks := s.seed(n)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*20*time.Second+2*time.Minute+reaped)
	defer cancel()
	for _, k := range tasks {
		if _, err := s.RunTask(ctx, k.ID, squad.RunOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for !s.all(ctx, tasks, squad.TaskInReview) {
		if ctx.Err() != nil {
			s.tell(tasks)
			t.Fatalf("not all tasks came to review in time, after %d kills", s.kills)
		}
		time.Sleep(time.Duration(300+rand.IntN(2500)) * time.Millisecond)
		if s.kills < 2*n { // then let it come to rest
			s.kill()
		}
	}
	t.Logf("%d tasks through %d kills", n, s.kills)
	s.check(ctx, repo, tasks)
	s.cleanUp(ctx, tasks)
	s.checkLeftovers(ctx)
}

// seed makes a squad whose agents each write one file of their own.
func (s *server) seed(n int) (squad.Repository, []squad.Task) {
	s.t.Helper()
	ctx := s.t.Context()
	crew, err := s.CreateSquad(ctx, squad.NewSquad{Name: "Crew"})
	house.Must(s.t, err)
	repo, err := s.CreateRepository(ctx, squad.NewRepository{SquadID: crew.ID, Name: "hello", ImportPath: house.Repository(s.t)})
	house.Must(s.t, err)
	m, err := s.CreateMember(ctx, squad.NewMember{SquadID: crew.ID, Name: "Ada", Role: "developer", Config: squad.MemberConfig{
		Agent: squad.AgentCommand, MaxRunning: 4,
		Command: `for i in 1 2 3 4 5; do echo "line $i"; sleep 0.2; done; echo "$SQUAD_TASK_NUMBER" > "task-$SQUAD_TASK_NUMBER.txt"; echo end`,
	}})
	house.Must(s.t, err)
	var tasks []squad.Task
	for i := range n {
		k, err := s.CreateTask(ctx, squad.NewTask{SquadID: crew.ID, RepositoryID: repo.ID, AssigneeID: m.ID, Title: fmt.Sprintf("Write file %d", i+1)})
		house.Must(s.t, err)
		tasks = append(tasks, k)
	}
	return repo, tasks
}

func (s *server) all(ctx context.Context, tasks []squad.Task, want squad.TaskStatus) bool {
	for _, k := range tasks {
		now, err := s.Task(ctx, k.ID)
		if err != nil || now.Status != want {
			return false
		}
	}
	return true
}

func (s *server) tell(tasks []squad.Task) {
	for _, k := range tasks {
		if now, err := s.Task(context.Background(), k.ID); err == nil && now.Status != squad.TaskInReview {
			s.t.Logf("task #%d: %s %s %s", now.Number, now.Status, now.Flag, now.Cause)
			if e, err := s.Execution(context.Background(), now.ExecutionID); err == nil {
				s.t.Logf("  execution %s: %s, step %s, attempt %d: %s", e.ID, e.Status, e.Step, e.Attempt, e.Error)
			}
		}
	}
}

// check counts branches, pull requests, commits and events.
func (s *server) check(ctx context.Context, repo squad.Repository, tasks []squad.Task) {
	s.t.Helper()
	bare := filepath.Join(s.Data, "repos", repo.ID+".git")
	branches := strings.Fields(house.Sh(s.t, bare, "git for-each-ref --format='%(refname:short)' refs/heads/task-*"))
	if len(branches) != len(tasks) {
		s.t.Errorf("%d branches for %d tasks: %v", len(branches), len(tasks), branches)
	}
	for _, k := range tasks {
		pulls, err := client.Collect(s.Pulls(ctx, client.Values{"task_id": k.ID}))
		house.Must(s.t, err)
		if len(pulls) != 1 {
			s.t.Errorf("task #%d has %d pull requests", k.Number, len(pulls))
		}
		branch := fmt.Sprintf("task-%d", k.Number)
		if got := house.Sh(s.t, bare, fmt.Sprintf("git log --format=%%s main..%s", branch)); got != fmt.Sprintf("feat: write file %d", k.Number) {
			s.t.Errorf("%s has commits %q", branch, got)
		}
		if got := house.Sh(s.t, bare, fmt.Sprintf("git show %s:%s.txt", branch, branch)); got != strconv.FormatInt(k.Number, 10) {
			s.t.Errorf("%s has %q", branch, got)
		}
		s.checkLog(ctx, k)
	}
	last, err := s.LastSeq(ctx)
	house.Must(s.t, err)
	want := int64(0)
	from := int64(0)
	for e, err := range s.StoredEvents(ctx, client.EventQuery{After: &from}) {
		house.Must(s.t, err)
		if want++; e.Seq != want {
			s.t.Fatalf("event %d follows %d", e.Seq, want-1)
		}
	}
	after, err := s.LastSeq(ctx)
	house.Must(s.t, err)
	if want < last || want > after { // some may have come while we read
		s.t.Errorf("%d events, the last was %d before and %d after", want, last, after)
	}
}

// checkLog wants the agent's output whole and once in the attempt that succeeded.
func (s *server) checkLog(ctx context.Context, k squad.Task) {
	now, err := s.Task(ctx, k.ID)
	house.Must(s.t, err)
	var log strings.Builder
	from := int64(0)
	for e, err := range s.StoredEvents(ctx, client.EventQuery{ExecutionID: now.ExecutionID, Types: []squad.EventType{squad.EventLog}, After: &from}) {
		house.Must(s.t, err)
		log.WriteString(string(e.Payload))
	}
	for i := 1; i <= 5; i++ {
		if got := strings.Count(log.String(), fmt.Sprintf("line %d\\n", i)); got != 1 {
			s.t.Errorf("task #%d: line %d was told %d times", k.Number, i, got)
		}
	}
}

// cleanUp merges everything and wants nothing to be left.
func (s *server) cleanUp(ctx context.Context, tasks []squad.Task) {
	s.t.Helper()
	for _, k := range tasks {
		_, err := s.MergeTask(ctx, k.ID, squad.MergeOptions{Method: "squash"})
		house.Must(s.t, err)
	}
	left := func() (n int) {
		for sb, err := range s.Sandboxes(ctx, nil) {
			if err == nil && !sb.Status.Final() && !sb.Pooled {
				n++
			}
		}
		return n
	}
	for !s.all(ctx, tasks, squad.TaskDone) || left() > 0 {
		if ctx.Err() != nil {
			s.tell(tasks)
			s.t.Fatalf("%d sandboxes are left", left())
		}
		time.Sleep(200 * time.Millisecond)
	}
}
