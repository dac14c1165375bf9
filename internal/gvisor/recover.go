package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"agentsquad"
)

// Recovery says what was found after a restart.
type Recovery struct {
	Running []Info // attached again
	Paused  []Info // still on disk
	Lost    []Info // gone; their remains are removed
}

// Recover takes over what an earlier process left in the data folder: sandboxes
// that still run are attached (their daemon redials), paused ones are listed
// again, those that died or were half made are reported as lost and removed, and
// leftovers that belong to no sandbox are swept away. Call it once, after [New].
func (r *Runtime) Recover(ctx context.Context) (Recovery, error) {
	var found Recovery
	dir := filepath.Join(r.cfg.Dir, "sandboxes")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found, fmt.Errorf("recover sandboxes: %w", err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // an image of a fork under way
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
			continue
		}
		if _, err := r.Get(e.Name()); err == nil {
			continue
		}
		wg.Go(func() {
			info, err := r.recoverOne(ctx, e.Name())
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			switch info.Status {
			case squad.SandboxRunning:
				found.Running = append(found.Running, info)
			case squad.SandboxPaused:
				found.Paused = append(found.Paused, info)
			default:
				found.Lost = append(found.Lost, info)
			}
		})
	}
	wg.Wait()
	errs = append(errs, r.killStrays(ctx), r.sweepStrays(ctx))
	r.awaitTunnels(ctx)
	return found, errors.Join(errs...)
}

// attachPatience bounds how long a recovery waits for the daemons. One that does
// not answer by then is waited for by those who use it.
const attachPatience = 3 * time.Second

// awaitTunnels waits until the sandboxes that run can be talked to.
func (r *Runtime) awaitTunnels(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, attachPatience)
	defer cancel()
	for _, s := range r.List() {
		if _, err := s.Tunnel(ctx); ctx.Err() != nil {
			r.cfg.Log.Warn("sandbox does not answer yet", "sandbox_id", s.id, "error", err)
		}
	}
}

// recoverOne attaches, lists or removes one sandbox.
func (r *Runtime) recoverOne(ctx context.Context, id string) (Info, error) {
	rec, err := readRecord(r.folder(id))
	if err != nil || rec.ID != id {
		rec = record{Info: Info{Spec: Spec{ID: id}}, Boot: bootID(), Cgroups: r.cgroups.dirs(id)}
		return r.lose(ctx, rec, "its state cannot be read")
	}
	s := r.newSandbox(rec)
	switch rec.Status {
	case squad.SandboxPaused:
		return rec.Info, r.add(s)
	case squad.SandboxRunning:
		p, err := s.reopen(rec)
		if err != nil {
			return r.lose(ctx, rec, "it ended while nobody watched")
		}
		if err := r.add(s); err != nil {
			p.close()
			return rec.Info, err
		}
		s.openDoor()
		s.follow(p)
		return rec.Info, nil
	}
	if rec.Root.Checkpoint == s.box.image() || rec.Root.Files == s.box.image() {
		return r.repause(ctx, s, rec)
	}
	return r.lose(ctx, rec, "it was not yet started")
}

// reopen holds the process of a record, if it is still the same.
func (s *Sandbox) reopen(rec record) (*process, error) {
	if rec.Boot != bootID() || rec.PID == 0 {
		return nil, os.ErrProcessDone
	}
	return openProcess(rec.PID, rec.Started)
}

// repause puts a sandbox back that was being resumed: its image is whole.
func (r *Runtime) repause(ctx context.Context, s *Sandbox, rec record) (Info, error) {
	if pid, err := readPID(s.box.pid()); err == nil && rec.PID == 0 && rec.Boot == bootID() && isRunsc(pid) {
		rec.PID = pid
	}
	if err := r.sweep(ctx, rec); err != nil {
		return rec.Info, err
	}
	rec.PID, rec.Started = 0, 0
	rec.Status = squad.SandboxPaused
	s.rec = rec
	if err := s.change(func(*record) {}); err != nil {
		return rec.Info, err
	}
	return rec.Info, r.add(s)
}

// lose removes what is left of a sandbox and says so.
func (r *Runtime) lose(ctx context.Context, rec record, reason string) (Info, error) {
	box := r.folder(rec.ID)
	if pid, err := readPID(box.pid()); err == nil && rec.PID == 0 && rec.Boot == bootID() && isRunsc(pid) {
		rec.PID = pid
	}
	err := r.sweep(ctx, rec)
	err = errors.Join(err, os.RemoveAll(string(box)))
	rec.Status, rec.Error, rec.EndedAt = squad.SandboxError, reason, now()
	r.cfg.Log.Warn("sandbox lost", "sandbox_id", rec.ID, "reason", reason)
	return rec.Info, err
}

// killStrays ends processes of gVisor that work on this data folder and belong
// to no sandbox that was taken over: starts that were cut short.
func (r *Runtime) killStrays(ctx context.Context) error {
	kept := map[string]bool{}
	for _, s := range r.List() {
		if s.Info().Status == squad.SandboxRunning {
			kept[s.id] = true
		}
	}
	var errs []error
	for again, passes := true, 0; again && passes < 5; passes++ { // one may have started another meanwhile
		again = false
		for _, p := range runscProcesses(r.runsc.root) {
			if !kept[p.id] {
				again = true
				errs = append(errs, killAndWait(ctx, p.pid, 0))
			}
		}
	}
	return errors.Join(errs...)
}

// sweepStrays removes runsc's notes and cgroups of sandboxes that have no folder.
func (r *Runtime) sweepStrays(ctx context.Context) error {
	var errs []error
	known := func(id string) bool {
		_, err := os.Stat(string(r.folder(id)))
		return err == nil
	}
	notes, _ := filepath.Glob(filepath.Join(r.runsc.root, "*_sandbox:*.state"))
	for _, note := range notes {
		id, _, _ := strings.Cut(filepath.Base(note), "_sandbox:")
		if !known(id) {
			errs = append(errs, r.sweep(ctx, record{Info: Info{Spec: Spec{ID: id}}, Boot: bootID(), Cgroups: r.cgroups.dirs(id)}))
		}
	}
	errs = append(errs, removeCgroups(ctx, r.cgroups.strays(known)))
	return errors.Join(errs...)
}
