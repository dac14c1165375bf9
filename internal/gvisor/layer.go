package gvisor

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"agentsquad"
	"agentsquad/internal/gvisor/erofs"
)

// maxFolder bounds the image of a folder that is added to base.
const maxFolder = 20 << 30

// ImportFolder makes the template called template: base, and at the path at a
// folder with the entries of a tar archive, owned by root and shared by all
// sandboxes of the template, copy-on-write as everything is. Base stays this
// machine's: it is looked up when a sandbox is made. An existing template of that
// name is replaced; sandboxes made from it keep what they have.
func (r *Runtime) ImportFolder(ctx context.Context, archive io.Reader, at, template string) (Template, error) {
	if err := checkTemplateName(template); err != nil {
		return Template{}, err
	}
	if template == BaseTemplate {
		return Template{}, squad.Errorf(squad.CodeConflict, "the template %s is made from this machine", template)
	}
	dir := r.templateDir(template)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Template{}, fmt.Errorf("import folder: %w", err)
	}
	file := filepath.Join(dir, "folder-"+newSandboxID()+".erofs")
	mount := Mount{Image: file, Path: at}
	if err := mount.validate(); err != nil {
		return Template{}, err
	}
	left := &quota{left: maxFolder}
	err := writeImageFile(file, maxFolder, func(b *erofs.Builder) error {
		if err := b.Dir("/", erofs.Attr{Mode: 0o755, Mtime: baseTime}); err != nil {
			return err
		}
		return addFolder(ctx, b, left.reader(archive))
	})
	if err != nil {
		return Template{}, userError(squad.CodeInvalid, err, "the archive cannot be used")
	}
	t := Template{
		Name: template, Kind: KindImage, On: BaseTemplate, Folders: []Mount{mount}, Source: "folder", CreatedAt: now(),
		Config: TemplateConfig{User: userName, Workdir: userHome},
	}
	if info, err := os.Stat(file); err == nil {
		t.SizeBytes = info.Size()
	}
	if err := r.saveTemplate(t); err != nil {
		return Template{}, err
	}
	dropOld(dir, "folder-*.erofs", file)
	return r.Template(template)
}

// addFolder adds files, folders and links of an archive, with their modes and
// times; what else it holds is left out.
func addFolder(ctx context.Context, b *erofs.Builder, r io.Reader) error {
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
		attr := erofs.Attr{Mode: uint32(h.Mode) & 0o777, Mtime: h.ModTime}
		switch h.Typeflag {
		case tar.TypeDir:
			err = b.Dir(h.Name, attr)
		case tar.TypeReg:
			err = b.File(h.Name, attr, tr)
		case tar.TypeSymlink:
			err = b.Symlink(h.Name, h.Linkname, attr)
		case tar.TypeLink:
			err = b.Link(h.Name, h.Linkname)
		}
		if err != nil {
			return err
		}
	}
}
