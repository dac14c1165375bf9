package sandbox

import (
	"context"
	"errors"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/store"
)

// Create makes a sandbox outside an execution and waits until it runs.
func (s *Service) Create(ctx context.Context, actor squad.Actor, req squad.SandboxRequest) (squad.Sandbox, error) {
	return s.CreateWith(ctx, actor, req, nil)
}

// CreateWith is Create with mounts.
func (s *Service) CreateWith(ctx context.Context, actor squad.Actor, req squad.SandboxRequest, mounts []Mount) (squad.Sandbox, error) {
	if !actor.May(req.SquadID, squad.RoleMember) {
		return squad.Sandbox{}, squad.NotFound("squad", req.SquadID)
	}
	if req.MemberID != "" {
		if m, err := s.store.Member(ctx, req.MemberID); err != nil || m.SquadID != req.SquadID {
			return squad.Sandbox{}, squad.NotFound("member", req.MemberID)
		}
	}
	if req.TaskID != "" {
		if t, err := s.store.Task(ctx, req.TaskID); err != nil || t.SquadID != req.SquadID {
			return squad.Sandbox{}, squad.NotFound("task", req.TaskID)
		}
	}
	if req.RepositoryID != "" {
		if r, err := s.store.Repository(ctx, req.RepositoryID); err != nil || r.SquadID != req.SquadID {
			return squad.Sandbox{}, squad.NotFound("repository", req.RepositoryID)
		}
	}
	return s.Acquire(ctx, AcquireRequest{
		SquadID: req.SquadID, MemberID: req.MemberID, TaskID: req.TaskID, RepositoryID: req.RepositoryID,
		Provider: req.Provider, Template: req.Template, Lifetime: time.Duration(req.TimeoutSec) * time.Second,
		Env: req.Env, Fresh: true, Actor: actor, Mounts: mounts,
	})
}

// OfTask returns the sandbox of a task that can be used.
func (s *Service) OfTask(ctx context.Context, actor squad.Actor, taskID string) (squad.Sandbox, error) {
	row, err := s.store.RunningSandboxOfTask(ctx, taskID)
	if err == nil && !actor.OwnsSandbox(row) {
		return squad.Sandbox{}, squad.NotFound("sandbox of task", taskID)
	}
	return row, err
}

// Status asks the provider for the state of a sandbox and writes down what it
// says.
func (s *Service) Status(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error) {
	row, err := s.own(ctx, actor, id)
	if err != nil || row.Status.Final() || row.E2BID == "" {
		return row, err
	}
	p, err := s.of(ctx, row)
	if err != nil {
		return row, err
	}
	var info e2b.SandboxInfo
	err = p.call(ctx, func(ctx context.Context) error {
		info, err = p.Client.Get(ctx, row.E2BID)
		return err
	})
	switch {
	case errors.Is(err, e2b.ErrSandboxGone):
		err = s.fail(ctx, id, "was found gone")
	case err != nil:
		return row, translate(err, p.name, "get sandbox")
	case info.State == e2b.StatePaused && row.Status == squad.SandboxRunning:
		err = s.asleep(ctx, id)
	}
	if err != nil {
		return row, err
	}
	return s.store.Sandbox(ctx, id)
}

// Pause stops a sandbox and keeps its memory; a paused one stays as it is.
func (s *Service) Pause(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error) {
	row, err := s.own(ctx, actor, id)
	if err != nil {
		return row, err
	}
	if row.Status == squad.SandboxPaused {
		return row, nil
	}
	if row.Status != squad.SandboxRunning {
		return row, squad.Errorf(squad.CodeConflict, "sandbox %s is %s and cannot be paused", id, row.Status)
	}
	p, err := s.of(ctx, row)
	if err != nil {
		return row, err
	}
	defer s.lock(id)()
	err = p.call(ctx, func(ctx context.Context) error { return p.Client.Pause(ctx, row.E2BID, e2b.PauseOptions{}) })
	if err != nil {
		s.suspect(ctx, row, err)
		return row, translate(err, p.name, "pause sandbox")
	}
	if err := s.asleep(ctx, id); err != nil {
		return row, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return s.audit(ctx, tx, actor, "sandbox.pause", id, nil) })
	if err != nil {
		return row, err
	}
	return s.store.Sandbox(ctx, id)
}

// asleep writes down that a sandbox is paused.
func (s *Service) asleep(ctx context.Context, id string) error {
	_, err := s.change(ctx, id, squad.EventSandboxStatus, func(tx *store.Tx, r *squad.Sandbox) error {
		if r.Status.Final() {
			return squad.Errorf(squad.CodeConflict, "sandbox %s has ended", id)
		}
		if err := s.charge(ctx, tx, r); err != nil {
			return err
		}
		r.Status = squad.SandboxPaused
		return nil
	})
	return err
}

