package gvisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"agentsquad"
)

// Snapshot saves the sandbox, processes included, as the template name, and
// lets it go on. An existing template of that name is a conflict.
func (s *Sandbox) Snapshot(ctx context.Context, name string) (Template, error) {
	return s.snapshot(ctx, name, true)
}

// SnapshotFiles saves the sandbox's files alone as the template name, and lets it
// go on: sandboxes made from it start with no process but the daemon.
func (s *Sandbox) SnapshotFiles(ctx context.Context, name string) (Template, error) {
	return s.snapshot(ctx, name, false)
}

func (s *Sandbox) snapshot(ctx context.Context, name string, memory bool) (Template, error) {
	if err := checkTemplateName(name); err != nil {
		return Template{}, err
	}
	if err := s.begin(ctx); err != nil {
		return Template{}, err
	}
	defer s.end()
	if err := s.want(squad.SandboxRunning); err != nil {
		return Template{}, err
	}
	dir := s.rt.templateDir(name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return Template{}, squad.Wrap(squad.CodeConflict, err, "template %q exists already", name)
	}
	image := filepath.Join(dir, "checkpoint")
	if err := s.save(ctx, image, memory, true); err != nil {
		_ = os.RemoveAll(dir)
		return Template{}, userError(squad.CodeProvider, err, "sandbox %s could not be saved", s.id)
	}
	rec := s.record()
	own := rec.hold(dir)
	t := Template{
		Name: name, Kind: KindSnapshot, Root: rec.Root, Source: "sandbox " + s.id, CreatedAt: now(),
		SizeBytes: imageSize(image), Mounts: own.mounts(rec.Mounts), Limits: rec.Limits, Envd: own.of(rec.Envd), Runsc: own.of(rec.Runsc),
	}
	if _, err := os.Stat(s.box.lent()); err == nil {
		t.Lent = filepath.Join(dir, "lent")
		if err := s.box.lend(ctx, t.Lent, s.box.lent()); err != nil {
			_ = os.RemoveAll(dir)
			return Template{}, err
		}
	}
	t.Root.Image, t.Root.Binds = own.of(rec.Root.Image), own.mounts(rec.Root.Binds)
	t.Root.Checkpoint, t.Root.Files = image, ""
	if !memory {
		t.Root.Checkpoint, t.Root.Files = "", image
	}
	if from, err := s.rt.Template(rec.Template); err == nil {
		t.Config = from.Config
	}
	return t, s.rt.saveTemplate(t)
}

// Fork makes another sandbox that goes on from where this one is now, with files
// and processes of its own.
func (s *Sandbox) Fork(ctx context.Context, newID string) (*Sandbox, error) {
	boxes, errs := s.ForkAll(ctx, []string{newID})
	return boxes[0], errs[0]
}

// ForkAll makes one fork for each id, all from the same moment. The two results
// have an entry for each id: a sandbox or an error.
func (s *Sandbox) ForkAll(ctx context.Context, ids []string) ([]*Sandbox, []error) {
	boxes, errs := make([]*Sandbox, len(ids)), make([]error, len(ids))
	image, rec, err := s.forkImage(ctx)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return boxes, errs
	}
	defer os.RemoveAll(image)
	rec.Root.Checkpoint, rec.Root.Files = image, ""
	rec.PID, rec.Started, rec.Cgroups = 0, 0, nil
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			fork := rec
			if fork.ID = id; id == "" {
				fork.ID = newSandboxID()
			}
			fork.Status, fork.CreatedAt = squad.SandboxCreated, now()
			if errs[i] = fork.validate(); errs[i] == nil {
				boxes[i], errs[i] = s.rt.launch(ctx, fork)
			}
		})
	}
	wg.Wait()
	return boxes, errs
}

// forkImage saves the running sandbox to a folder that the caller removes.
func (s *Sandbox) forkImage(ctx context.Context) (string, record, error) {
	if err := s.begin(ctx); err != nil {
		return "", record{}, err
	}
	defer s.end()
	if err := s.want(squad.SandboxRunning); err != nil {
		return "", record{}, err
	}
	image, err := os.MkdirTemp(filepath.Join(s.rt.cfg.Dir, "sandboxes"), ".fork-")
	if err != nil {
		return "", record{}, fmt.Errorf("fork sandbox %s: %w", s.id, err)
	}
	if err := s.save(ctx, image, true, true); err != nil {
		_ = os.RemoveAll(image)
		return "", record{}, userError(squad.CodeProvider, err, "sandbox %s could not be forked", s.id)
	}
	rec := s.record()
	rec.Lent = s.box.lent()
	return image, rec, nil
}
