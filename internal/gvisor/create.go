package gvisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agentsquad"
)

// Create makes a sandbox and returns when its daemon has dialled home. On any
// error nothing is left of it.
func (r *Runtime) Create(ctx context.Context, spec Spec) (*Sandbox, error) {
	if spec.ID == "" {
		spec.ID = newSandboxID()
	}
	if spec.Template == "" {
		spec.Template = BaseTemplate
	}
	t, err := r.Template(spec.Template)
	if err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.or(t.Limits).or(r.cfg.Defaults)
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if err := checkSources(spec.Mounts); err != nil {
		return nil, err
	}
	rec := record{Info: Info{Spec: spec, Status: squad.SandboxCreated, CreatedAt: now()}, Root: t.Root, Envd: r.envd, Runsc: r.runsc.program}
	if t.Kind == KindSnapshot { // what it was made of cannot be changed under its feet
		if len(spec.Mounts) > 0 {
			return nil, squad.Invalid("mounts", "a sandbox from snapshot %s has the mounts of the snapshot", t.Name)
		}
		rec.Mounts, rec.Envd, rec.Lent = t.Mounts, t.Envd, t.Lent
		if t.Runsc != "" {
			rec.Runsc = t.Runsc
		}
	}
	return r.launch(ctx, rec)
}

// checkSources refuses mounts whose source is not there.
func checkSources(mounts []Mount) error {
	for _, m := range mounts {
		info, err := os.Stat(m.Image + m.Dir)
		if err != nil || info.IsDir() != (m.Dir != "") {
			return squad.Wrap(squad.CodeInvalid, err, "mount source %s is not there or of the wrong kind", m.Image+m.Dir)
		}
	}
	return nil
}

// launch makes the files of a new sandbox and starts it.
func (r *Runtime) launch(ctx context.Context, rec record) (*Sandbox, error) {
	release, err := r.slot(ctx)
	if err != nil {
		return nil, userError(squad.CodeUnavailable, err, "too many sandboxes start at once")
	}
	defer release()
	rec.Warnings = r.cgroups.missing
	s := r.newSandbox(rec)
	if err := r.add(s); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		r.remove(s)
		return nil, err
	}
	defer s.end()
	if err := s.box.make(); err != nil {
		r.remove(s)
		return nil, err
	}
	if err := s.box.relend(ctx, rec.Lent); err != nil {
		s.clean(ctx, err.Error())
		return nil, err
	}
	s.mu.Lock()
	s.rec.Held = s.rec.hold(string(s.box))
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StartTimeout)
	defer cancel()
	if err := s.start(ctx); err != nil {
		s.clean(ctx, err.Error())
		return nil, userError(squad.CodeProvider, err, "sandbox %s could not be started", rec.ID)
	}
	return s, nil
}

// start brings the sandbox up, from nothing or from a checkpoint, and waits for
// its tunnel. The caller holds the turn and cleans up after an error.
func (s *Sandbox) start(ctx context.Context) error {
	_ = os.Remove(s.box.pid()) // of an earlier start, perhaps before a reboot: not to be taken for this one's
	dirs := s.rt.cgroups.dirs(s.id)
	if err := s.change(func(r *record) { r.Cgroups, r.Boot = dirs, bootID() }); err != nil {
		return err
	}
	rec := s.record()
	if err := s.box.parts(); err != nil {
		return err
	}
	if err := s.rt.cgroups.create(s.id, rec.Limits); err != nil {
		return err
	}
	if err := s.writeBundle(rec); err != nil {
		return err
	}
	door, err := s.box.makeDoor()
	if err != nil {
		return err
	}
	defer door.Close()
	s.openDoor()
	began := now()
	if err := s.boot(ctx, rec, dirs, door); err != nil {
		return err
	}
	s.rt.cfg.Log.Debug("sandbox started", "sandbox_id", s.id, "took", time.Since(began))
	err = s.change(func(r *record) {
		r.Status, r.Error = squad.SandboxRunning, ""
		r.StartedAt, r.PausedAt = began, time.Time{}
		r.Root.Checkpoint, r.Root.Files = "", "" // read, or held open by the sandbox
	})
	if err == nil {
		err = os.RemoveAll(s.box.image())
	}
	return err
}

// boot runs runsc until envd has answered at the door. runsc may still be busy with its
// own books by then; the sandbox is already usable.
func (s *Sandbox) boot(ctx context.Context, rec record, cgroups []string, door *os.File) error {
	in := invocation{box: s.box, program: rec.runsc(), cgroups: cgroups, diskMB: rec.DiskMB, verb: "run", stdin: door, crowded: s.rt.crowded()}
	in.args = []string{"--detach", "--bundle=" + s.box.bundle(), "--pid-file=" + s.box.pid()}
	switch {
	case rec.Root.Checkpoint != "":
		in.verb = "restore"
		in.args = append(in.args, "--image-path="+rec.Root.Checkpoint, "--background")
	case rec.Root.Files != "":
		in.args = append(in.args, "--fs-restore-image-path="+rec.Root.Files)
	}
	in.args = append(in.args, s.id)
	ended := make(chan error, 1)
	go func() {
		_, err := s.rt.runsc.run(ctx, in)
		ended <- err
	}()
	answered := make(chan error, 1)
	go func() {
		_, err := s.Tunnel(ctx)
		answered <- err
	}()
	var gone <-chan struct{}
	for up, booted := false, false; !up || !booted; {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			booted, ended = true, nil
			p, err := s.watch()
			if err != nil {
				return err
			}
			gone = p.gone
		case err := <-answered:
			if err != nil {
				return errors.Join(err, s.autopsy())
			}
			up, answered = true, nil
		case <-gone:
			return fmt.Errorf("sandbox died while it started: %w", cmp.Or(s.autopsy(), os.ErrProcessDone))
		}
	}
	return nil
}

// autopsy returns what runsc said last.
func (s *Sandbox) autopsy() error {
	if said := lastLog(s.box.log()); said != "" {
		return errors.New(said)
	}
	return nil
}

func (s *Sandbox) record() record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rec
}
