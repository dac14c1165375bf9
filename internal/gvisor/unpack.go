package gvisor

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"agentsquad/internal/gvisor/erofs"
)

func hostPlatform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// Whiteouts of an OCI layer.
const (
	whiteout       = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// addLayer puts one layer on the image. Names that leave the image are an error;
// devices and extended attributes are left out.
func addLayer(ctx context.Context, b *erofs.Builder, r io.Reader) error {
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := addEntry(b, h, tr); err != nil {
			return err
		}
	}
}

func addEntry(b *erofs.Builder, h *tar.Header, r io.Reader) error {
	dir, base := path.Split(strings.TrimSuffix(h.Name, "/"))
	switch {
	case base == whiteoutOpaque:
		return b.Clear(dir)
	case strings.HasPrefix(base, whiteout):
		return b.Remove(dir + strings.TrimPrefix(base, whiteout))
	}
	attr := erofs.Attr{Mode: uint32(h.Mode) & 0o7777, UID: uint32(h.Uid), GID: uint32(h.Gid), Mtime: h.ModTime}
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) > 1<<32-2 || int64(h.Gid) > 1<<32-2 {
		return fmt.Errorf("entry %q: impossible owner %d:%d", h.Name, h.Uid, h.Gid)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return b.Dir(h.Name, attr)
	case tar.TypeReg:
		return b.File(h.Name, attr, r)
	case tar.TypeSymlink:
		return b.Symlink(h.Name, h.Linkname, attr)
	case tar.TypeLink:
		return b.Link(h.Name, h.Linkname)
	case tar.TypeFifo:
		return b.Device(h.Name, erofs.TypeFIFO, 0, attr)
	}
	return nil
}

// furnish adds to a foreign image what every sandbox has: the user, a sudo, the
// names of the gateway, mount points.
func furnish(b *erofs.Builder) error {
	w := &baseImage{b: b}
	for _, d := range []string{"dev", "proc", "sys", "run", "run/squad", ".squad", "etc", "home", "var", "root"} {
		if !b.Has(d) {
			w.dir(d, 0o755, 0)
		}
	}
	if !b.Has("tmp") {
		w.dir("tmp", 0o1777, 0)
	}
	w.dir("tmp/.X11-unix", 0o1777, 0)
	w.dir("home/user", 0o755, userID)
	w.line("etc/passwd", userName+":", fmt.Sprintf("%[1]s:x:%[2]d:%[2]d:%[1]s:%[3]s:%[4]s", userName, userID, userHome, loginShell(b)))
	w.line("etc/passwd", "root:", "root:x:0:0:root:/root:"+loginShell(b))
	w.line("etc/group", userName+":", fmt.Sprintf("%s:x:%d:", userName, userID))
	w.line("etc/group", "root:", "root:x:0:")
	w.line("etc/hosts", "127.0.0.1 localhost", "127.0.0.1 localhost")
	w.line("etc/hosts", "127.0.0.2 squad.internal", "127.0.0.2 squad.internal")
	if !b.Has("etc/resolv.conf") {
		w.file("etc/resolv.conf", 0o644, "")
	}
	if !b.Has("usr/bin/sudo") && !b.Has("usr/local/bin/sudo") {
		w.link("usr/local/bin/sudo", insideEnvd+"/sudo")
	}
	return w.err
}

func loginShell(b *erofs.Builder) string {
	for _, shell := range []string{"/bin/bash", "/usr/bin/bash"} {
		if b.Has(shell) {
			return shell
		}
	}
	return "/bin/sh"
}

// line adds a line to a text file of the image unless one begins with prefix.
func (w *baseImage) line(name, prefix, line string) {
	data, _ := w.b.ReadFile(name, maxSetting)
	for _, have := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(have, prefix) {
			return
		}
	}
	text := string(data)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	w.file(name, 0o644, text+line+"\n")
}

const maxLayoutBytes = 20 << 30

// untarLayout unpacks the tarball of an OCI layout: index, marker and blobs,
// plain files at known places and nothing else.
func untarLayout(file, dir string) error {
	f, err := openTarball(file)
	if err != nil {
		return err
	}
	defer f.Close()
	left := &quota{left: maxLayoutBytes}
	for tr := tar.NewReader(left.reader(f)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read image tarball: %w", err)
		}
		name := path.Clean(h.Name)
		ok, _ := path.Match("blobs/sha256/*", name)
		if h.Typeflag != tar.TypeReg || (!ok && name != "index.json" && name != "oci-layout") {
			continue
		}
		if err := writeLayoutFile(filepath.Join(dir, filepath.FromSlash(name)), tr); err != nil {
			return fmt.Errorf("read image tarball: %w", err)
		}
	}
}

func writeLayoutFile(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	return f.Close()
}

// openTarball opens a tarball, plain or gzipped.
func openTarball(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	buf := bufio.NewReader(f)
	if magic, _ := buf.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return struct {
			io.Reader
			io.Closer
		}{buf, f}, nil
	}
	z, err := gzip.NewReader(buf)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}
