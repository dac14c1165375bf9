// Package nodes runs several servers on one PostgreSQL, kills one of them while its
// executions work, and counts afterwards: each task must have one branch, one pull
// request and the right commits, and the event log no gap.
package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/internal/pgtest"
	"agentsquad/test/house"
)

// asks stores something and asks; after the answer it works for some seconds.
const asks = `n=$SQUAD_TASK_NUMBER # files of its own: one task that is merged must not clash with the others
if [ ! -e first-$n.txt ]; then
  echo $n > first-$n.txt
  echo '{"squad":"question","text":"Shall I go on?"}'
  exit 0
fi
for i in $(seq 1 60); do echo "line $i"; sleep 0.1; done
echo $n > second-$n.txt`

// cluster is two nodes on one database, and a third machine that rents them sandboxes.
type cluster struct {
	t     *testing.T
	host  *server
	nodes []*server
	repos string // the folder that the nodes share
	url   string // of the database
	crews []*crew
}

// crew is a squad with its tasks, all with sandboxes of one provider.
type crew struct {
	provider string
	squad    squad.Squad
	repo     squad.Repository
	member   squad.Member
	tasks    []squad.Task
	before   map[string]squad.Execution // by task: what ran when the node was killed
	boxes    map[string]squad.Sandbox   // by task
}

func TestNodes_AnotherNodeGoesOnWhenOneIsKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.refuseStrangers()
	seen := c.follow(c.nodes[0], c.nodes[1])
	for _, provider := range []string{"local", "e2b"} {
		c.crews = append(c.crews, c.seed(provider, 4))
	}
	c.runToQuestion()
	c.answer()
	victim, survivor := c.pickVictim()
	waits := c.runDependent(victim)
	t.Logf("killing %s", victim.name)
	victim.PowerCut()
	c.await(survivor, 90*time.Second, "come to review", func(k squad.Task) bool { return k.Status == squad.TaskInReview })
	for _, w := range c.crews {
		c.check(survivor, victim, w)
	}
	c.checkEvents(survivor, seen[survivor])
	c.release(survivor, waits)
	c.endAll(survivor)
}

// runDependent runs a task that waits for another, on the node that will be lost.
func (c *cluster) runDependent(s *server) squad.Task {
	c.t.Helper()
	w := c.crews[0]
	k, err := s.CreateTask(c.t.Context(), squad.NewTask{
		SquadID: w.squad.ID, RepositoryID: w.repo.ID, AssigneeID: w.member.ID, Title: "Wait", DependsOn: []string{w.tasks[0].ID}, Run: true,
	})
	house.Must(c.t, err)
	return k
}

// release merges what a task waits for, and wants it to begin by itself.
func (c *cluster) release(s *server, k squad.Task) {
	c.t.Helper()
	ctx, w := c.t.Context(), c.crews[0]
	e, err := s.Execution(ctx, k.ExecutionID)
	house.Must(c.t, err)
	if want := fmt.Sprintf("waits for #%d %s", w.tasks[0].Number, w.tasks[0].Title); e.Status != squad.ExecutionQueued || e.Liveness.Detail != want {
		c.t.Errorf("the dependent one is %s and %q, want %q", e.Status, e.Liveness.Detail, want)
	}
	_, err = s.MergeTask(ctx, w.tasks[0].ID, squad.MergeOptions{})
	house.Must(c.t, err)
	for deadline := time.Now().Add(60 * time.Second); e.Status != squad.ExecutionWaiting; time.Sleep(100 * time.Millisecond) {
		if e, err = s.Execution(ctx, k.ExecutionID); err != nil || e.Status.Final() || time.Now().After(deadline) {
			c.t.Fatalf("the dependent one is %s: %s %v", e.Status, e.Error, err)
		}
	}
	w.tasks = append(w.tasks, k)
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, url: pgtest.URL(t), repos: filepath.Join(folder(t), "repos")}
	host := newServer(t, "host")
	a := newServer(t, "a", c.env(host, "a")...)
	b := newServer(t, "b", c.env(host, "b")...)
	host.Flags = append(host.Flags, "--internal-url", "http://"+a.Address+",http://"+b.Address)
	host.Start()
	key, err := host.CreateToken(t.Context(), squad.NewToken{Kind: squad.TokenE2B, Name: "cluster"})
	house.Must(t, err)
	a.Env = append(a.Env, "E2B_API_KEY="+key.Secret)
	b.Env = append(b.Env, "E2B_API_KEY="+key.Secret)
	a.Start()
	copyKey(t, a, b)
	b.Start()
	c.host, c.nodes = host, []*server{a, b}
	return c
}

