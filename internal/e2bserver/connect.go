package e2bserver

import (
	"context"
	"net/http"
	"time"

	squad "agentsquad"
)

// waitTimeout bounds how long a request waits for another change of the same
// sandbox.
const waitTimeout = 45 * time.Second

// withBox runs do on a sandbox of the owner while nothing else changes it.
func (s *Server) withBox(r *http.Request, owner string, do func(ctx context.Context, b *box) error) error {
	b, err := s.own(owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitTimeout)
	defer cancel()
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	return do(r.Context(), b)
}

type connectBody struct {
	Timeout *int64 `json:"timeout"`
	Memory  *bool  `json:"memory"`
}

// connect handles the old and the new path: a running sandbox gets more time and
// never less, a paused one is resumed.
func (s *Server) connect(timeoutRequired bool) handler {
	return func(w http.ResponseWriter, r *http.Request, owner string) error {
		var body connectBody
		if err := decode(w, r, &body, !timeoutRequired); err != nil {
			return err
		}
		if timeoutRequired && body.Timeout == nil {
			return squad.Invalid("timeout", "timeout is required")
		}
		timeout, err := s.lifetime(body.Timeout, newTimeout)
		if err != nil {
			return err
		}
		return s.withBox(r, owner, func(ctx context.Context, b *box) error {
			status := http.StatusOK
			if b.view().State == running {
				err = s.extendLocked(b, timeout, false)
			} else {
				status = http.StatusCreated
				err = s.resumeLocked(ctx, b, timeout, body.Memory != nil && !*body.Memory)
			}
			if err != nil {
				return err
			}
			writeJSON(w, status, s.opened(b))
			return nil
		})
	}
}

// resume handles POST /sandboxes/{id}/resume, the old way to connect.
func (s *Server) resume(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		connectBody
		AutoPause *bool `json:"autoPause"`
	}
	if err := decode(w, r, &body, true); err != nil {
		return err
	}
	timeout, err := s.lifetime(body.Timeout, oldTimeout)
	if err != nil {
		return err
	}
	return s.withBox(r, owner, func(ctx context.Context, b *box) error {
		if b.view().State == running {
			return squad.Errorf(squad.CodeConflict, "Sandbox %q is already running", b.id)
		}
		if body.AutoPause != nil {
			b.change(func(rec *record) { rec.AutoPause = *body.AutoPause })
		}
		if err := s.resumeLocked(ctx, b, timeout, body.Memory != nil && !*body.Memory); err != nil {
			return err
		}
		writeJSON(w, http.StatusCreated, s.opened(b))
		return nil
	})
}

// pause handles POST /sandboxes/{id}/pause.
func (s *Server) pause(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		Memory *bool `json:"memory"`
	}
	if err := decode(w, r, &body, true); err != nil {
		return err
	}
	return s.withBox(r, owner, func(ctx context.Context, b *box) error {
		if err := s.pauseLocked(ctx, b, body.Memory == nil || *body.Memory); err != nil {
			return err
		}
		return noContent(w)
	})
}

// delete handles DELETE /sandboxes/{id}.
func (s *Server) delete(w http.ResponseWriter, r *http.Request, owner string) error {
	b, err := s.own(owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.kill(r.Context(), b, "asked for"); err != nil {
		return err
	}
	return noContent(w)
}

// setTimeout handles POST /sandboxes/{id}/timeout: so long from now, shorter or
// longer than before.
func (s *Server) setTimeout(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		Timeout *int64 `json:"timeout"`
	}
	if err := decode(w, r, &body, false); err != nil {
		return err
	}
	switch limit := int64(s.cfg.MaxLifetime / time.Second); {
	case body.Timeout == nil:
		return squad.Invalid("timeout", "timeout is required")
	case *body.Timeout < 0:
		return squad.Invalid("timeout", "Timeout must not be negative")
	case *body.Timeout > limit:
		return squad.Invalid("timeout", "Timeout cannot be greater than %d hours", limit/3600)
	}
	return s.withRunning(w, r, owner, time.Duration(*body.Timeout)*time.Second, true)
}

// refresh handles POST /sandboxes/{id}/refreshes, which only ever extends.
func (s *Server) refresh(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		Duration int64 `json:"duration"`
	}
	if err := decode(w, r, &body, true); err != nil {
		return err
	}
	if body.Duration < 0 || body.Duration > 3600 {
		return squad.Invalid("duration", "duration must be from 0 to 3600 seconds")
	}
	return s.withRunning(w, r, owner, time.Duration(max(body.Duration, 15))*time.Second, false)
}

func (s *Server) withRunning(w http.ResponseWriter, r *http.Request, owner string, d time.Duration, mayShorten bool) error {
	return s.withBox(r, owner, func(_ context.Context, b *box) error {
		if b.view().State != running {
			return notFound(b.id)
		}
		if err := s.extendLocked(b, d, mayShorten); err != nil {
			return err
		}
		return noContent(w)
	})
}

// extendLocked moves the end of a running sandbox. The caller holds the lock.
func (s *Server) extendLocked(b *box, d time.Duration, mayShorten bool) error {
	now := s.cfg.Now().UTC()
	rec := b.view()
	end := now.Add(d)
	if !mayShorten && !end.After(rec.EndAt) {
		return nil
	}
	if last := rec.AwakeAt.Add(s.cfg.MaxLifetime); end.After(last) {
		if !last.After(now) {
			return squad.Errorf(squad.CodeInvalid, "Max instance length exceeded")
		}
		end = last
	}
	rec = b.change(func(r *record) {
		r.EndAt = end
		if mayShorten {
			r.Timeout = d
		}
	})
	s.deadlines.set(b.id, rec.EndAt)
	return save(s.boxDir(), b.id, rec)
}
