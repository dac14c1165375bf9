package sandbox

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/store"
)

// Mount is a file system image laid into a sandbox, where the provider takes it.
type Mount struct {
	Image    string `json:"image,omitempty"` // absolute path of an EROFS image on the provider's machine
	Dir      string `json:"dir,omitempty"`   // or of a folder there
	Path     string `json:"path"`            // absolute path inside
	ReadOnly bool   `json:"read_only,omitempty"`
}

// AcquireRequest asks for a sandbox to work in.
type AcquireRequest struct {
	SquadID      string
	MemberID     string
	TaskID       string
	ExecutionID  string
	RepositoryID string
	// Provider and Template default to the squad's, then to the installation's.
	Provider string
	Template string
	Mounts   []Mount
	Env      map[string]string
	Network  *e2b.Network
	// Lifetime defaults to the provider's.
	Lifetime time.Duration
	// PoolKey names prepared sandboxes (the same Mounts, say a commit of a
	// repository) that may be kept warm for those who ask with the same key.
	PoolKey string
	// Fresh asks for a new sandbox, not one the task has.
	Fresh bool
	// Epoch is the fencing number of who asks. A sandbox held under a higher one
	// is not handed over.
	Epoch int64
	// Actor is noted in the audit log; zero is the house.
	Actor squad.Actor
}

// maxDead is how many dead sandboxes an acquire steps over before it gives up.
const maxDead = 5

// Acquire returns a running sandbox for an execution: the one it has, one that
// its task's member has and no live execution holds, one from the warm pool, or
// a new one. It is repeatable: asked again for the same execution, after a crash
// too, it returns the same sandbox. A limit is [squad.CodeQuota]: wait, ask again.
func (s *Service) Acquire(ctx context.Context, req AcquireRequest) (squad.Sandbox, error) {
	ctx, span := trace.SpanFromContext(ctx).TracerProvider().Tracer("agentsquad/sandbox").Start(ctx, "sandbox.Acquire")
	defer span.End()
	p, err := s.complete(ctx, &req)
	if err != nil {
		return squad.Sandbox{}, err
	}
	start := time.Now()
	for range maxDead {
		row, source, err := s.choose(ctx, p, req)
		if err == nil {
			row, err = s.readyThere(ctx, p, row, req, source)
		}
		if errors.Is(err, ErrGone) || squad.CodeOf(err) == squad.CodeQuota && s.evict(ctx, p) {
			continue
		}
		if err == nil {
			s.metrics.create.WithLabelValues(p.name, source).Observe(time.Since(start).Seconds())
		}
		return row, err
	}
	return squad.Sandbox{}, squad.Errorf(squad.CodeProvider, "sandboxes of provider %s die as soon as they are made", p.name)
}

// ErrGone is the cause of what cannot be done because the sandbox has ended, by
// whatever end.
var ErrGone = errors.New("sandbox is gone")

// complete fills in what the request leaves to squad and installation.
func (s *Service) complete(ctx context.Context, req *AcquireRequest) (*provider, error) {
	if req.SquadID != "" {
		sq, err := s.store.Squad(ctx, req.SquadID)
		if err != nil {
			return nil, err
		}
		if req.Provider == "" {
			req.Provider = sq.Config.Provider
		}
		if req.Template == "" {
			req.Template = sq.Config.Template
		}
	}
	p, err := s.provider(req.Provider)
	if err != nil {
		return nil, err
	}
	if req.Template == "" {
		req.Template = p.Template
	}
	if len(req.Mounts) > 0 && !p.Mounts {
		return nil, squad.Invalid("mounts", "provider %s takes no mounts", p.name)
	}
	return p, nil
}

// Where a sandbox came from.
const (
	fromTask = "task"
	fromPool = "pool"
	fromNew  = "new"
)

// choose finds, claims or begins a sandbox in one transaction.
func (s *Service) choose(ctx context.Context, p *provider, req AcquireRequest) (row squad.Sandbox, source string, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		// One at a time per task, so that two steps of one flow cannot both begin.
		if req.TaskID != "" {
			if err := tx.Lock(ctx, "sandbox-task/"+req.TaskID); err != nil {
				return err
			}
		}
		var found bool
		if row, found, err = s.held(ctx, tx, p, req); err != nil || found {
			source = fromTask
			return err
		}
		owner, err := s.owner(ctx, tx, p, req)
		if err != nil {
			return err
		}
		if row, found, err = s.claim(ctx, tx, p, req, owner); err != nil || found {
			source = fromPool
			return err
		}
		if err := s.room(ctx, tx, p); err != nil {
			return err
		}
		row, source = owner, fromNew
		return s.begin(ctx, tx, &row, req.Actor)
	})
	if err == nil {
		s.pools.count(p, req, source)
	}
	return row, source, err
}

