package erofs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	reader "github.com/erofs/go-erofs"

	"agentsquad/internal/gvisor/erofs"
)

// build makes an image with fill and opens it with another implementation.
func build(t *testing.T, fill func(b *erofs.Builder) error) fs.FS {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	b, err := erofs.New(f, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(b); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	img, err := reader.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func add(b *erofs.Builder, name, content string) error {
	return b.File(name, erofs.Attr{Mode: 0o644}, strings.NewReader(content))
}

func TestBuilder_AnotherReaderSeesTheSame(t *testing.T) {
	t.Parallel()
	when := time.Date(2024, 2, 3, 4, 5, 6, 789, time.UTC)
	big := bytes.Repeat([]byte("0123456789abcdef"), 5000)
	long := strings.Repeat("x/", 900)
	img := build(t, func(b *erofs.Builder) error {
		return errors.Join(
			b.Dir("/", erofs.Attr{Mode: 0o755, Mtime: when}),
			b.Dir("d", erofs.Attr{Mode: 0o1777, UID: 1000, GID: 100000, Mtime: when}),
			b.File("d/big", erofs.Attr{Mode: 0o4755, UID: 7, Mtime: when}, bytes.NewReader(big)),
			add(b, "d/empty", ""), add(b, "d/small", "s"),
			b.Symlink("d/link", "../d/small", erofs.Attr{}), b.Symlink("d/long", long, erofs.Attr{}),
			b.Link("d/hard", "d/big"), add(b, "made/for/child", "c"),
		)
	})
	for name, want := range map[string]string{"d/big": string(big), "d/hard": string(big), "d/empty": "", "d/small": "s", "made/for/child": "c"} {
		got, err := fs.ReadFile(img, name)
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	info, err := fs.Stat(img, "d/big")
	if err != nil {
		t.Fatal(err)
	}
	st, ok := info.Sys().(*reader.Stat)
	if !ok || st.UID != 7 || st.Nlink != 2 || !info.ModTime().Equal(when) || st.Mode.Perm() != 0o755 || st.Mode&fs.ModeSetuid == 0 {
		t.Errorf("big: %+v %v %v", st, info.Mode(), info.ModTime())
	}
	if info, err = fs.Stat(img, "d"); err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*reader.Stat); !ok || st.GID != 100000 || st.Mode&fs.ModeSticky == 0 {
		t.Errorf("d: %+v", st)
	}
	if target, err := fs.ReadLink(img, "d/long"); err != nil || target != long {
		t.Errorf("long link: %d bytes, %v", len(target), err)
	}
}

func TestBuilder_LargeFolders(t *testing.T) {
	t.Parallel()
	const n = 3000
	img := build(t, func(b *erofs.Builder) error {
		for i := range n {
			if err := add(b, fmt.Sprintf("dir/%s-%d", strings.Repeat("n", i%200), i), fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	})
	entries, err := fs.ReadDir(img, "dir")
	if err != nil || len(entries) != n {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i := range n {
		got, err := fs.ReadFile(img, fmt.Sprintf("dir/%s-%d", strings.Repeat("n", i%200), i))
		if err != nil || string(got) != fmt.Sprint(i) {
			t.Fatalf("file %d: %q %v", i, got, err)
		}
	}
}

func TestBuilder_LaterLayersReplaceAndRemove(t *testing.T) {
	t.Parallel()
	img := build(t, func(b *erofs.Builder) error {
		err := errors.Join(add(b, "a/keep", "1"), add(b, "a/gone", "1"), add(b, "b/old", "1"), add(b, "b/sub/old", "1"), add(b, "c", "old"), add(b, "e/f", "1"))
		b.Layer()
		return errors.Join(err,
			b.Remove("a/gone"), b.Remove("not/there"), add(b, "b/new", "2"), add(b, "b/sub/new", "2"), b.Clear("b"),
			add(b, "c", "new"), add(b, "e", "a file now"), add(b, "x", "2"), b.Remove("x"))
	})
	var got []string
	_ = fs.WalkDir(img, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, path)
		}
		return err
	})
	if want := "a/keep b/new b/sub/new c e x"; strings.Join(got, " ") != want {
		t.Errorf("files %v, want %s", got, want)
	}
}

func TestBuilder_RefusesWhatLeavesTheImage(t *testing.T) {
	t.Parallel()
	b, err := erofs.New(&memory{}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "a/../../x", "..", "a\x00b", strings.Repeat("n", 256)} {
		if err := add(b, name, ""); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	if err := b.Link("l", "missing"); err == nil {
		t.Error("a hard link to nothing was accepted")
	}
	if err := b.Symlink("l", "", erofs.Attr{}); err == nil {
		t.Error("an empty link was accepted")
	}
	if err := b.File("big", erofs.Attr{}, io.LimitReader(zeros{}, 1<<40)); !errors.Is(err, erofs.ErrTooLarge) {
		t.Errorf("endless file: %v", err)
	}
	if err := b.Close(); err == nil {
		t.Error("a torn image was finished")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// memory is a writer that forgets.
type memory struct{ off int64 }

func (m *memory) Write(p []byte) (int, error) { m.off += int64(len(p)); return len(p), nil }
func (m *memory) Seek(off int64, _ int) (int64, error) {
	m.off = off
	return off, nil
}
