package sandbox

import (
	"context"
	"errors"
	"strconv"
	"time"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/store"
)

// Labels by which our sandboxes are known at a provider.
const (
	LabelInstall   = "squad_install"
	LabelSandbox   = "squad_sandbox"
	LabelExecution = "squad_execution"
	LabelEpoch     = "squad_epoch"
	LabelNode      = "squad_node"
)

// interrupted is what ended a row whose maker is gone.
const interrupted = "its making was interrupted"

// ready makes what choose found usable: makes it where it is not made, wakes it
// where it sleeps, and sees that it lives. ErrGone says that it was gone.
func (s *Service) ready(ctx context.Context, p *provider, row squad.Sandbox, req AcquireRequest, fresh bool) (squad.Sandbox, error) {
	defer s.lock(row.ID)()
	row, err := s.store.Sandbox(ctx, row.ID) // another call may have made it meanwhile
	if err != nil {
		return row, err
	}
	switch row.Status {
	case squad.SandboxCreated:
		return s.make(ctx, p, row, req, fresh)
	case squad.SandboxRunning, squad.SandboxPaused:
		return s.wake(ctx, p, row, req.Actor)
	}
	return row, ErrGone
}

// make asks the provider for the sandbox of a row. A failure ends the row. fresh
// says that nobody asked before.
func (s *Service) make(ctx context.Context, p *provider, row squad.Sandbox, req AcquireRequest, fresh bool) (squad.Sandbox, error) {
	start := time.Now()
	sb, err := s.create(ctx, p, row, req, !fresh)
	// What was made must be written down even if the caller has left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err != nil {
		if ambiguous(err) {
			s.abandon(ctx, p, row)
		}
		return row, s.unmade(ctx, row, translate(err, p.name, "create sandbox"))
	}
	row, err = s.change(ctx, row.ID, squad.EventSandboxCreated, func(tx *store.Tx, r *squad.Sandbox) error {
		if r.Error == interrupted { // the sweep of a start looked just before we went on with it
			return ErrGone
		}
		if r.Status != squad.SandboxCreated {
			return squad.Errorf(squad.CodeConflict, "sandbox %s was ended while it was made", r.ID)
		}
		r.Status, r.E2BID = squad.SandboxRunning, sb.ID
		r.CreateMS = time.Since(start).Milliseconds()
		r.LastUsedAt, r.ExpiresAt = tx.Now, tx.Now.Add(p.lifetime(req.Lifetime))
		return nil
	})
	if err != nil { // nobody will use it: the row says so, or will when the sweep sees it
		_, kill := p.Client.Kill(ctx, sb.ID)
		return row, errors.Join(err, kill)
	}
	s.mu.Lock()
	s.handles[row.ID] = sb
	s.mu.Unlock()
	s.log.InfoContext(ctx, "sandbox made", "sandbox_id", row.ID, "provider", p.name, "e2b_id", row.E2BID, "ms", row.CreateMS)
	return row, nil
}

// unmade settles the row of a sandbox that could not be made. A limit leaves no
// trace: who waits asks again and again, and nothing ever was.
func (s *Service) unmade(ctx context.Context, row squad.Sandbox, cause error) error {
	if squad.CodeOf(cause) != squad.CodeQuota {
		return errors.Join(cause, s.fail(ctx, row.ID, "could not be made: "+userMessage(cause)))
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.ClearMemberSandbox(ctx, row.ID); err != nil {
			return err
		}
		return tx.DeleteSandbox(ctx, row.ID)
	})
	s.forget(row.ID)
	return errors.Join(cause, err)
}

// create asks until there is one sandbox with the row's label. After a failure
// that may have made one (doubt) it looks for the label before it asks again.
func (s *Service) create(ctx context.Context, p *provider, row squad.Sandbox, req AcquireRequest, doubt bool) (*e2b.Sandbox, error) {
	opts := s.options(p, row, req)
	wait := p.waits()
	for try := 1; ; try++ {
		if doubt {
			if sb, err := s.adopt(ctx, p, row); sb != nil || err != nil && !passing(err) {
				return sb, err
			}
		}
		var sb *e2b.Sandbox
		err := p.once(ctx, func(ctx context.Context) (err error) {
			sb, err = p.Client.Create(ctx, opts)
			return err
		})
		if err == nil {
			return sb, nil
		}
		if ambiguous(err) {
			doubt = true
			s.log.WarnContext(ctx, "create sandbox may have succeeded", "sandbox_id", row.ID, "provider", p.name, "error", err)
		}
		if try >= p.retry.Tries || !passing(err) || !p.sleep(ctx, wait, err) {
			return s.lastLook(ctx, p, row, err)
		}
	}
}

