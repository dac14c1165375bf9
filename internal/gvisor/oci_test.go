package gvisor_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"agentsquad"
	"agentsquad/internal/gvisor"
)

// entry is one file of a layer.
type entry struct {
	tar.Header
	body string
}

func file(name, body string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, body}
}

func link(name, target string) entry {
	return entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}, ""}
}

func dir(name string) entry {
	return entry{tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}, ""}
}

func layer(t testing.TB, entries ...entry) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		h := e.Header
		h.Size = int64(len(e.body))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func image(t testing.TB, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.Config(img, v1.Config{Env: []string{"A=1", "PATH=/bin"}, WorkingDir: "/srv", User: "app"})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// shellLayer holds a shell and a few tools of the host with their libraries.
func shellLayer(t testing.TB) v1.Layer {
	t.Helper()
	var entries []entry
	seen := map[string]bool{}
	add := func(from, to string) {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if !seen[to] {
			seen[to] = true
			entries = append(entries, entry{tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: 0o755}, string(data)})
		}
	}
	for _, tool := range []string{"sh", "cat", "ls", "stat", "test"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("SKIPPED: the host has no %s to make an image from", tool)
		}
		add(path, "bin/"+tool)
		out, _ := exec.CommandContext(t.Context(), "ldd", path).Output()
		for _, f := range strings.Fields(string(out)) {
			if strings.HasPrefix(f, "/") {
				add(f, strings.TrimPrefix(f, "/"))
			}
		}
	}
	return layer(t, entries...)
}

func TestImportOCI_LayersFollowEachOther(t *testing.T) {
	t.Parallel()
	owned := file("app/owned", "x")
	owned.Uid, owned.Gid, owned.Mode = 4242, 70000, 0o640
	hard := entry{tar.Header{Typeflag: tar.TypeLink, Name: "app/hard", Linkname: "app/owned"}, ""}
	img := image(t, shellLayer(t),
		layer(t, dir("real"), link("via", "real"), file("app/gone", "1"), file("app/opaque/old", "1"), owned, hard, file("app/changed", "old")),
		layer(t, file("app/.wh.gone", ""), file("app/opaque/new", "2"), file("app/opaque/.wh..wh..opq", ""),
			file("via/through", "3"), file("app/changed", "new")))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/team/app:v1"
	tag, err := name.NewTag(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t, func(c *gvisor.Config) { c.Registry.Insecure = true })
	tmpl, err := r.ImportOCI(t.Context(), ref, "app")
	if err != nil {
		t.Fatal(err)
	}
	if tmpl.Config.Env["A"] != "1" || tmpl.Config.Workdir != "/srv" || tmpl.Config.User != "app" {
		t.Errorf("config %+v", tmpl.Config)
	}
	s := create(t, r, gvisor.Spec{Template: "app"})
	got := mustRun(t, s, `cat /app/changed; echo; cat /real/through; echo; ls /app/opaque
stat -c '%u:%g %a %h' /app/owned; test -e /app/gone || echo gone
cat /etc/hosts; cat /app/hard; echo; ls -d /home/user`)
	want := "new\n3\nnew\n4242:70000 640 2\ngone\n127.0.0.1 localhost\n127.0.0.2 squad.internal\nx\n/home/user"
	if got != want {
		t.Errorf("inside:\n%s\nwant:\n%s", got, want)
	}
}

func TestImportOCI_FromFiles(t *testing.T) {
	t.Parallel()
	img := image(t, layer(t, file("hello", "world")))
	dir := t.TempDir()
	saved, zipped, laid := filepath.Join(dir, "saved.tar"), filepath.Join(dir, "saved.tgz"), filepath.Join(dir, "laid.tar")
	tag, _ := name.NewTag("example.test/app:1")
	if err := tarball.WriteToFile(saved, tag, img); err != nil {
		t.Fatal(err)
	}
	gzipFile(t, saved, zipped)
	path, err := layout.Write(filepath.Join(dir, "layout"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(img); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-cf", laid, "-C", string(path), ".").CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	r := newRuntime(t)
	for i, source := range []string{saved, zipped, laid, string(path)} {
		tmpl, err := r.ImportOCI(t.Context(), source, fmt.Sprintf("t%d", i))
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(source), err)
		} else if tmpl.SizeBytes == 0 || tmpl.Kind != gvisor.KindImage {
			t.Errorf("%s: %+v", filepath.Base(source), tmpl)
		}
	}
}

func gzipFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(data)
	_ = w.Close()
	if err := os.WriteFile(to, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestImportOCI_HostileImagesAreRefused(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", 8<<20)
	r := newRuntime(t, func(c *gvisor.Config) { c.Registry.MaxBytes = 4 << 20 })
	for name, tc := range map[string]struct {
		img  v1.Image
		code squad.Code
	}{
		"dots":      {image(t, layer(t, file("../../etc/evil", "x"))), squad.CodeInvalid},
		"bomb":      {image(t, layer(t, file("zeros", zeros))), squad.CodeTooLarge},
		"hard-link": {image(t, layer(t, entry{tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "/etc/passwd"}, ""})), squad.CodeInvalid},
		"link-loop": {image(t, layer(t, link("a", "b"), link("b", "a"), file("a/f", "x"))), squad.CodeInvalid},
	} {
		path := filepath.Join(t.TempDir(), "image.tar")
		if err := tarball.WriteToFile(path, nameTag(t), tc.img); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ImportOCI(t.Context(), path, name); squad.CodeOf(err) != tc.code {
			t.Errorf("%s: %v, want %s", name, err, tc.code)
		}
		if _, err := r.Template(name); squad.CodeOf(err) != squad.CodeNotFound {
			t.Errorf("%s: a template was made: %v", name, err)
		}
	}
	for _, source := range []string{"", "not a reference", "/nowhere/image.tar", "/etc/hostname"} {
		if _, err := r.ImportOCI(t.Context(), source, "bad"); squad.CodeOf(err) != squad.CodeInvalid {
			t.Errorf("source %q: %v", source, err)
		}
	}
}

// A link in one layer and a file behind it in the next must not reach the host.
func TestImportOCI_LinksStayInside(t *testing.T) {
	t.Parallel()
	victim := filepath.Join(t.TempDir(), "victim")
	img := image(t, layer(t, link("out", filepath.Dir(victim))), layer(t, file("out/victim", "x")))
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(path, nameTag(t), img); err != nil {
		t.Fatal(err)
	}
	if _, err := newRuntime(t).ImportOCI(t.Context(), path, "linked"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(victim); !os.IsNotExist(err) {
		t.Errorf("a file was written on the host: %v", err)
	}
}

func nameTag(t testing.TB) name.Tag {
	t.Helper()
	tag, err := name.NewTag("example.test/app:1")
	if err != nil {
		t.Fatal(err)
	}
	return tag
}
