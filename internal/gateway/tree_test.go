package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/gateway"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
	"agentsquad/internal/store"
)

// copyTree stands for an image: a folder with all times kept.
func copyTree(ctx context.Context, dir, out string) error {
	return exec.CommandContext(ctx, "cp", "-a", "--", dir, out).Run()
}

// treeKit makes a kit whose images are folders and whose mirror is seen where the
// checkout expects it.
func treeKit(t testing.TB, made *atomic.Int64) *kit {
	t.Helper()
	objects := t.TempDir()
	k := newKit(t, func(c *gateway.Config) {
		c.Trees = gateway.TreeConfig{Dir: t.TempDir(), ObjectsPath: objects, WriteImage: func(ctx context.Context, dir, out string) error {
			made.Add(1)
			return copyTree(ctx, dir, out)
		}}
	})
	m, err := k.g.Mirror(k.repo)
	must(t, err)
	must(t, os.Symlink(filepath.Join(m.Dir(), "objects"), filepath.Join(objects, k.repo.ID)))
	return k
}

func TestPrepareTree_CleanWithoutReadingAFile(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	k := treeKit(t, &made)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := k.g.PrepareTree(t.Context(), k.repo.ID, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	tree, err := k.g.PrepareTree(t.Context(), k.repo.ID, "main")
	must(t, err)
	if made.Load() != 1 {
		t.Errorf("%d images were made", made.Load())
	}
	if tree.Path != "/home/user/shop" || tree.Commit != gittest.Git(t, k.bare, "rev-parse", "main") || !strings.HasSuffix(tree.ObjectsPath, k.repo.ID) {
		t.Errorf("got %+v", tree)
	}
	if got := gittest.Git(t, tree.Image, "status", "--porcelain", "--branch"); got != "## main...origin/main" {
		t.Errorf("status: %q", got)
	}
	if got := gittest.Git(t, tree.Image, "config", "remote.origin.url"); got != "http://squad.internal/git/"+k.repo.ID+".git" {
		t.Errorf("origin: %q", got)
	}
	// Same size and time, other content: who trusts the index does not look.
	file := filepath.Join(tree.Image, "README.md")
	info, err := os.Stat(file)
	must(t, err)
	must(t, os.WriteFile(file, bytes.Repeat([]byte("x"), int(info.Size())), 0o644))
	must(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
	if got := gittest.Git(t, tree.Image, "status", "--porcelain"); got != "" {
		t.Errorf("git read the file: %q", got)
	}
	// A new commit upstream makes a new image; the branch can be worked on.
	person := t.TempDir()
	gittest.Git(t, person, "clone", "-q", k.bare, ".")
	gittest.Commit(t, person, "new file.txt", "new\n", "feat: new")
	gittest.Git(t, person, "push", "-q", "origin", "main")
	next, err := k.g.PrepareTree(t.Context(), k.repo.ID, "main")
	must(t, err)
	if next.Image == tree.Image || made.Load() != 2 {
		t.Errorf("stale image %s", next.Image)
	}
	gittest.Git(t, next.Image, "checkout", "-q", "-b", k.branch())
	gittest.Commit(t, next.Image, "a.txt", "a\n", "feat: in the tree")
	gittest.Git(t, next.Image, "fsck", "--connectivity-only")
	gittest.Git(t, next.Image, "push", "-q", k.url+"/git/"+k.repo.ID+".git", k.branch())
}

// rot damages the content of every object of the mirror that is not a ref's own.
func rot(t *testing.T, k *kit) {
	t.Helper()
	dir := mirrorDir(t, k)
	blob := gittest.Git(t, dir, "rev-parse", "main:README.md")
	name := filepath.Join(dir, "objects", blob[:2], blob[2:])
	must(t, os.Chmod(name, 0o644))
	must(t, os.WriteFile(name, []byte("not what was written here"), 0o444))
}

// What rots on the disk is noticed when it is read: a fetch alone does not look.
func TestMirror_RottenObjectsAreFetchedAgain(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	k := treeKit(t, &made)
	k.clone(t)
	rot(t, k)
	tree, err := k.g.PrepareTree(t.Context(), k.repo.ID, "")
	if err != nil || made.Load() != 1 {
		t.Fatalf("%d images, %v", made.Load(), err)
	}
	if got := gittest.Git(t, tree.Image, "status", "--porcelain"); got != "" {
		t.Errorf("status: %q", got)
	}
	rot(t, k)
	remote := k.url + "/git/" + k.repo.ID + ".git"
	if out, err := gittest.Try(t.TempDir(), "clone", "-q", remote, "."); err == nil {
		t.Errorf("rotten objects were sent: %s", out)
	}
	gittest.Git(t, t.TempDir(), "clone", "-q", remote, ".")
	gittest.Git(t, mirrorDir(t, k), "fsck")
}

func TestPrepareTree_EmptyRepositoryHasNoImage(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	k := treeKit(t, &made)
	empty := squad.Repository{SquadID: k.squad.ID, Name: "empty", Forge: squad.ForgeLocal, DefaultBranch: "main"}
	must(t, k.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.CreateRepository(t.Context(), &empty) }))
	gittest.Git(t, k.cfg.ReposDir, "init", "-q", "--bare", empty.ID+".git")
	tree, err := k.g.PrepareTree(t.Context(), empty.ID, "")
	must(t, err)
	if tree.Image != "" || tree.Commit != "" || made.Load() != 0 {
		t.Errorf("got %+v", tree)
	}
	if _, err := newKit(t, nil).g.PrepareTree(t.Context(), empty.ID, ""); squad.CodeOf(err) != squad.CodeUnavailable {
		t.Errorf("without images: %v", err)
	}
}