// lastLook settles a create that is given up: what it made after all is adopted,
// unless the caller has left; then the sweep ends it, since its row is over.
func (s *Service) lastLook(ctx context.Context, p *provider, row squad.Sandbox, cause error) (*e2b.Sandbox, error) {
	if !ambiguous(cause) || ctx.Err() != nil {
		return nil, cause
	}
	if sb, err := s.adopt(ctx, p, row); err == nil && sb != nil {
		return sb, nil
	}
	return nil, cause
}

// abandon ends at once what a create that was given up may have made. What comes
// into being later is the sweep's.
func (s *Service) abandon(ctx context.Context, p *provider, row squad.Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found, err := s.labelled(ctx, p, row)
	for _, id := range found {
		_, kill := p.Client.Kill(ctx, id)
		err = errors.Join(err, kill)
	}
	if err != nil {
		s.log.DebugContext(ctx, "abandoned sandbox is left to the sweep", "sandbox_id", row.ID, "error", err)
	}
}

// labelled returns the provider's sandboxes that carry the row's label.
func (s *Service) labelled(ctx context.Context, p *provider, row squad.Sandbox) (found []string, err error) {
	label := map[string]string{LabelSandbox: row.ID, LabelInstall: s.cfg.Installation}
	for info, err := range p.Client.List(ctx, e2b.ListOptions{Metadata: label}) {
		if err != nil {
			return found, err
		}
		found = append(found, info.ID)
	}
	return found, nil
}

// adopt looks for the sandbox that carries the row's label. Where there are
// several, one is kept.
func (s *Service) adopt(ctx context.Context, p *provider, row squad.Sandbox) (*e2b.Sandbox, error) {
	var found []string
	err := p.call(ctx, func(ctx context.Context) (err error) {
		found, err = s.labelled(ctx, p, row)
		return err
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for _, id := range found[1:] {
		if _, err := p.Client.Kill(ctx, id); err != nil {
			s.log.WarnContext(ctx, "second sandbox of one row stays for the sweep", "sandbox_id", row.ID, "e2b_id", id, "error", err)
		}
	}
	return p.Client.Connect(ctx, found[0], e2b.ConnectOptions{Timeout: p.Lifetime})
}

func (s *Service) options(p *provider, row squad.Sandbox, req AcquireRequest) e2b.CreateOptions {
	opts := e2b.CreateOptions{
		Template: row.Template, Timeout: p.lifetime(req.Lifetime), Env: req.Env, Network: req.Network,
		Metadata: map[string]string{
			LabelInstall: s.cfg.Installation, LabelSandbox: row.ID, LabelEpoch: strconv.FormatInt(row.Epoch, 10),
		},
	}
	if row.ExecutionID != "" {
		opts.Metadata[LabelExecution] = row.ExecutionID
	}
	if p.Node != "" {
		opts.Metadata[LabelNode] = p.Node
	}
	if p.PauseAtEnd {
		opts.Lifecycle = &e2b.Lifecycle{Pause: true, AutoResume: true}
	}
	if len(req.Mounts) > 0 {
		opts.Extra = map[string]any{"squadMounts": req.Mounts}
	}
	return opts
}

func (p *provider) lifetime(asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	return p.Lifetime
}

// wake sees that a sandbox runs, and resumes it where it is paused.
func (s *Service) wake(ctx context.Context, p *provider, row squad.Sandbox, actor squad.Actor) (squad.Sandbox, error) {
	sb, err := s.connect(ctx, p, row)
	if errors.Is(err, e2b.ErrSandboxGone) {
		return row, errors.Join(ErrGone, s.fail(ctx, row.ID, "was found gone when it was needed"))
	}
	if err != nil {
		return row, translate(err, p.name, "connect to sandbox")
	}
	s.mu.Lock()
	s.handles[row.ID] = sb
	s.mu.Unlock()
	if row.Status == squad.SandboxRunning {
		return row, nil
	}
	return s.awake(ctx, row, actor)
}

// awake writes down that a sandbox runs again.
func (s *Service) awake(ctx context.Context, row squad.Sandbox, actor squad.Actor) (squad.Sandbox, error) {
	return s.change(ctx, row.ID, squad.EventSandboxStatus, func(tx *store.Tx, r *squad.Sandbox) error {
		if r.Status.Final() {
			return squad.Errorf(squad.CodeConflict, "sandbox %s has ended", r.ID)
		}
		r.Status, r.LastUsedAt = squad.SandboxRunning, tx.Now
		s.chargeFrom(r.ID, tx.Now)
		return s.audit(ctx, tx, actor, "sandbox.resume", r.ID, nil)
	})
}

func (s *Service) connect(ctx context.Context, p *provider, row squad.Sandbox) (sb *e2b.Sandbox, err error) {
	err = p.call(ctx, func(ctx context.Context) error {
		sb, err = p.Client.Resume(ctx, row.E2BID, e2b.ConnectOptions{Timeout: p.Lifetime})
		return err
	})
	return sb, err
}
