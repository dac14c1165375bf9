package gvisor

import (
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"agentsquad/internal/gvisor/erofs"
)

// shimDir is the first folder in PATH. Hosts keep little or nothing there; what
// they do is copied.
const shimDir = "/usr/local/sbin"

// maxShim bounds what is copied of the host's own /usr/local/sbin.
const maxShim = 64 << 20

// writeShims makes the image of shimDir: sudo without a password, python where
// the host has only python3, and the tools of toolchains under /usr/local that
// have a folder of their own, such as /usr/local/go.
func writeShims(out, host string) error {
	return writeImageFile(out, maxShim, func(b *erofs.Builder) error {
		attr := erofs.Attr{Mode: 0o755, Mtime: baseTime}
		if err := b.Dir("/", attr); err != nil {
			return err
		}
		if err := copyFlat(b, filepath.Join(host, shimDir)); err != nil {
			return err
		}
		links := shimLinks(host)
		names := make([]string, 0, len(links))
		for name := range links {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			if err := b.Symlink(name, links[name], attr); err != nil {
				return err
			}
		}
		return nil
	})
}

// shimLinks are the names in shimDir and where they lead.
func shimLinks(host string) map[string]string {
	links := map[string]string{}
	has := func(name string) bool {
		for _, dir := range strings.Split(insidePath, ":") {
			if _, err := os.Stat(filepath.Join(host, dir, name)); err == nil {
				return true
			}
		}
		return false
	}
	tools, _ := filepath.Glob(filepath.Join(host, "usr/local/*/bin/*"))
	for _, tool := range tools {
		info, err := os.Stat(tool)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || has(filepath.Base(tool)) {
			continue
		}
		if rel, err := filepath.Rel(host, tool); err == nil {
			links[filepath.Base(tool)] = "/" + rel
		}
	}
	if !has("python") && has("python3") {
		links["python"] = "/usr/bin/python3"
	}
	links["sudo"] = insideEnvd + "/sudo"
	return links
}

// copyFlat copies the world-readable files and links of one folder.
func copyFlat(b *erofs.Builder, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // a host without it
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil {
			continue
		}
		attr := erofs.Attr{Mode: uint32(info.Mode().Perm()), Mtime: info.ModTime()}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if target, rerr := os.Readlink(path); rerr == nil {
				err = b.Symlink(e.Name(), target, attr)
			}
		case info.Mode().IsRegular() && info.Mode()&0o004 != 0:
			err = addHostFile(b, path, e.Name(), attr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func addHostFile(b *erofs.Builder, path, name string, attr erofs.Attr) error {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	return b.File(name, attr, f)
}
