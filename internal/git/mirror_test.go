package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
)

func newMirror(t *testing.T, url string, fresh time.Duration) *git.Mirror {
	t.Helper()
	set := git.NewMirrors(git.MirrorsConfig{Dir: t.TempDir(), Runner: newRunner(t), Fresh: fresh})
	m, err := set.Open(git.Source{ID: "r1", URL: url})
	must(t, err)
	return m
}

func TestMirror_ConcurrentFetchesAreOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "trunk")
	m := newMirror(t, d.url, time.Hour)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := m.Fetch(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// ls-remote and fetch take three or four requests together; ten of each would be more.
	if n := d.Requests.Load(); n > 8 {
		t.Errorf("%d requests", n)
	}
	if b, err := m.DefaultBranch(t.Context()); err != nil || b != "trunk" {
		t.Errorf("default branch %q, %v", b, err)
	}
}

func TestMirror_FollowsUpstreamAndKeepsOurOwnRefs(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	m := newMirror(t, d.url, time.Nanosecond)
	d.elsewhere(t, "gone", "x", "x")
	must(t, m.Fetch(t.Context(), nil))
	main := gittest.Git(t, m.Dir(), "rev-parse", "main")
	gittest.Git(t, m.Dir(), "update-ref", "refs/squad/checkpoints/e1/1", main)
	gittest.Git(t, filepath.Join(d.Root, "shop.git"), "branch", "-D", "gone")
	tip := d.elsewhere(t, "main", "y", "y")
	must(t, m.Fetch(t.Context(), nil))
	if got := gittest.Git(t, m.Dir(), "for-each-ref", "--format=%(refname) %(objectname)"); got != "refs/heads/main "+tip+"\nrefs/squad/checkpoints/e1/1 "+main {
		t.Errorf("refs:\n%s", got)
	}
}

func TestMirror_DamagedOneIsRebuiltWithItsCheckpoints(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	m := newMirror(t, d.url, time.Nanosecond)
	must(t, m.Fetch(t.Context(), nil))
	work := t.TempDir()
	gittest.Git(t, work, "clone", "-q", m.Dir(), ".")
	kept := gittest.Commit(t, work, "kept.txt", "kept", "feat: kept")
	gittest.Git(t, work, "push", "-q", "origin", "HEAD:refs/squad/checkpoints/e1/1")
	blob := gittest.Git(t, m.Dir(), "rev-parse", "main:README.md")
	must(t, os.RemoveAll(filepath.Join(m.Dir(), "objects", blob[:2], blob[2:])))
	packs, err := filepath.Glob(filepath.Join(m.Dir(), "objects", "pack", "*"))
	must(t, err)
	for _, p := range packs {
		must(t, os.Remove(p))
	}
	must(t, os.WriteFile(filepath.Join(m.Dir(), "refs", "heads", "main"), []byte("garbage\n"), 0o644))
	tip := d.elsewhere(t, "main", "y", "y")
	must(t, m.Fetch(t.Context(), nil))
	gittest.Git(t, m.Dir(), "fsck", "--connectivity-only", "refs/heads/main")
	if got := gittest.Git(t, m.Dir(), "rev-parse", "main"); got != tip {
		t.Errorf("main is %s", got)
	}
	// The damaged blob came back from upstream, so the checkpoint is whole again.
	if got, err := gittest.Try(m.Dir(), "rev-parse", "refs/squad/checkpoints/e1/1"); err != nil || got != kept {
		t.Errorf("checkpoint of the damaged mirror: %s, %v", got, err)
	}
	if _, err := os.Stat(m.Dir() + ".damaged"); err != nil {
		t.Errorf("the damaged folder is not kept: %v", err)
	}
}

func TestMirror_ObjectsAreReadableToSandboxes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	m := newMirror(t, d.url, time.Nanosecond)
	must(t, m.Fetch(t.Context(), nil))
	s, err := git.NewScratch(m.Dir())
	must(t, err)
	defer s.Close()
	r := newRunner(t)
	for i := range 20 {
		_, err := r.Run(t.Context(), git.Call{Dir: m.Dir(), Env: s.Env(), Args: []string{"hash-object", "-w", "--stdin"}, Stdin: strings.NewReader(fmt.Sprint(i))})
		must(t, err)
	}
	must(t, s.Keep(t.Context()))
	must(t, filepath.WalkDir(filepath.Join(m.Dir(), "objects"), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if want := map[bool]os.FileMode{true: 0o005, false: 0o004}[e.IsDir()]; info.Mode()&want != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}))
}

func TestMaintain_PacksAndDropsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "main")
	m := newMirror(t, d.url, time.Nanosecond)
	must(t, m.Fetch(t.Context(), nil))
	if did, err := m.Maintain(t.Context()); did || err != nil {
		t.Errorf("a small mirror: %v, %v", did, err)
	}
	// Objects that no ref names: work that was pushed and refused, or replaced.
	var in strings.Builder
	for i := range 2100 {
		fmt.Fprintf(&in, "blob\ndata <<END\nnumber %d\nEND\n", i)
	}
	r := newRunner(t)
	for range 45 {
		in.WriteString("checkpoint\n")
	}
	_, err := r.Run(t.Context(), git.Call{Dir: m.Dir(), Args: []string{"fast-import", "--quiet"}, Stdin: strings.NewReader(in.String()), Config: []string{"fastimport.unpackLimit=5000"}})
	must(t, err)
	before := gittest.Git(t, m.Dir(), "cat-file", "--batch-all-objects", "--batch-check")
	if did, err := m.Maintain(t.Context()); !did || err != nil {
		t.Fatalf("a large mirror: %v, %v", did, err)
	}
	if after := gittest.Git(t, m.Dir(), "cat-file", "--batch-all-objects", "--batch-check"); after != before {
		t.Errorf("%d lines became %d", strings.Count(before, "\n"), strings.Count(after, "\n"))
	}
}
