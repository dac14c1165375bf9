package gvisor

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"agentsquad/internal/gvisor/erofs"
	"agentsquad/internal/gvisor/words"
)

// installEnvd puts the daemon and sudo into an image of their own, named by its
// content. Older ones go: sandboxes hold the one they were started with.
func (r *Runtime) installEnvd() error {
	data := r.cfg.Envd
	if len(data) == 0 && r.cfg.EnvdPath == "" {
		data = EmbeddedEnvd()
	}
	if len(data) == 0 {
		path := r.cfg.EnvdPath
		if path == "" {
			path = words.SelfExe
		}
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("read envd: %w", err)
		}
	}
	sudo := r.cfg.Sudo
	sum := sha256.New()
	sum.Write(data)
	sum.Write(sudo)
	r.envd = filepath.Join(r.cfg.Dir, "bin", fmt.Sprintf("envd-%x.erofs", sum.Sum(nil)[:12]))
	dropOld(filepath.Dir(r.envd), "envd-*.erofs", r.envd)
	if _, err := os.Stat(r.envd); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("install envd: %w", err)
	}
	err := writeImageFile(r.envd, 1<<30, func(b *erofs.Builder) error {
		if err := b.File("envd", erofs.Attr{Mode: 0o755}, bytes.NewReader(data)); err != nil {
			return err
		}
		attr := erofs.Attr{Mode: 0o4755}
		if len(sudo) == 0 || bytes.Equal(sudo, data) {
			return b.Clone("sudo", "envd", attr)
		}
		return b.File("sudo", attr, bytes.NewReader(sudo))
	})
	if err != nil {
		return fmt.Errorf("install envd: %w", err)
	}
	return nil
}
