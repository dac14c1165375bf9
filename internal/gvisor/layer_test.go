package gvisor_test

import (
	"archive/tar"
	"bytes"
	"testing"

	"agentsquad"
)

func archive(t *testing.T, entries ...entry) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		h.Size = int64(len(e.body))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestImportFolder_StandsOnBase(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	made, err := r.ImportFolder(t.Context(), archive(t, dir("bin"), file("bin/hello", "#!/bin/sh\necho hello\n"), link("bin/hi", "hello")), "/opt/tools", "tools")
	if err != nil {
		t.Fatal(err)
	}
	base, err := r.Template("base")
	if err != nil {
		t.Fatal(err)
	}
	last := made.Root.Binds[len(made.Root.Binds)-1]
	if made.Root.Image != base.Root.Image || len(made.Root.Binds) != len(base.Root.Binds)+1 || last.Path != "/opt/tools" {
		t.Errorf("root %+v on base %+v", made.Root, base.Root)
	}
	if err := r.DeleteTemplate("tools"); err != nil {
		t.Error(err)
	}
}

func TestImportFolder_HostileArchivesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, list := range map[string][]entry{
		"dots":      {file("../../etc/evil", "x")},
		"hard-link": {{tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "/etc/passwd"}, ""}},
		"link-loop": {link("a", "b"), link("b", "a"), file("a/f", "x")},
	} {
		if _, err := r.ImportFolder(t.Context(), archive(t, list...), "/opt/x", name); squad.CodeOf(err) != squad.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Template(name); squad.CodeOf(err) != squad.CodeNotFound {
			t.Errorf("%s: a template was made: %v", name, err)
		}
	}
	for _, at := range []string{"/", "/proc/x", "relative", "/opt/../etc"} {
		if _, err := r.ImportFolder(t.Context(), archive(t), at, "bad"); squad.CodeOf(err) != squad.CodeInvalid {
			t.Errorf("at %q: %v", at, err)
		}
	}
	if _, err := r.ImportFolder(t.Context(), bytes.NewBufferString("no archive at all, only words that go on for a while"), "/opt/x", "words"); squad.CodeOf(err) != squad.CodeInvalid {
		t.Errorf("words: %v", err)
	}
}