// Resume wakes a paused sandbox; a running one stays as it is.
func (s *Service) Resume(ctx context.Context, actor squad.Actor, id string) (squad.Sandbox, error) {
	row, err := s.own(ctx, actor, id)
	if err != nil || row.Status == squad.SandboxRunning {
		return row, err
	}
	if _, err := s.open(ctx, actor, row); err != nil {
		return row, err
	}
	return s.store.Sandbox(ctx, id)
}

// maxForks bounds how many copies one request makes.
const maxForks = 16

// Fork makes count copies that start from the same moment. Where some fail, the
// others are returned with the error.
func (s *Service) Fork(ctx context.Context, actor squad.Actor, id string, count int) ([]squad.Sandbox, error) {
	row, err := s.own(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	if count < 1 || count > maxForks {
		return nil, squad.Invalid("count", "a fork makes 1 to %d copies", maxForks)
	}
	p, err := s.of(ctx, row)
	if err != nil {
		return nil, err
	}
	if _, err := s.open(ctx, actor, row); err != nil {
		return nil, err
	}
	start := time.Now()
	var made []*e2b.Sandbox
	partly := p.once(ctx, func(ctx context.Context) error {
		made, err = p.Client.Fork(ctx, row.E2BID, e2b.ForkOptions{Count: count, Timeout: p.Lifetime})
		return err
	})
	rows := []squad.Sandbox{}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, sb := range made {
		twin := row
		twin.ID, twin.E2BID, twin.Status, twin.ExecutionID, twin.Pooled = squad.NewID(), sb.ID, squad.SandboxRunning, "", false
		twin.CommandCount, twin.CostUSD, twin.CreateMS = 0, 0, time.Since(start).Milliseconds()
		twin.CreatedAt, twin.LastUsedAt, twin.TerminatedAt, twin.ExpiresAt = time.Time{}, time.Time{}, time.Time{}, time.Now().Add(p.Lifetime)
		err := s.store.Tx(ctx, func(tx *store.Tx) error {
			if err := tx.CreateSandbox(ctx, &twin); err != nil {
				return err
			}
			if err := s.announce(ctx, tx, squad.EventSandboxCreated, twin); err != nil {
				return err
			}
			return s.audit(ctx, tx, actor, "sandbox.fork", twin.ID, map[string]any{"of": row.ID})
		})
		if err != nil {
			_, kill := p.Client.Kill(ctx, sb.ID)
			partly = errors.Join(partly, err, kill)
			continue
		}
		s.mu.Lock()
		s.handles[twin.ID] = sb
		s.mu.Unlock()
		rows = append(rows, twin)
	}
	return rows, translate(partly, p.name, "fork sandbox")
}

// Destroy ends a sandbox; destroying twice, or one that is gone, is no error.
func (s *Service) Destroy(ctx context.Context, actor squad.Actor, id string) error {
	row, err := s.own(ctx, actor, id)
	if err != nil {
		return err
	}
	return s.destroy(ctx, actor, row, "")
}

// Release is Destroy for the execution that holds a sandbox under an epoch. One
// that was handed on under a newer epoch is left alone: [squad.CodeStale].
func (s *Service) Release(ctx context.Context, id string, epoch int64) error {
	row, err := s.store.Sandbox(ctx, id)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if row.Epoch > epoch {
		return squad.Errorf(squad.CodeStale, "sandbox %s is held under epoch %d, newer than %d", id, row.Epoch, epoch)
	}
	return s.destroy(ctx, squad.System(), row, "")
}

// destroy kills first and writes then: between the two a crash leaves a row that
// the sweep corrects, never a sandbox that nobody knows.
func (s *Service) destroy(ctx context.Context, actor squad.Actor, row squad.Sandbox, cause string) error {
	if row.Status.Final() {
		return nil
	}
	p, err := s.of(ctx, row)
	if errors.Is(err, e2b.ErrSandboxGone) {
		return nil // it went with its node, and its row says so
	}
	if err != nil {
		return err
	}
	defer s.lock(row.ID)()
	if row, err = s.store.Sandbox(ctx, row.ID); err != nil || row.Status.Final() {
		return err
	}
	if row.E2BID != "" {
		err := p.call(ctx, func(ctx context.Context) error {
			_, err := p.Client.Kill(ctx, row.E2BID)
			return err
		})
		if err != nil {
			return translate(err, p.name, "destroy sandbox")
		}
	}
	return s.store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		ended, changed, err := s.end(ctx, tx, row.ID, cause)
		if err != nil || !changed {
			return err
		}
		return s.audit(ctx, tx, actor, "sandbox.destroy", ended.ID, map[string]any{"cost_usd": ended.CostUSD})
	})
}
