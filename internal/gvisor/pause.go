package gvisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentsquad"
)

// Pause writes the sandbox to disk and frees its memory and processors. With
// keepMemory its processes go on where they were at the next Resume; without, only
// its files are kept and Resume starts it anew. A paused sandbox is a conflict.
// When ctx ends while it is being written, it is written nonetheless.
func (s *Sandbox) Pause(ctx context.Context, keepMemory bool) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	if err := s.want(squad.SandboxRunning); err != nil {
		return err
	}
	dir := s.box.image()
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("pause sandbox %s: %w", s.id, err)
	}
	if err := s.save(ctx, dir, keepMemory, false); err != nil {
		return userError(squad.CodeProvider, err, "sandbox %s could not be paused", s.id)
	}
	return s.change(func(r *record) {
		r.Status, r.PausedAt, r.KeptMemory = squad.SandboxPaused, now(), keepMemory
		r.PID, r.Started = 0, 0
		r.Root.Checkpoint, r.Root.Files = "", ""
		if keepMemory {
			r.Root.Checkpoint = dir
		} else {
			r.Root.Files = dir
		}
	})
}

// want refuses a verb in the wrong state.
func (s *Sandbox) want(status squad.SandboxStatus) error {
	have := s.Info().Status
	switch {
	case have == status:
		return nil
	case have.Final():
		return squad.NotFound("sandbox", s.id)
	}
	return squad.Errorf(squad.CodeConflict, "sandbox %s is %s", s.id, have)
}

// saveTimeout bounds the writing of one checkpoint.
const saveTimeout = 10 * time.Minute

// save writes a checkpoint to dir. The tunnel is closed first, on both sides,
// because a live connection to the host cannot be saved. If the sandbox is to stop, its
// processes and cgroups are gone afterwards; if it is to go on, or when saving
// failed, its tunnel is opened again.
//
// Once begun it runs to its end, whatever becomes of ctx: a checkpoint cut short
// leaves a sandbox that is neither saved nor running.
func (s *Sandbox) save(ctx context.Context, dir string, memory, goOn bool) error {
	if !memory && s.rt.cfg.Overlay == OverlayMemory {
		return squad.Errorf(squad.CodeRule, "files alone cannot be kept of a sandbox that writes to memory; keep its memory too")
	}
	rec := s.record()
	in := invocation{box: s.box, program: rec.runsc(), diskMB: rec.DiskMB, verb: "checkpoint"}
	in.args = []string{"--image-path=" + dir, "--compression=none", "--exclude-committed-zero-pages"}
	if !memory {
		in.verb = "fscheckpoint"
		in.args = []string{"--image-path=" + dir}
		for _, path := range rec.writable() {
			in.args = append(in.args, "--path="+path)
		}
	}
	if goOn {
		in.args = append(in.args, "--leave-running")
	}
	in.args = append(in.args, s.id)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if err := s.hangUp(ctx); err != nil {
		return err
	}
	_, err := s.rt.runsc.run(ctx, in)
	if err == nil && !goOn {
		return s.stop(ctx)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	s.openDoor()
	return err
}

// writable lists the mounts whose changes a checkpoint of files must hold.
func (r record) writable() []string {
	paths := []string{"/"}
	for _, m := range append(append([]Mount{}, r.Root.Binds...), r.Mounts...) {
		if !m.ReadOnly {
			paths = append(paths, m.Path)
		}
	}
	return paths
}

// Resume brings a paused sandbox back.
func (s *Sandbox) Resume(ctx context.Context) error {
	release, err := s.rt.slot(ctx)
	if err != nil {
		return userError(squad.CodeUnavailable, err, "too many sandboxes start at once")
	}
	defer release()
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	if err := s.want(squad.SandboxPaused); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.rt.cfg.StartTimeout)
	defer cancel()
	if err := s.resume(ctx); err != nil {
		return userError(squad.CodeProvider, err, "sandbox %s could not be resumed", s.id)
	}
	return nil
}

func (s *Sandbox) resume(ctx context.Context) error {
	paused := s.record()
	if err := s.change(func(r *record) { r.Status = squad.SandboxCreated }); err != nil {
		return err
	}
	err := s.start(ctx)
	if err != nil { // it stays paused: the image is whole
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		_ = s.stop(cctx)
		_ = s.change(func(r *record) { *r = paused; r.PID, r.Started = 0, 0 })
		return err
	}
	return nil
}

// imageSize is the number of bytes below dir.
func imageSize(dir string) int64 {
	var n int64
	_ = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}
