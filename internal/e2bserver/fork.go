package e2bserver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	squad "agentsquad"
)

// maxForks bounds one request.
const maxForks = 100

// fork handles POST /sandboxes/{id}/fork: so many sandboxes that are what this
// one is now, each with files and processes of its own.
func (s *Server) fork(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		Timeout *int64 `json:"timeout"`
		Count   *int   `json:"count"`
	}
	if err := decode(w, r, &body, true); err != nil {
		return err
	}
	timeout, err := s.lifetime(body.Timeout, oldTimeout)
	if err != nil {
		return err
	}
	count := 1
	if body.Count != nil {
		count = *body.Count
	}
	if count < 1 || count > maxForks {
		return squad.Invalid("count", "count must be from 1 to %d", maxForks)
	}
	return s.withBox(r, owner, func(ctx context.Context, b *box) error {
		if b.view().State != running {
			return squad.Errorf(squad.CodeConflict, "Sandbox %q is paused", b.id)
		}
		release, err := s.reserve(owner, count)
		if err != nil {
			return err
		}
		defer release()
		writeJSON(w, http.StatusCreated, s.forkLocked(ctx, b, timeout, count))
		return nil
	})
}

func (s *Server) forkLocked(ctx context.Context, parent *box, timeout time.Duration, count int) []forked {
	ctx, cancel := detach(ctx)
	defer cancel()
	ids := make([]string, count)
	for i := range ids {
		ids[i] = newSandboxID()
	}
	var machines []Machine
	var errs []error
	_ = s.interrupted(parent, func() error {
		machines, errs = parent.machine.Fork(ctx, ids)
		return nil
	})
	out := make([]forked, count)
	var wg sync.WaitGroup
	for i, id := range ids {
		if errs[i] != nil {
			s.log.ErrorContext(ctx, "fork failed", "sandbox_id", parent.id, "error", errs[i])
			body := bodyOf(errs[i])
			out[i].Error = &body
			continue
		}
		wg.Go(func() {
			b, err := s.settle(ctx, parent.view(), id, machines[i], timeout)
			if err != nil {
				s.log.ErrorContext(ctx, "fork not started", "sandbox_id", id, "error", err)
				body := bodyOf(err)
				out[i].Error = &body
				return
			}
			o := s.opened(b)
			out[i].Sandbox = &o
		})
	}
	wg.Wait()
	return out
}

// settle makes a sandbox of its own out of a forked machine.
func (s *Server) settle(ctx context.Context, rec record, id string, m Machine, timeout time.Duration) (*box, error) {
	rec.ID, rec.Timeout = id, timeout
	return s.welcome(ctx, newBox(rec, m), fmt.Sprintf("sandbox forked from another of template %s", rec.Template))
}
