package gvisor

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsquad/internal/gvisor/erofs"
)

// The ordinary user inside.
const (
	userID   = 1000
	userName = "user"
	userHome = "/home/user"
)

// makeBase makes the template "base": the host's /usr as it is, copy-on-write,
// and a root image with everything else fresh. Its image is named by its
// content; older ones go, as sandboxes hold what they were started with.
func (r *Runtime) makeBase() error {
	dir := r.templateDir(BaseTemplate)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make base template: %w", err)
	}
	var binds []Mount
	image, size, err := namedImage(dir, "root", func(out string) (err error) {
		binds, err = writeBase(out, "/", r.cfg.HostDirs)
		return err
	})
	if err != nil {
		return fmt.Errorf("make base template: %w", err)
	}
	shims, _, err := namedImage(dir, "shims", func(out string) error { return writeShims(out, "/") })
	if err != nil {
		return fmt.Errorf("make base template: %w", err)
	}
	binds = append(binds, Mount{Image: shims, Path: shimDir})
	t := Template{
		Name: BaseTemplate, Kind: KindBase, Root: Root{Image: image, Binds: binds}, Source: "this machine",
		SizeBytes: size, CreatedAt: now(), Config: TemplateConfig{User: userName, Workdir: userHome},
	}
	if old, err := r.Template(BaseTemplate); err == nil && old.Root.Image == image {
		t.CreatedAt, t.Config = old.CreatedAt, old.Config
	}
	if err := r.saveTemplate(t); err != nil {
		return err
	}
	dropOld(dir, "*.erofs", image, shims)
	return nil
}

// namedImage lets write make an image in dir and names it by its content.
func namedImage(dir, name string, write func(out string) error) (path string, size int64, err error) {
	tmp := filepath.Join(dir, name+".new")
	if err := write(tmp); err != nil {
		return "", 0, err
	}
	data, err := os.ReadFile(tmp)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256(data)
	path = filepath.Join(dir, fmt.Sprintf("%s-%x.erofs", name, sum[:12]))
	return path, int64(len(data)), os.Rename(tmp, path)
}

// baseTime stamps what the base image holds of its own: the same host gives the
// same image.
var baseTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// baseImage is a root under construction; after an error it does nothing.
type baseImage struct {
	b    *erofs.Builder
	host string
	err  error
}

// writeBase writes the root image for the host below host and returns the
// folders to mount on it.
func writeBase(out, host string, extra []string) ([]Mount, error) {
	var binds []Mount
	err := writeImageFile(out, 1<<30, func(b *erofs.Builder) error {
		w := &baseImage{b: b, host: host}
		w.dir("/", 0o755, 0)
		binds = w.system()
		w.folders()
		w.accounts()
		w.settings()
		w.homes()
		for _, d := range extra {
			if info, err := os.Stat(d); err == nil && info.IsDir() && filepath.IsAbs(d) {
				binds = append(binds, Mount{Dir: d, Path: filepath.Clean(d)})
			}
		}
		return w.err
	})
	return binds, err
}

func (w *baseImage) dir(name string, mode uint32, uid uint32) {
	if w.err == nil {
		w.err = w.b.Dir(name, erofs.Attr{Mode: mode, UID: uid, GID: uid, Mtime: baseTime})
	}
}

func (w *baseImage) file(name string, mode uint32, content string) { w.owned(name, mode, 0, content) }

func (w *baseImage) owned(name string, mode, uid uint32, content string) {
	if w.err == nil {
		a := erofs.Attr{Mode: mode, UID: uid, GID: uid, Mtime: baseTime}
		w.err = w.b.File(name, a, strings.NewReader(content))
	}
}

func (w *baseImage) link(name, target string) {
	if w.err == nil {
		w.err = w.b.Symlink(name, target, erofs.Attr{Mtime: baseTime})
	}
}

// system gives the programs: /usr is a view of the host's; /bin and the like
// are the host's own links into it, or views where they are folders.
func (w *baseImage) system() []Mount {
	binds := []Mount{{Dir: filepath.Join(w.host, "usr"), Path: "/usr"}}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		path := filepath.Join(w.host, name)
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			if target, err := os.Readlink(path); err == nil {
				w.link(name, target)
			}
		case info.IsDir():
			binds = append(binds, Mount{Dir: path, Path: "/" + name})
		}
	}
	return binds
}

func (w *baseImage) folders() {
	for _, d := range strings.Fields(`dev etc home media mnt opt proc run run/lock run/squad srv sys usr var var/cache
		var/cache/apt var/cache/apt/archives var/lib var/lib/dpkg var/lib/dpkg/info var/lib/dpkg/updates
		var/lib/dpkg/triggers var/lib/apt var/lib/apt/lists var/log var/mail var/spool .squad`) {
		w.dir(d, 0o755, 0)
	}
	w.dir("tmp", 0o1777, 0)
	w.dir("tmp/.X11-unix", 0o1777, 0) // gVisor puts a memory file system over an empty /tmp
	w.dir("var/tmp", 0o1777, 0)
	w.link("var/run", "/run")
	w.link("var/lock", "/run/lock")
	w.file("var/lib/dpkg/status", 0o644, "")
	w.file("var/lib/dpkg/available", 0o644, "")
}

func (w *baseImage) homes() {
	w.dir("root", 0o700, 0)
	w.dir("home/user", 0o755, userID)
	for _, name := range []string{".bashrc", ".profile", ".bash_logout"} {
		data, err := os.ReadFile(filepath.Join(w.host, "etc/skel", name))
		if err != nil {
			continue
		}
		w.owned("home/user/"+name, 0o644, userID, string(data))
		w.owned("root/"+name, 0o644, 0, string(data))
	}
}

// copyTree copies world-readable files and links below a folder or file of the
// host's /etc. A name that is a link to elsewhere becomes the file it leads to
// when follow is set.
func (w *baseImage) copyTree(rel string, follow bool) {
	top := filepath.Join(w.host, rel)
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || w.err != nil {
			return nil
		}
		name, err := filepath.Rel(w.host, path)
		if err != nil {
			return nil
		}
		w.copyEntry(path, name, d, follow)
		return nil
	})
}

const maxSetting = 4 << 20 // bytes of one file of the host's /etc

func (w *baseImage) copyEntry(path, name string, d fs.DirEntry, follow bool) {
	if d.IsDir() {
		w.dir(name, 0o755, 0)
		return
	}
	if d.Type()&fs.ModeSymlink != 0 && !follow {
		if target, err := os.Readlink(path); err == nil {
			w.link(name, target)
		}
		return
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o004 == 0 || info.Size() > maxSetting {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil || secretive(data) {
		return
	}
	if w.err == nil {
		a := erofs.Attr{Mode: uint32(info.Mode().Perm()), Mtime: info.ModTime()}
		w.err = w.b.File(name, a, bytes.NewReader(data))
	}
}

// secretive says whether a settings file looks as if it held a key or an address
// with a password; such a file stays on the host even where anyone may read it.
func secretive(data []byte) bool {
	if bytes.Contains(data, []byte("PRIVATE KEY")) {
		return true
	}
	for rest := data; ; {
		i := bytes.Index(rest, []byte("://"))
		if i < 0 {
			return false
		}
		rest = rest[i+3:]
		host, _, _ := bytes.Cut(rest[:min(len(rest), 512)], []byte("/"))
		if end := bytes.IndexAny(host, " \t\r\n\"'"); end >= 0 {
			host = host[:end]
		}
		if bytes.IndexByte(host, '@') >= 0 {
			return true
		}
	}
}
