package gvisor

import (
	"os"
	"path/filepath"
	"strconv"
)

// held maps the images that a sandbox or a snapshot is made of to names of its
// own for them: hard links in its folder. The template, the repository's tree or
// the daemon may be replaced or deleted meanwhile; a restore needs the very same
// files.
type held map[string]string

// of returns the path by which an image is reached.
func (h held) of(image string) string {
	if own, ok := h[image]; ok {
		return own
	}
	return image
}

// mounts returns the mounts by the names they are held under.
func (h held) mounts(all []Mount) []Mount {
	out := append([]Mount{}, all...)
	for i := range out {
		if out[i].Image != "" {
			out[i].Image = h.of(out[i].Image)
		}
	}
	return out
}

// images are all files that a sandbox is made of.
func (r *record) images() []string {
	all := []string{r.Root.Image, r.Envd, r.Runsc}
	for _, m := range append(append([]Mount{}, r.Root.Binds...), r.Mounts...) {
		if m.Image != "" {
			all = append(all, m.Image)
		}
	}
	return all
}

// runsc is the program to call for this sandbox, by the name it is held under;
// one that is gone is replaced by the runtime's.
func (r *record) runsc() string {
	path := r.Held.of(r.Runsc)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// hold links every image of rec into dir. One that cannot be linked, because it
// lies on another file system, is used where it is.
func (r *record) hold(dir string) held {
	own := held{}
	for i, image := range r.images() {
		if image == "" || own[image] != "" {
			continue
		}
		link := filepath.Join(dir, "held-"+strconv.Itoa(i)+filepath.Ext(image))
		if os.Link(r.Held.of(image), link) == nil {
			own[image] = link
		} else if old := r.Held.of(image); old != image {
			own[image] = old
		}
	}
	return own
}

// dropOld removes the images in dir that match pattern and are not kept. Whoever
// still needs one holds it.
func dropOld(dir, pattern string, kept ...string) {
	found, _ := filepath.Glob(filepath.Join(dir, pattern))
next:
	for _, f := range found {
		for _, k := range kept {
			if f == k {
				continue next
			}
		}
		_ = os.Remove(f)
	}
}
