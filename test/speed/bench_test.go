package speed

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/test/house"
)

// rounds is how often each way is gone in one run: one alone says as much about the
// moment, and about how busy the disk is with the floor's own files, as about the way.
const rounds = 5

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// times collects what is measured in each round; the middle one is told.
type times map[string][]float64

func (t times) add(name string, v float64) { t[name] = append(t[name], v) }

func (t times) report(b *testing.B) {
	for name, list := range t {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name)
	}
}

// BenchmarkSmallRepository has the aim of 0.3 s from the asking for the sandbox to
// readable files on a branch; the way through a task, to the first line of its agent, is
// told too. It comes first: the large ones leave the disk busy.
func BenchmarkSmallRepository(b *testing.B) {
	s := start(b)
	source := b.TempDir()
	git(b, source, "init", "-q", "-b", "main")
	house.Must(b, os.WriteFile(filepath.Join(source, "README.md"), []byte("small\n"), 0o644))
	git(b, source, "add", ".")
	git(b, source, "commit", "-q", "-m", "docs: begin")
	repo, m := s.repository("small", source), s.member("Ada", ready)
	s.run(1, repo, m)
	seen := times{}
	for i := range rounds {
		_, made := s.run(1, repo, m)
		seen.add("s/task-to-agent", made.Seconds())
		begin := time.Now()
		box := s.sandbox(repo.ID)
		s.onBranch(box.ID, repo, fmt.Sprintf("try-%d", i))
		seen.add("s/created-for-it", time.Since(begin).Seconds())
		seen.add("s/of-it-the-sandbox", float64(box.CreateMS)/1000)
		empty := s.sandbox("")
		begin = time.Now()
		_, err := s.Git(b.Context(), empty.ID, "clone", squad.GitRequest{RepositoryID: repo.ID})
		house.Must(b, err)
		s.onBranch(empty.ID, repo, "task-99999")
		seen.add("s/running-sandbox", time.Since(begin).Seconds())
		for _, id := range []string{box.ID, empty.ID} {
			house.Must(b, s.DeleteSandbox(b.Context(), id))
		}
	}
	seen.report(b)
}

// BenchmarkLargeRepository has the aims 0.3 for a branch with readable files in a
// sandbox that is made for it, 1 for the first clean status, and 5 into a sandbox that
// runs already. The first is told as a whole, from the asking for the sandbox on, and
// without the making of the sandbox, which is told against that of an empty one.
func BenchmarkLargeRepository(b *testing.B) {
	source := largeRepository(b)
	s := start(b)
	repo := s.repository("large", source)
	m := s.member("Ada", ready)
	_, image := s.run(1, repo, m) // the first one makes the image of the commit
	seen := times{}
	for i := range rounds {
		floor := cloneShared(b, source)
		seen.add("s/clone-shared", floor.Seconds())
		_, made := s.run(1, repo, m)
		seen.add("x/task-to-agent", ratio(made, floor))
		empty := s.sandbox("")
		begin := time.Now()
		box := s.sandbox(repo.ID)
		have := time.Since(begin)
		s.onBranch(box.ID, repo, fmt.Sprintf("try-%d", i))
		all := time.Since(begin)
		seen.add("s/created-for-it", all.Seconds())
		seen.add("x/created-for-it", ratio(all, floor))
		seen.add("x/after-it-was-made", ratio(all-have, floor))
		seen.add("x/made-with-against-without", float64(box.CreateMS)/float64(empty.CreateMS))
		out, status := s.execute(box.ID, "cd large && git status --porcelain")
		if strings.TrimSpace(out) != "" {
			b.Fatalf("the first status is not clean:\n%s", out)
		}
		seen.add("x/first-status", ratio(status, floor))
		begin = time.Now()
		_, err := s.Git(b.Context(), empty.ID, "clone", squad.GitRequest{RepositoryID: repo.ID})
		house.Must(b, err)
		s.onBranch(empty.ID, repo, "task-99999")
		running := time.Since(begin)
		seen.add("s/running-sandbox", running.Seconds())
		seen.add("x/running-sandbox", ratio(running, floor))
		for _, id := range []string{box.ID, empty.ID} {
			house.Must(b, s.DeleteSandbox(b.Context(), id))
		}
	}
	seen.add("s/first-with-image", image.Seconds())
	seen.report(b)
}

// sandbox makes one, with a repository in it or "".
func (s *server) sandbox(repositoryID string) squad.Sandbox {
	s.b.Helper()
	box, err := s.CreateSandbox(s.b.Context(), squad.SandboxRequest{SquadID: s.crew.ID, RepositoryID: repositoryID})
	house.Must(s.b, err)
	return box
}

// onBranch makes a branch and reads a file of each folder.
func (s *server) onBranch(box string, repo squad.Repository, branch string) {
	s.b.Helper()
	_, err := s.Git(s.b.Context(), box, "branch", squad.GitRequest{RepositoryID: repo.ID, Branch: branch})
	house.Must(s.b, err)
	s.execute(box, "cd "+repo.Name+" && cat */f000* README* 2>/dev/null > /dev/null; git symbolic-ref --short HEAD")
}

// BenchmarkShared100 has a hundred sandboxes of the large repository write a megabyte
// each: disk grows by that, not by a hundred checkouts of 220 MB.
func BenchmarkShared100(b *testing.B) {
	const boxes, each = 100, 1_000_000
	s := start(b)
	repo := s.repository("large", largeRepository(b))
	s.run(1, repo, s.member("First", ready))
	m := s.member("Ada", "head -c 1000000 /dev/urandom > mine.bin; sync; "+ready)
	for b.Loop() {
		before := used(b, s.Data)
		_, took := s.run(boxes, repo, m)
		grew := used(b, s.Data) - before
		b.ReportMetric(float64(grew)/boxes/each, "x/of-what-each-changed")
		b.ReportMetric(float64(grew)/(boxes*files*fileSize), "x/of-100-checkouts")
		b.ReportMetric(took.Seconds(), "s/100-sandboxes")
	}
}

// used adds up the blocks on disk below dir, each file once. What a sandbox writes is in
// files that have no name any more: they are found in its process.
func used(b *testing.B, dir string) int64 {
	b.Helper()
	var n int64
	seen := map[uint64]bool{}
	add := func(info fs.FileInfo) {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !seen[st.Ino] {
			seen[st.Ino] = true
			n += st.Blocks * 512
		}
	}
	house.Must(b, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went while we looked
		}
		if info, err := d.Info(); err == nil {
			add(info)
		}
		return nil
	}))
	open, err := filepath.Glob("/proc/[0-9]*/fd/*")
	house.Must(b, err)
	for _, fd := range open {
		name, err := os.Readlink(fd)
		if err != nil || !strings.HasPrefix(name, dir+"/") || !strings.HasSuffix(name, " (deleted)") {
			continue
		}
		if info, err := os.Stat(fd); err == nil {
			add(info)
		}
	}
	return n
}
