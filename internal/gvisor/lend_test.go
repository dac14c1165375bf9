package gvisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsquad"
	"agentsquad/internal/gvisor"
)

func TestLend_IsReadOnlyGrowsAndGoesWithTheSandbox(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	dir := filepath.Join(shortDir(t), "lent")
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("pack/a.pack", "one")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s := create(t, r, gvisor.Spec{})
	lend := func(s *gvisor.Sandbox) {
		t.Helper()
		if err := s.Lend(t.Context(), "r1", dir); err != nil {
			t.Fatal(err)
		}
	}
	lend(s)
	look := `cat ` + gvisor.Lent + `/r1/pack/*; ls ` + gvisor.Lent + `/r1`
	if got, _, err := shAs(t.Context(), s, "user", look); err != nil || got != "one"+"pack" && got != "onepack\n" {
		t.Errorf("lent: %q, %v", got, err)
	}
	put("pack/b.pack", "two")
	lend(s) // again: what is new comes, what was there stays
	mustRun(t, s, "tail -f "+gvisor.Lent+"/r1/pack/a.pack >/dev/null 2>&1 & echo $! > /tmp/reader")
	if _, code, err := sh(t.Context(), s, "echo x >> "+gvisor.Lent+"/r1/pack/a.pack || rm "+gvisor.Lent+"/r1/pack/a.pack || touch "+gvisor.Lent+"/r1/new"); err != nil || code == 0 {
		t.Errorf("root inside wrote to it: exit %d, %v", code, err)
	}
	if out := mustRun(t, s, "ls -A /run/squad; find /run/squad -type s"); out != "lent" {
		t.Errorf("beside what was lent: %q", out)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	fork, err := s.Fork(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fork.Kill(t.Context()) })
	if _, err := s.Snapshot(t.Context(), "lent"); err != nil {
		t.Fatal(err)
	}
	for name, box := range map[string]*gvisor.Sandbox{"resumed": s, "forked": fork, "of the snapshot": create(t, r, gvisor.Spec{Template: "lent"})} {
		got := mustRun(t, box, "cat "+gvisor.Lent+"/r1/pack/*; kill -0 $(cat /tmp/reader) && echo ' reads on'")
		if strings.TrimSpace(got) != "onetwo reads on" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, bad := range []string{"", "../x", "a/b", "."} {
		if err := s.Lend(t.Context(), bad, t.TempDir()); squad.CodeOf(err) != squad.CodeInvalid {
			t.Errorf("name %q: %v", bad, err)
		}
	}
}
