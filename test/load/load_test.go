// Package load measures the built server from outside: how long a task with a
// trivial agent takes from its making to its pull request, alone and a hundred at
// once. `make bench` runs it; there are no timed tests.
package load

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/test/house"
)

type server struct {
	*house.Server
	b *testing.B

	crew   squad.Squad
	repo   squad.Repository
	member squad.Member
}

func start(b *testing.B, flags ...string) *server {
	b.Helper()
	if os.Getenv("SQUAD_BIN") == "" {
		b.Skip("SKIPPED: SQUAD_BIN names no built program; run `make bench`")
	}
	s := &server{Server: house.New(b, append(flags, "--log-level", "warn"), nil), b: b}
	b.Cleanup(func() {
		if errors := strings.Count(s.Log.String(), `"level":"ERROR"`); errors > 0 {
			b.Errorf("%d errors in the server's log:\n%s", errors, s.Log.String())
		}
	})
	s.Start()
	s.seed()
	return s
}

func (s *server) seed() {
	s.b.Helper()
	ctx := s.b.Context()
	var err error
	s.crew, err = s.CreateSquad(ctx, squad.NewSquad{Name: "Crew"})
	house.Must(s.b, err)
	s.repo, err = s.CreateRepository(ctx, squad.NewRepository{SquadID: s.crew.ID, Name: "hello", ImportPath: house.Repository(s.b)})
	house.Must(s.b, err)
	s.member, err = s.CreateMember(ctx, squad.NewMember{SquadID: s.crew.ID, Name: "Ada", Role: "developer", Config: squad.MemberConfig{
		Agent: squad.AgentCommand, MaxRunning: 100, Command: `echo "$SQUAD_TASK_NUMBER" > "task-$SQUAD_TASK_NUMBER.txt"`,
	}})
	house.Must(s.b, err)
}

// run makes n tasks at once and waits for their pull requests. It returns how long
// each took.
func (s *server) run(n int) []time.Duration {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.Context(), 5*time.Minute)
	defer cancel()
	after, err := s.LastSeq(ctx)
	house.Must(s.b, err)
	began := map[string]time.Time{}
	for i := range n {
		at := time.Now()
		t, err := s.CreateTask(ctx, squad.NewTask{SquadID: s.crew.ID, RepositoryID: s.repo.ID, AssigneeID: s.member.ID, Title: fmt.Sprintf("Write file %d", i), Run: true})
		house.Must(s.b, err)
		began[t.ID] = at
	}
	var took []time.Duration
	for e, err := range s.Events(ctx, client.EventQuery{After: &after, Types: []squad.EventType{squad.EventPRCreated, squad.EventTaskUpdated}}) {
		house.Must(s.b, err)
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

// memory is the server's resident size without file pages of the program.
func (s *server) memory() float64 { return s.status("RssAnon:") }

// status reads a size that the kernel tells, in MB.
func (s *server) status(name string) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
