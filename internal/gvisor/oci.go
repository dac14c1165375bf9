package gvisor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"agentsquad"
	"agentsquad/internal/gvisor/erofs"
)

// Registry says how images are fetched. The zero value fetches public images.
type Registry struct {
	// Keychain finds credentials by registry; nil is anonymous.
	Keychain authn.Keychain
	// Transport carries the requests; nil is the default.
	Transport http.RoundTripper
	// Insecure allows plain HTTP.
	Insecure bool
	// MaxBytes bounds an unpacked image; 0 means 20 GiB.
	MaxBytes int64
}

// ImportOCI makes the template called template from an OCI image: a reference
// ("debian:12"), the path of a "docker save" or OCI-layout tarball, or the path of
// an OCI-layout folder. An existing template of that name is replaced; sandboxes
// made from it keep what they have.
func (r *Runtime) ImportOCI(ctx context.Context, source, template string) (Template, error) {
	if err := checkTemplateName(template); err != nil {
		return Template{}, err
	}
	if template == BaseTemplate {
		return Template{}, squad.Errorf(squad.CodeConflict, "the template %s is made from this machine", template)
	}
	img, done, err := r.openImage(ctx, source)
	if err != nil {
		return Template{}, err
	}
	defer done()
	limit := r.cfg.Registry.MaxBytes
	if limit <= 0 {
		limit = 20 << 30
	}
	digest, err := img.Digest()
	if err != nil {
		return Template{}, imageError(err, source)
	}
	dir := r.templateDir(template)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Template{}, fmt.Errorf("import %s: %w", source, err)
	}
	file := filepath.Join(dir, "root-"+digest.Hex[:24]+".erofs")
	if err := writeImageFile(file, limit, func(b *erofs.Builder) error { return unpack(ctx, img, b, limit) }); err != nil {
		return Template{}, imageError(err, source)
	}
	t := Template{Name: template, Kind: KindImage, Root: Root{Image: file}, Source: source, CreatedAt: now()}
	if info, err := os.Stat(file); err == nil {
		t.SizeBytes = info.Size()
	}
	if t.Config, err = imageConfig(img); err != nil {
		return Template{}, imageError(err, source)
	}
	if err := r.saveTemplate(t); err != nil {
		return Template{}, err
	}
	dropOld(dir, "root-*.erofs", file)
	return t, nil
}

func imageError(err error, source string) error {
	return userError(squad.CodeInvalid, err, "the image %s cannot be used", source)
}

// openImage finds an image; done releases what it holds.
func (r *Runtime) openImage(ctx context.Context, source string) (img v1.Image, done func(), err error) {
	done = func() {}
	if strings.HasPrefix(source, "/") {
		img, done, err = openLocalImage(source)
	} else {
		img, err = r.fetchImage(ctx, source)
	}
	if err != nil {
		return nil, nil, imageError(err, source)
	}
	return img, done, nil
}

func (r *Runtime) fetchImage(ctx context.Context, source string) (v1.Image, error) {
	var opts []name.Option
	if r.cfg.Registry.Insecure {
		opts = append(opts, name.Insecure)
	}
	ref, err := name.ParseReference(source, opts...)
	if err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "%q is not an image reference", source)
	}
	fetch := []remote.Option{remote.WithContext(ctx), remote.WithPlatform(hostPlatform())}
	if r.cfg.Registry.Keychain != nil {
		fetch = append(fetch, remote.WithAuthFromKeychain(r.cfg.Registry.Keychain))
	}
	if r.cfg.Registry.Transport != nil {
		fetch = append(fetch, remote.WithTransport(r.cfg.Registry.Transport))
	}
	img, err := remote.Image(ref, fetch...)
	if err != nil {
		return nil, squad.Wrap(squad.CodeProvider, err, "the image %s cannot be fetched", source)
	}
	return img, nil
}

// openLocalImage reads a tarball or a layout folder. A tarball of a layout is
// unpacked to a folder of its own first; nothing else in it is looked at.
func openLocalImage(path string) (v1.Image, func(), error) {
	nothing := func() {}
	info, err := os.Stat(path)
	if err != nil {
		return nil, nothing, err
	}
	if info.IsDir() {
		img, err := layoutImage(path)
		return img, nothing, err
	}
	opener := func() (io.ReadCloser, error) { return openTarball(path) }
	if img, err := tarball.Image(opener, nil); err == nil {
		return img, nothing, nil
	}
	dir, err := os.MkdirTemp("", "squad-oci-")
	if err != nil {
		return nil, nothing, err
	}
	done := func() { _ = os.RemoveAll(dir) }
	err = untarLayout(path, dir)
	if err == nil {
		var img v1.Image
		if img, err = layoutImage(dir); err == nil {
			return img, done, nil
		}
	}
	done()
	return nil, nothing, err
}

func layoutImage(dir string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	images, err := partial.FindImages(index, func(d v1.Descriptor) bool {
		return d.Platform == nil || d.Platform.Satisfies(hostPlatform())
	})
	if err != nil {
		return nil, err
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("no image for %s in the layout", hostPlatform())
	}
	return images[0], nil
}

func imageConfig(img v1.Image) (TemplateConfig, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return TemplateConfig{}, err
	}
	c := TemplateConfig{Env: map[string]string{}, Workdir: file.Config.WorkingDir, User: file.Config.User}
	for _, kv := range file.Config.Env {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			c.Env[k] = v
		}
	}
	return c, nil
}

// unpack puts the layers of an image on top of each other.
func unpack(ctx context.Context, img v1.Image, b *erofs.Builder, limit int64) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	if len(layers) > 256 {
		return squad.Errorf(squad.CodeTooLarge, "the image has %d layers", len(layers))
	}
	left := &quota{left: limit}
	for i, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		b.Layer()
		err = addLayer(ctx, b, left.reader(r))
		_ = r.Close()
		if err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
	}
	b.Layer()
	return furnish(b)
}

// quota bounds what is read from several readers together: a small layer may
// unpack to anything.
type quota struct{ left int64 }

func (q *quota) reader(r io.Reader) io.Reader { return &quotaReader{q, r} }

type quotaReader struct {
	q *quota
	r io.Reader
}

func (r *quotaReader) Read(p []byte) (int, error) {
	if r.q.left <= 0 {
		return 0, erofs.ErrTooLarge
	}
	n, err := r.r.Read(p[:min(int64(len(p)), r.q.left)])
	r.q.left -= int64(n)
	return n, err
}