// env are the settings of a node.
func (c *cluster) env(host *server, name string) []string {
	return []string{
		"DATABASE_URL=" + c.url, "SQUAD_NODE=" + name, "SQUAD_REPOS=" + c.repos,
		"E2B_API_URL=http://" + host.Address, "E2B_SANDBOX_URL=http://" + host.Address,
		"E2B_TEMPLATE_ID=base", "SQUAD_GATEWAY_URL=http://squad.internal",
	}
}

func copyKey(t *testing.T, from, to *server) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(from.Data, "key"))
	house.Must(t, err)
	house.Must(t, os.WriteFile(filepath.Join(to.Data, "key"), key, 0o600))
}

// refuseStrangers starts nodes that lack what the others share: they say so.
func (c *cluster) refuseStrangers() {
	c.t.Helper()
	strange := newServer(c.t, "c", "DATABASE_URL="+c.url, "SQUAD_NODE=c", "SQUAD_REPOS="+c.repos)
	if said := strange.refused(); !strings.Contains(said, "sealed with a key that") {
		c.t.Errorf("a node with another key says: %s", said)
	}
	apart := newServer(c.t, "d", "DATABASE_URL="+c.url, "SQUAD_NODE=d")
	copyKey(c.t, c.nodes[0], apart)
	if said := apart.refused(); !strings.Contains(said, "several nodes must share it") {
		c.t.Errorf("a node with a folder of its own says: %s", said)
	}
	twin := newServer(c.t, "a again", "DATABASE_URL="+c.url, "SQUAD_NODE=a", "SQUAD_REPOS="+c.repos)
	if said := twin.refused(); !strings.Contains(said, `is named "a"`) {
		c.t.Errorf("a second node of one name says: %s", said)
	}
}

// follow reads the whole stream of each server.
func (c *cluster) follow(servers ...*server) map[*server]chan int64 {
	seen := map[*server]chan int64{}
	from := int64(0)
	for _, s := range servers {
		ch := make(chan int64, 100_000)
		seen[s] = ch
		go func() {
			for e, err := range s.Events(c.t.Context(), client.EventQuery{After: &from}) {
				if err != nil {
					return
				}
				ch <- e.Seq
			}
		}()
	}
	return seen
}

func (c *cluster) seed(provider string, n int) *crew {
	c.t.Helper()
	ctx, a := c.t.Context(), c.nodes[0]
	source := c.t.TempDir()
	house.Sh(c.t, source, "git init -q -b main && echo hello > README.md && git add . && git -c user.name=A -c user.email=a@b.c commit -qm 'docs: begin'")
	w := &crew{provider: provider, before: map[string]squad.Execution{}, boxes: map[string]squad.Sandbox{}}
	var err error
	w.squad, err = a.CreateSquad(ctx, squad.NewSquad{Name: "Crew " + provider, Config: squad.SquadConfig{Provider: provider}})
	house.Must(c.t, err)
	w.repo, err = a.CreateRepository(ctx, squad.NewRepository{SquadID: w.squad.ID, Name: "hello", ImportPath: source})
	house.Must(c.t, err)
	w.member, err = a.CreateMember(ctx, squad.NewMember{SquadID: w.squad.ID, Name: "Ada", Role: "developer", Config: squad.MemberConfig{
		Agent: squad.AgentCommand, Command: asks, MaxRunning: n,
	}})
	house.Must(c.t, err)
	for i := range n {
		k, err := c.nodes[i%2].CreateTask(ctx, squad.NewTask{SquadID: w.squad.ID, RepositoryID: w.repo.ID, AssigneeID: w.member.ID, Title: fmt.Sprintf("Write file %d", i+1)})
		house.Must(c.t, err)
		w.tasks = append(w.tasks, k)
	}
	return w
}

