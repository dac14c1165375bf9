package speed

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/test/house"
)

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// BenchmarkLargeRepository has the aims 0.3 for a branch with readable files in a
// sandbox that is made for it, 1 for the first clean status, and 5 into a sandbox that
// runs already.
func BenchmarkLargeRepository(b *testing.B) {
	source := largeRepository(b)
	s := start(b)
	repo := s.repository("large", source)
	m := s.member("Ada", ready)
	_, image := s.run(1, repo, m) // the first one makes the image of the commit
	for b.Loop() {
		floor := cloneShared(b, source)
		boxes, made := s.run(1, repo, m)
		out, status := s.execute(boxes[0], "cd large && git status --porcelain")
		if strings.TrimSpace(out) != "" {
			b.Fatalf("the first status is not clean:\n%s", out)
		}
		box, err := s.CreateSandbox(b.Context(), squad.SandboxRequest{SquadID: s.crew.ID})
		house.Must(b, err)
		begin := time.Now()
		for _, verb := range []string{"clone", "branch"} {
			_, err := s.Git(b.Context(), box.ID, verb, squad.GitRequest{RepositoryID: repo.ID, Branch: map[string]string{"branch": "task-99999"}[verb]})
			house.Must(b, err)
		}
		s.execute(box.ID, "cd large && cat */f000* > /dev/null")
		running := time.Since(begin)
		house.Must(b, s.DeleteSandbox(b.Context(), box.ID))
		b.ReportMetric(floor.Seconds(), "s/clone-shared")
		b.ReportMetric(image.Seconds(), "s/first-with-image")
		b.ReportMetric(ratio(made, floor), "x/created-for-it")
		b.ReportMetric(ratio(status, floor), "x/first-status")
		b.ReportMetric(ratio(running, floor), "x/running-sandbox")
	}
}

// BenchmarkSmallRepository has the aim of 0.3 s from the task's making to readable
// files on its branch.
func BenchmarkSmallRepository(b *testing.B) {
	s := start(b)
	source := b.TempDir()
	git(b, source, "init", "-q", "-b", "main")
	house.Must(b, os.WriteFile(filepath.Join(source, "README.md"), []byte("small\n"), 0o644))
	git(b, source, "add", ".")
	git(b, source, "commit", "-q", "-m", "docs: begin")
	repo, m := s.repository("small", source), s.member("Ada", ready)
	s.run(1, repo, m)
	for b.Loop() {
		_, made := s.run(1, repo, m)
		b.ReportMetric(made.Seconds(), "s/created-for-it")
	}
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

// used adds up the blocks on disk, each file once.
func used(b *testing.B, dir string) int64 {
	b.Helper()
	var n int64
	seen := map[uint64]bool{}
	house.Must(b, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went while we looked
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok && !seen[st.Ino] {
				seen[st.Ino] = true
				n += st.Blocks * 512
			}
		}
		return nil
	}))
	return n
}
