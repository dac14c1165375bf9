// Package load measures the built server from outside: how long a task with a
// trivial agent takes from its making to its pull request, alone and a hundred at
// once. `make bench` runs it; there are no timed tests.
package load

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
)

type server struct {
	b    *testing.B
	data string
	cmd  *exec.Cmd
	log  bytes.Buffer
	c    *client.Client

	crew   squad.Squad
	repo   squad.Repository
	member squad.Member
}

func start(b *testing.B, flags ...string) *server {
	b.Helper()
	bin := os.Getenv("SQUAD_BIN")
	if bin == "" {
		b.Skip("SKIPPED: SQUAD_BIN names no built program; run `make bench`")
	}
	data, err := os.MkdirTemp("", "squad-load-") //nolint:usetesting // unix sockets need a short path
	must(b, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	address := l.Addr().String()
	l.Close()
	s := &server{b: b, data: data}
	s.cmd = exec.Command(bin, append([]string{"up", "--listen", address, "--data", data, "--log-level", "warn"}, flags...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + data}
	must(b, s.cmd.Start())
	b.Cleanup(s.end)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if cfg, err := client.FromData(data); err == nil {
			if s.c, err = client.New(cfg); err == nil && s.c.Ready(b.Context()) == nil {
				break
			}
		}
		if time.Now().After(deadline) {
			b.Fatalf("the server did not become ready\n%s", s.log.String())
		}
	}
	s.seed()
	return s
}

func (s *server) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines { // sandboxes outlive their server
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(s.data)) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	_ = os.RemoveAll(s.data)
	if errors := strings.Count(s.log.String(), `"level":"ERROR"`); errors > 0 {
		s.b.Errorf("%d errors in the server's log:\n%s", errors, s.log.String())
	}
}

func (s *server) seed() {
	s.b.Helper()
	ctx, source := s.b.Context(), s.b.TempDir()
	cmd := exec.Command("sh", "-c", "git init -q -b main && echo hello > README.md && git add . && git -c user.name=A -c user.email=a@b commit -qm 'docs: begin'")
	cmd.Dir = source
	must(s.b, cmd.Run())
	var err error
	s.crew, err = s.c.CreateSquad(ctx, squad.NewSquad{Name: "Crew"})
	must(s.b, err)
	s.repo, err = s.c.CreateRepository(ctx, squad.NewRepository{SquadID: s.crew.ID, Name: "hello", ImportPath: source})
	must(s.b, err)
	s.member, err = s.c.CreateMember(ctx, squad.NewMember{SquadID: s.crew.ID, Name: "Ada", Role: "developer", Config: squad.MemberConfig{
		Agent: squad.AgentCommand, MaxRunning: 100, Command: `echo "$SQUAD_TASK_NUMBER" > "task-$SQUAD_TASK_NUMBER.txt"`,
	}})
	must(s.b, err)
}

// run makes n tasks at once and waits for their pull requests. It returns how long
// each took.
func (s *server) run(n int) []time.Duration {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.Context(), 5*time.Minute)
	defer cancel()
	after, err := s.c.LastSeq(ctx)
	must(s.b, err)
	began := map[string]time.Time{}
	for i := range n {
		at := time.Now()
		t, err := s.c.CreateTask(ctx, squad.NewTask{SquadID: s.crew.ID, RepositoryID: s.repo.ID, AssigneeID: s.member.ID, Title: fmt.Sprintf("Write file %d", i), Run: true})
		must(s.b, err)
		began[t.ID] = at
	}
	var took []time.Duration
	for e, err := range s.c.Events(ctx, client.EventQuery{After: &after, Types: []squad.EventType{squad.EventPRCreated, squad.EventTaskUpdated}}) {
		must(s.b, err)
		if e.Type == squad.EventTaskUpdated && bytes.Contains(e.Payload, []byte(`"flag"`)) {
			s.b.Fatalf("a task failed: %s", e.Payload)
		}
		if at, ok := began[e.TaskID]; ok && e.Type == squad.EventPRCreated {
			took = append(took, time.Since(at))
			if delete(began, e.TaskID); len(began) == 0 {
				break
			}
		}
	}
	slices.Sort(took)
	return took
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkTaskToPull is one task after the other; the aim is p50 at most 1 s.
func BenchmarkTaskToPull(b *testing.B) {
	for name, flags := range map[string][]string{"cold": {"--pool-max", "0"}, "pool": {"--pool-min", "2", "--pool-max", "4"}} {
		b.Run(name, func(b *testing.B) {
			s := start(b, flags...)
			s.run(1) // makes the image of the base commit
			var took []time.Duration
			for range 9 {
				took = append(took, s.run(1)...)
			}
			slices.Sort(took)
			b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
			b.ReportMetric(ms(took[len(took)-1]), "max-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkTasks100 is a hundred at once; the aim is all within 60 s and a server
// under 500 MB.
func BenchmarkTasks100(b *testing.B) {
	s := start(b, "--pool-max", "0")
	began := time.Now()
	took := s.run(100)
	b.ReportMetric(time.Since(began).Seconds(), "total-s")
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(s.memory(), "server-MB")
	b.ReportMetric(0, "ns/op")
}

// memory is the server's peak resident size without file pages of the program.
func (s *server) memory() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