// BenchmarkPrepareTree compares the making of an image, once per commit, and the
// finding of it, once per sandbox, with git clone --shared.
func BenchmarkPrepareTree(b *testing.B) {
	if _, err := exec.LookPath("mkfs.erofs"); err != nil {
		b.Skip("mkfs.erofs is not installed: apt install erofs-utils")
	}
	var k *kit
	serial := 0
	k = newKit(b, func(c *gateway.Config) {
		c.Trees = gateway.TreeConfig{Dir: b.TempDir(), WriteImage: func(ctx context.Context, dir, out string) error {
			return exec.CommandContext(ctx, "mkfs.erofs", "-Enoinline_data,force-inode-extended", out, dir).Run()
		}}
	})
	work := b.TempDir()
	gittest.Git(b, work, "clone", "-q", k.bare, ".")
	for i := range 10000 {
		gittest.Write(b, work, fmt.Sprintf("d%03d/f%03d.txt", i/100, i%100), strings.Repeat(fmt.Sprintf("line %d\n", i), 400))
	}
	commit := func() {
		serial++
		gittest.Commit(b, work, "serial.txt", fmt.Sprint(serial), "feat: another commit")
		gittest.Git(b, work, "push", "-q", "origin", "main")
	}
	commit()
	b.Run("git clone --shared", func(b *testing.B) {
		for b.Loop() {
			gittest.Git(b, b.TempDir(), "clone", "-q", "--shared", k.bare, "c")
		}
	})
	b.Run("new commit", func(b *testing.B) {
		var spent time.Duration
		for b.Loop() {
			commit()
			start := time.Now()
			if _, err := k.g.PrepareTree(b.Context(), k.repo.ID, "main"); err != nil {
				b.Fatal(err)
			}
			spent += time.Since(start)
		}
		b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "ms/image")
	})
	b.Run("same commit", func(b *testing.B) {
		for b.Loop() {
			if _, err := k.g.PrepareTree(b.Context(), k.repo.ID, "main"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestPrepareTree_BranchThatExistsUpstreamIsContinued(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	k := treeKit(t, &made)
	dir := k.clone(t)
	sha := gittest.Commit(t, dir, "a.txt", "a\n", "feat: earlier attempt")
	k.push(t, false, "origin", k.branch())
	tree, err := k.g.PrepareTree(t.Context(), k.repo.ID, "main")
	must(t, err)
	mounted := filepath.Join(t.TempDir(), "shop")
	must(t, copyTree(t.Context(), tree.Image, mounted))
	gittest.Git(t, mounted, "remote", "set-url", "origin", k.url+"/git/"+k.repo.ID+".git")
	co, err := new(git.Checkouts).Open(git.New(git.Config{}), "sandbox", mounted)
	must(t, err)
	b, err := co.Branch(t.Context(), k.branch(), "main")
	must(t, err)
	if !b.Continued || b.Head != sha {
		t.Errorf("got %+v", b)
	}
	b, err = co.Branch(t.Context(), "task-999", "main")
	must(t, err)
	if b.Continued || b.Base != tree.Commit || b.Head != tree.Commit {
		t.Errorf("got %+v", b)
	}
}
