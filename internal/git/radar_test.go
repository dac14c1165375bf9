package git_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
)

// branches makes a repository whose branches each change files of a base.
func branches(t *testing.T, changes map[string]map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "-q")
	gittest.Write(t, dir, "keep/a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	gittest.Write(t, dir, "old/x.txt", "x1\nx2\nx3\nx4\n")
	gittest.Commit(t, dir, "b.txt", "b\n", "feat: base")
	for name, files := range changes {
		if name == "main" {
			continue
		}
		gittest.Git(t, dir, "checkout", "-q", "-b", name, "main")
		apply(t, dir, files)
		gittest.Git(t, dir, "commit", "-q", "-m", "feat: "+name)
	}
	gittest.Git(t, dir, "checkout", "-q", "main")
	if files := changes["main"]; files != nil {
		apply(t, dir, files)
		gittest.Git(t, dir, "commit", "-q", "-m", "feat: main moved")
	}
	return dir
}

func apply(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if text == "-" {
			gittest.Git(t, dir, "rm", "-q", path)
			continue
		}
		if from, ok := strings.CutPrefix(text, "mv "); ok {
			gittest.Write(t, dir, path, "")
			gittest.Git(t, dir, "mv", "-f", from, path)
			continue
		}
		gittest.Write(t, dir, path, text)
	}
	gittest.Git(t, dir, "add", "-A")
}

func TestRadar_FindsWhatMergesWouldFind(t *testing.T) {
	t.Parallel()
	dir := branches(t, map[string]map[string]string{
		"main":   {"b.txt": "b main\n"},
		"same":   {"keep/a.txt": "ONE\n2\n3\n4\n5\n6\n7\n8\n9\n"},
		"clash":  {"keep/a.txt": "uno\n2\n3\n4\n5\n6\n7\n8\n9\n"},
		"apart":  {"keep/a.txt": "1\n2\n3\n4\n5\n6\n7\n8\nNINE\n"},
		"onbase": {"b.txt": "b branch\n"},
		"del":    {"keep/a.txt": "-"},
		"folder": {"place/in.txt": "in\n"},
		"file":   {"place": "file\n"},
		"rename": {"new/x.txt": "mv old/x.txt"},
		"addold": {"old/y.txt": "y\n"},
		"quiet":  {"quiet.txt": "q\n"},
	})
	names := []string{"same", "clash", "apart", "onbase", "del", "folder", "file", "rename", "addold", "quiet"}
	var heads []git.Head
	for _, n := range names {
		heads = append(heads, git.Head{ID: n, SHA: gittest.Git(t, dir, "rev-parse", n)})
	}
	found, err := git.NewRadar(newRunner(t)).Scan(t.Context(), filepath.Join(dir, ".git"), "main", heads)
	must(t, err)
	got := map[string]bool{}
	for _, o := range found {
		got[o.A+"+"+o.B] = true
		if len(o.Files) == 0 {
			t.Errorf("%s+%s names no file", o.A, o.B)
		}
	}
	// The judge is a real merge of every pair.
	for i, a := range names {
		for _, b := range append([]string{""}, names[i+1:]...) {
			other := b
			if b == "" {
				other = "main"
			}
			_, err := gittest.Try(dir, "merge-tree", "--write-tree", a, other)
			if want := err != nil; got[a+"+"+b] != want {
				t.Errorf("%s with %s: radar says %v, a merge says %v", a, other, got[a+"+"+b], want)
			}
		}
	}
	if !got["same+clash"] || !got["onbase+"] || got["same+apart"] || !got["rename+addold"] || !got["folder+file"] {
		t.Errorf("found %v", got)
	}
	files, err := git.Conflicts(t.Context(), newRunner(t), filepath.Join(dir, ".git"), "same", "clash")
	must(t, err)
	if len(files) != 1 || files[0].Kind != "contents" || len(files[0].Hunks) != 1 || files[0].Hunks[0].Ours != "ONE\n" || files[0].Hunks[0].Theirs != "uno\n" {
		t.Errorf("conflict: %+v", files)
	}
}

