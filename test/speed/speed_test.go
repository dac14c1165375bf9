// Package speed measures what git costs in sandboxes of the built server, as ratios
// to `git clone --shared` on the host in the same run: a repository of ten thousand
// files and more than 200 MB of objects, and a small one. `make bench` runs it; there
// are no timed tests.
package speed

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/test/house"
)

const (
	files    = 10_000
	fileSize = 22_000 // of bytes that do not shrink: 220 MB in all
)

// largeRepository makes the repository once and keeps it among the user's caches.
func largeRepository(b *testing.B) string {
	b.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "squad-bench", fmt.Sprintf("large-%d-%d.git", files, fileSize))
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		return dir
	}
	house.Must(b, os.RemoveAll(dir))
	house.Must(b, os.MkdirAll(dir, 0o755))
	git(b, dir, "init", "-q", "--bare", "-b", "main", ".")
	cmd := exec.Command("git", "-c", "core.compression=0", "-c", "pack.compression=0", "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	house.Must(b, err)
	house.Must(b, cmd.Start())
	w := bufio.NewWriterSize(in, 1<<20)
	writeCommits(w)
	house.Must(b, w.Flush())
	house.Must(b, in.Close())
	house.Must(b, cmd.Wait())
	house.Must(b, os.WriteFile(filepath.Join(dir, "made"), nil, 0o644))
	return dir
}

func writeCommits(w *bufio.Writer) {
	noise := rand.NewChaCha8([32]byte{1})
	content := make([]byte, fileSize)
	fmt.Fprint(w, "commit refs/heads/main\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata 11\nfeat: begin\n")
	for i := range files {
		noise.Read(content)
		fmt.Fprintf(w, "M 100644 inline d%03d/f%03d.bin\ndata %d\n", i/100, i%100, fileSize)
		w.Write(content)
		fmt.Fprintln(w)
	}
}

func git(b *testing.B, dir string, args ...string) {
	b.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// cloneShared is the floor.
func cloneShared(b *testing.B, from string) time.Duration {
	b.Helper()
	dir := b.TempDir()
	start := time.Now()
	git(b, dir, "clone", "-q", "--shared", from, "c")
	took := time.Since(start)
	house.Must(b, os.RemoveAll(filepath.Join(dir, "c"))) // what is not on the disk yet need not go there
	return took
}

// server is the built program with one squad.
type server struct {
	*house.Server
	b    *testing.B
	crew squad.Squad
}

func start(b *testing.B) *server {
	b.Helper()
	if os.Getenv("SQUAD_BIN") == "" {
		b.Skip("SKIPPED: SQUAD_BIN names no built program; run `make bench`")
	}
	s := &server{Server: house.New(b, []string{"--log-level", "warn", "--pool-max", "0", "--max-running", "200"}, nil), b: b}
	s.Start()
	var err error
	s.crew, err = s.CreateSquad(b.Context(), squad.NewSquad{Name: "Crew"})
	house.Must(b, err)
	return s
}

func (s *server) repository(name, from string) squad.Repository {
	s.b.Helper()
	r, err := s.CreateRepository(s.b.Context(), squad.NewRepository{SquadID: s.crew.ID, Name: name, ImportPath: from})
	house.Must(s.b, err)
	return r
}

// ready says on which branch it is and reads a file of each folder.
const ready = `git symbolic-ref --short HEAD; cat */f000* README* 2>/dev/null | wc -c; echo files are readable; until [ -e /tmp/over ]; do sleep 1; done`

func (s *server) member(name, command string) squad.Member {
	s.b.Helper()
	m, err := s.CreateMember(s.b.Context(), squad.NewMember{SquadID: s.crew.ID, Name: name, Role: "developer", Config: squad.MemberConfig{
		Agent: squad.AgentCommand, MaxRunning: 200, Command: command,
	}})
	house.Must(s.b, err)
	return m
}

// run starts n tasks at once. It returns their sandboxes, and how long it was until
// the last agent could read the files on its branch.
func (s *server) run(n int, repo squad.Repository, m squad.Member) ([]string, time.Duration) {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.Context(), 10*time.Minute)
	defer cancel()
	after, err := s.LastSeq(ctx)
	house.Must(s.b, err)
	begin := time.Now()
	for i := range n {
		_, err := s.CreateTask(ctx, squad.NewTask{SquadID: s.crew.ID, RepositoryID: repo.ID, AssigneeID: m.ID, Title: fmt.Sprintf("Read %d", i), Run: true})
		house.Must(s.b, err)
	}
	var boxes []string
	for e, err := range s.Events(ctx, client.EventQuery{After: &after, Types: []squad.EventType{squad.EventLog, squad.EventTaskUpdated}}) {
		house.Must(s.b, err)
		if e.Type == squad.EventTaskUpdated && bytes.Contains(e.Payload, []byte(`"flag"`)) {
			s.b.Fatalf("a task failed: %s\n%s", e.Payload, s.Log.String())
		}
		if e.Type == squad.EventLog && bytes.Contains(e.Payload, []byte("files are readable")) {
			if boxes = append(boxes, e.SandboxID); len(boxes) == n {
				break
			}
		}
	}
	return boxes, time.Since(begin)
}

func (s *server) execute(box, script string) (string, time.Duration) {
	s.b.Helper()
	begin := time.Now()
	res, err := s.Execute(s.b.Context(), box, squad.Command{Shell: script})
	house.Must(s.b, err)
	if res.ExitCode != 0 {
		s.b.Fatalf("%s: exit code %d\n%s%s", script, res.ExitCode, res.Stdout, res.Stderr)
	}
	return res.Stdout, time.Since(begin)
}