// runToQuestion starts every task, half of them through each node. Whoever is quicker takes
// one up, which may be the same node each time: the first two are begun while the other node
// holds still.
func (c *cluster) runToQuestion() {
	c.t.Helper()
	for n, w := range c.crews {
		for i, k := range w.tasks {
			run := func() {
				_, err := c.nodes[i%2].RunTask(c.t.Context(), k.ID, squad.RunOptions{})
				house.Must(c.t, err)
			}
			if n == 0 && i < 2 {
				c.alone(c.nodes[i], c.nodes[1-i], k, run)
			} else {
				run()
			}
		}
	}
	c.await(c.nodes[0], 90*time.Second, "ask", func(k squad.Task) bool {
		e, err := c.nodes[0].Execution(c.t.Context(), k.ExecutionID)
		return err == nil && e.Status == squad.ExecutionWaiting && e.Liveness.State == "person"
	})
}

// alone has one node begin a task while the other is stopped.
func (c *cluster) alone(s, other *server, k squad.Task, run func()) {
	c.t.Helper()
	house.Must(c.t, other.Cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { house.Must(c.t, other.Cmd.Process.Signal(syscall.SIGCONT)) }()
	run()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		now, err := s.Task(c.t.Context(), k.ID)
		house.Must(c.t, err)
		if e, err := s.Execution(c.t.Context(), now.ExecutionID); err == nil && e.Status == squad.ExecutionRunning {
			return
		}
	}
}

// answer lets all go on, and waits until all of them are at work again.
func (c *cluster) answer() {
	c.t.Helper()
	ctx := c.t.Context()
	for _, w := range c.crews {
		for i, k := range w.tasks {
			_, err := c.nodes[i%2].NudgeTask(ctx, k.ID, "Yes, go on.")
			house.Must(c.t, err)
		}
	}
	c.await(c.nodes[0], 60*time.Second, "be at work again", func(k squad.Task) bool {
		from := int64(0)
		for _, err := range c.nodes[0].StoredEvents(ctx, client.EventQuery{ExecutionID: k.ExecutionID, Types: []squad.EventType{squad.EventLog}, After: &from}) {
			return err == nil
		}
		return false
	})
	for _, w := range c.crews {
		for _, k := range w.tasks {
			now, err := c.nodes[0].Task(ctx, k.ID)
			house.Must(c.t, err)
			e, err := c.nodes[0].Execution(ctx, now.ExecutionID)
			house.Must(c.t, err)
			sb, err := c.nodes[0].Sandbox(ctx, e.SandboxID)
			house.Must(c.t, err)
			w.before[k.ID], w.boxes[k.ID] = e, sb
		}
	}
}

// pickVictim is the node with more sandboxes on its own machine.
func (c *cluster) pickVictim() (victim, survivor *server) {
	count := map[string]int{}
	for _, sb := range c.crews[0].boxes {
		count[sb.Node]++
	}
	c.t.Logf("local sandboxes by node: %v", count)
	for _, s := range c.nodes {
		if !strings.Contains(s.Log.String(), `"msg":"sandbox made"`) {
			c.t.Errorf("the work was not shared: node %s did nothing", s.name)
		}
	}
	if count["a"] > count["b"] {
		return c.nodes[0], c.nodes[1]
	}
	return c.nodes[1], c.nodes[0]
}

func (c *cluster) await(s *server, limit time.Duration, what string, ok func(squad.Task) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	for _, w := range c.crews {
		for _, k := range w.tasks {
			for {
				now, err := s.Task(ctx, k.ID)
				if err == nil && ok(now) {
					break
				}
				if ctx.Err() != nil {
					now, _ = s.Task(c.t.Context(), k.ID)
					e, _ := s.Execution(c.t.Context(), now.ExecutionID)
					c.t.Fatalf("%s task #%d did not %s: %s %s %q; execution %s at %s, attempt %d: %s", w.provider, now.Number, what, now.Status, now.Flag, now.Cause, e.Status, e.Step, e.Attempt, e.Error)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
}
