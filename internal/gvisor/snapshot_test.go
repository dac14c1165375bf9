package gvisor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentsquad"
	"agentsquad/internal/gvisor"
)

func TestSnapshot_BecomesATemplate(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{})
	mustRun(t, s, "echo snap > /home/user/f; sleep 1000 >/dev/null 2>&1 & echo $! > /tmp/pid")
	tmpl, err := s.Snapshot(t.Context(), "warm")
	if err != nil {
		t.Fatal(err)
	}
	if tmpl.Kind != gvisor.KindSnapshot || tmpl.SizeBytes == 0 {
		t.Errorf("template %+v", tmpl)
	}
	if _, err := s.Snapshot(t.Context(), "warm"); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("a second snapshot of that name: %v", err)
	}
	mustRun(t, s, "echo later > /home/user/f")
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := create(t, r, gvisor.Spec{Template: "warm"})
		if got := mustRun(t, c, "cat /home/user/f; kill -0 $(cat /tmp/pid) && echo alive; echo mine > /home/user/f"); got != "snap\nalive" {
			t.Errorf("from the snapshot: %q", got)
		}
	}
	if err := r.DeleteTemplate("warm"); err != nil {
		t.Error(err)
	}
	if _, err := r.Template("warm"); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("after deletion: %v", err)
	}
}

func TestSnapshotFiles_StartsFresh(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{})
	mustRun(t, s, "echo built > /usr/local/bin/tool; echo f > /home/user/f; sleep 1000 >/dev/null 2>&1 &")
	if _, err := s.SnapshotFiles(t.Context(), "built"); err != nil {
		t.Fatal(err)
	}
	if got := mustRun(t, s, "pgrep -c sleep"); got != "1" {
		t.Errorf("the sandbox did not go on: %q", got)
	}
	for range 2 {
		c := create(t, r, gvisor.Spec{Template: "built"})
		if got := mustRun(t, c, "cat /usr/local/bin/tool /home/user/f; pgrep -c sleep || true"); got != "built\nf\n0" {
			t.Errorf("from the template: %q", got)
		}
	}
}

// What a sandbox was made from may be deleted and replaced while it is paused.
func TestHold_TemplateAndMountsMayGo(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	tree := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "f"), []byte("tree"), 0o644); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(shortDir(t), "tree.erofs")
	if err := gvisor.WriteImage(t.Context(), tree, image, gvisor.ImageOptions{}); err != nil {
		t.Fatal(err)
	}
	first := create(t, r, gvisor.Spec{Mounts: []gvisor.Mount{{Image: image, Path: "/mnt/tree"}}})
	if _, err := first.Snapshot(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	second := create(t, r, gvisor.Spec{Template: "one"})
	if _, err := second.SnapshotFiles(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	if err := second.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := first.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteTemplate("one"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	if err := second.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := create(t, r, gvisor.Spec{Template: "two"})
	fork, err := second.Fork(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*gvisor.Sandbox{second, third, fork} {
		if got := mustRun(t, s, "cat /mnt/tree/f"); got != "tree" {
			t.Errorf("%s: %q", s.ID(), got)
		}
	}
}

func TestStates_WrongOnesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{ID: "one"})
	if _, err := r.Create(t.Context(), gvisor.Spec{ID: "one"}); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("same id: %v", err)
	}
	if err := s.Resume(t.Context()); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("resume a running one: %v", err)
	}
	if err := s.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(t.Context(), true); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("pause a paused one: %v", err)
	}
	if _, err := s.Tunnel(t.Context()); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("tunnel of a paused one: %v", err)
	}
	if _, err := s.Fork(t.Context(), "two"); squad.CodeOf(err) != squad.CodeConflict {
		t.Errorf("fork of a paused one: %v", err)
	}
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(t.Context()); err != nil {
		t.Errorf("second kill: %v", err)
	}
	if err := s.Resume(t.Context()); squad.CodeOf(err) != squad.CodeNotFound {
		t.Errorf("resume a killed one: %v", err)
	}
}

// A repository comes as an image: git must find its index fresh, and be able to
// work on it.
func TestWriteImage_ARepositoryIsCleanInside(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	script := `git init -q -b main && git config user.email a@b && git config user.name n && git config core.checkStat minimal && git config core.trustctime false &&
for i in 1 2 3 4 5; do mkdir -p d$i && echo $i > d$i/f; done && ln -s d1/f link && printf '#!/bin/sh\n' > run && chmod +x run && git add -A && git commit -qm first && git status -s`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = repo
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v %s", err, out)
	}
	image := filepath.Join(t.TempDir(), "repo.erofs")
	if err := gvisor.WriteImage(t.Context(), repo, image, gvisor.ImageOptions{Owned: true, UID: 1000, GID: 1000}); err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t)
	s := create(t, r, gvisor.Spec{Mounts: []gvisor.Mount{{Image: image, Path: "/home/user/repo"}}})
	out, code, err := shAs(t.Context(), s, "user", `cd ~/repo && git status -s && test -x run && cat link && echo more >> d2/f && git commit -qam second && git log --format=%s && git fsck --no-progress`)
	if err != nil || code != 0 || out != "1\nsecond\nfirst" {
		t.Errorf("inside: exit %d %v %q", code, err, out)
	}
	if err := s.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, _, err := shAs(t.Context(), s, "user", "cd ~/repo && git log --format=%s && cat d2/f"); err != nil || out != "second\nfirst\n2\nmore" {
		t.Errorf("after resume: %v %q", err, out)
	}
	if data, _ := os.ReadFile(filepath.Join(repo, "d2/f")); strings.TrimSpace(string(data)) != "2" {
		t.Errorf("the host's tree changed: %q", data)
	}
}