// held finds the sandbox that the execution, or else its task's member, has.
func (s *Service) held(ctx context.Context, tx *store.Tx, p *provider, req AcquireRequest) (squad.Sandbox, bool, error) {
	if req.TaskID == "" || req.Fresh {
		return squad.Sandbox{}, false, nil
	}
	rows, err := tx.Sandboxes(ctx, store.SandboxFilter{TaskID: req.TaskID, Provider: p.name, Statuses: alive, Newest: true})
	if err != nil {
		return squad.Sandbox{}, false, err
	}
	for _, candidate := range rows {
		mine := req.ExecutionID != "" && candidate.ExecutionID == req.ExecutionID
		if !mine && !s.suits(ctx, tx, p, candidate, req) {
			continue
		}
		row, err := tx.Sandbox(ctx, candidate.ID) // read again under its lock
		if err != nil {
			return row, false, err
		}
		if row.Status.Final() || !mine && s.busy(ctx, tx, row) {
			continue
		}
		if row.Epoch > req.Epoch {
			return row, false, squad.Errorf(squad.CodeStale, "sandbox %s is held under epoch %d, newer than %d", row.ID, row.Epoch, req.Epoch)
		}
		row.ExecutionID, row.Epoch, row.LastUsedAt = req.ExecutionID, req.Epoch, tx.Now
		if err := tx.UpdateSandbox(ctx, &row); err != nil {
			return row, false, err
		}
		return row, true, s.announce(ctx, tx, squad.EventSandboxStatus, row)
	}
	return squad.Sandbox{}, false, nil
}

// suits says whether a sandbox that another execution of the task had can serve
// this one: the same member's, made of the same template for the same repository.
// One that no execution had may lack the tree that the request wants mounted.
func (s *Service) suits(ctx context.Context, tx *store.Tx, p *provider, row squad.Sandbox, req AcquireRequest) bool {
	if row.AgentID != req.MemberID || row.Template != req.Template || row.Node != p.Node {
		return false
	}
	if len(req.Mounts) > 0 && row.ExecutionID == "" {
		return false
	}
	if req.RepositoryID == "" {
		return true
	}
	repo, err := tx.Repository(ctx, req.RepositoryID)
	return err == nil && repo.URL == row.RepoURL
}

// busy says whether an execution that is not over holds the sandbox.
func (s *Service) busy(ctx context.Context, tx *store.Tx, row squad.Sandbox) bool {
	if row.ExecutionID == "" {
		return false
	}
	e, err := tx.Execution(ctx, row.ExecutionID)
	return err == nil && !e.Status.Final() || err != nil && squad.CodeOf(err) != squad.CodeNotFound
}

// owner is the row that the request asks for.
func (s *Service) owner(ctx context.Context, tx *store.Tx, p *provider, req AcquireRequest) (squad.Sandbox, error) {
	row := squad.Sandbox{
		ID: squad.NewID(), Provider: p.name, Node: p.Node, Template: req.Template, Status: squad.SandboxCreated,
		SquadID: req.SquadID, AgentID: req.MemberID, TaskID: req.TaskID, ExecutionID: req.ExecutionID, Epoch: req.Epoch,
		CPU: p.CPU, MemoryMB: p.MemoryMB,
	}
	if req.RepositoryID != "" {
		repo, err := tx.Repository(ctx, req.RepositoryID)
		if err != nil {
			return row, err
		}
		row.RepoURL = repo.URL
	}
	return row, nil
}

// claim takes a waiting sandbox, where one fits.
func (s *Service) claim(ctx context.Context, tx *store.Tx, p *provider, req AcquireRequest, owner squad.Sandbox) (squad.Sandbox, bool, error) {
	if !s.pools.fits(p, req) {
		return squad.Sandbox{}, false, nil
	}
	key := store.PoolKey{Provider: p.name, Template: req.Template, RepoURL: req.PoolKey, Node: p.Node}
	row, found, err := tx.ClaimPooledSandbox(ctx, key, owner)
	if err != nil || !found {
		return row, false, err
	}
	if err := s.assign(ctx, tx, row); err != nil {
		return row, false, err
	}
	if err := s.announce(ctx, tx, squad.EventSandboxCreated, row); err != nil {
		return row, false, err
	}
	return row, true, s.audit(ctx, tx, req.Actor, "sandbox.create", row.ID, map[string]any{"source": fromPool})
}

// room refuses when our own limit is reached. Waiting ones of the pool count:
// they exist.
func (s *Service) room(ctx context.Context, tx *store.Tx, p *provider) error {
	if p.Max <= 0 {
		return nil
	}
	if err := tx.Lock(ctx, "sandbox-room/"+p.name+"/"+p.Node); err != nil {
		return err
	}
	n, err := tx.CountSandboxes(ctx, store.SandboxFilter{Provider: p.name, Node: p.Node, Statuses: alive})
	if err != nil {
		return err
	}
	if n >= p.Max {
		e := squad.Errorf(squad.CodeQuota, "all %d sandboxes of provider %s are in use", p.Max, p.name)
		e.RetryAfter = quotaWait
		return e
	}
	return nil
}

// begin writes the row of a sandbox that is about to be made. Its event comes
// when it is made.
func (s *Service) begin(ctx context.Context, tx *store.Tx, row *squad.Sandbox, actor squad.Actor) error {
	if err := tx.CreateSandbox(ctx, row); err != nil {
		return err
	}
	if err := s.assign(ctx, tx, *row); err != nil {
		return err
	}
	return s.audit(ctx, tx, actor, "sandbox.create", row.ID, map[string]any{"provider": row.Provider, "template": row.Template})
}

// assign tells member where it works.
func (s *Service) assign(ctx context.Context, tx *store.Tx, row squad.Sandbox) error {
	if row.AgentID == "" {
		return nil
	}
	return tx.SetMemberSandbox(ctx, row.AgentID, row.ID)
}

var alive = []squad.SandboxStatus{squad.SandboxCreated, squad.SandboxRunning, squad.SandboxPaused}