func TestMerge_ThreeWaysInABareRepository(t *testing.T) {
	t.Parallel()
	for _, method := range []git.MergeMethod{git.MethodMerge, git.MethodSquash, git.MethodRebase} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			dir := branches(t, map[string]map[string]string{"main": {"m.txt": "m\n"}, "task-1": {"t.txt": "t\n"}, "bad": {"m.txt": "other\n"}})
			gittest.Git(t, dir, "checkout", "-q", "task-1")
			head := gittest.Commit(t, dir, "t2.txt", "t2\n", "fix: second\n\nbody")
			bare := t.TempDir()
			gittest.Git(t, bare, "clone", "-q", "--mirror", dir, ".")
			q := git.MergeRequest{Into: "main", Head: "task-1", Method: method, Message: "feat: the task (#1)", Author: ada, ExpectHead: head}
			sha, err := git.Merge(t.Context(), newRunner(t), bare, q)
			must(t, err)
			if got := gittest.Git(t, bare, "rev-parse", "main"); got != sha {
				t.Errorf("main is %s, not %s", got, sha)
			}
			if got := gittest.Git(t, bare, "ls-tree", "--name-only", "main"); !strings.Contains(got, "t.txt\nt2.txt") || !strings.Contains(got, "m.txt") {
				t.Errorf("tree: %q", got)
			}
			want := map[git.MergeMethod]string{git.MethodMerge: "5", git.MethodSquash: "3", git.MethodRebase: "4"}[method]
			if got := gittest.Git(t, bare, "rev-list", "--count", "main"); got != want {
				t.Errorf("%s commits, want %s", got, want)
			}
			gittest.Git(t, bare, "fsck")
			if method == git.MethodRebase {
				if got := gittest.Git(t, bare, "log", "-1", "--format=%an|%cn|%B", "main"); got != "Ada|developer Ada|fix: second\n\nbody" {
					t.Errorf("last commit: %q", got)
				}
			}
			q.Head, q.ExpectHead = "bad", ""
			_, err = git.Merge(t.Context(), newRunner(t), bare, q)
			var clash *git.ConflictError
			if !errors.As(err, &clash) || clash.Files[0].Path != "m.txt" {
				t.Errorf("clash: %v", err)
			}
			q.Head, q.ExpectHead = "task-1", git.ZeroSHA
			if _, err = git.Merge(t.Context(), newRunner(t), bare, q); squad.CodeOf(err) != squad.CodeStale {
				t.Errorf("moved head: %v", err)
			}
		})
	}
}

func BenchmarkRadar50Branches10000Files(b *testing.B) {
	dir := b.TempDir()
	gittest.Git(b, dir, "init", "-q")
	for i := range 10000 {
		gittest.Write(b, dir, fmt.Sprintf("d%03d/f%03d.txt", i/100, i%100), strings.Repeat(fmt.Sprintf("line %d\n", i), 40))
	}
	gittest.Git(b, dir, "add", "-A")
	gittest.Git(b, dir, "commit", "-q", "-m", "feat: base")
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprintf("one file in common=%v", shared), func(b *testing.B) {
			var heads []git.Head
			for i := range 50 {
				gittest.Git(b, dir, "checkout", "-q", "--detach", "main")
				for j := range 5 {
					gittest.Write(b, dir, fmt.Sprintf("d%03d/f%03d.txt", (i*2+j)%100, i), fmt.Sprintf("changed by %d\n", i))
				}
				if shared {
					gittest.Write(b, dir, "d099/f099.txt", fmt.Sprintf("all change this: %d\n", i))
				}
				gittest.Git(b, dir, "commit", "-q", "-am", "feat: change")
				heads = append(heads, git.Head{ID: fmt.Sprint(i), SHA: gittest.Git(b, dir, "rev-parse", "HEAD")})
			}
			r := newRunner(b)
			for b.Loop() {
				found, err := git.NewRadar(r).Scan(b.Context(), filepath.Join(dir, ".git"), "main", heads)
				if err != nil || (shared && len(found) != 1225) || (!shared && len(found) != 0) {
					b.Fatal(len(found), err)
				}
			}
		})
	}
}
