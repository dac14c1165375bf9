package e2bserver

import (
	"context"
	"net/http"

	squad "agentsquad"
)

// lend handles POST /sandboxes/{id}/squad-lend, which is no part of E2B: a host folder
// appears read-only in a sandbox that runs already. Its answer says where.
func (s *Server) lend(w http.ResponseWriter, r *http.Request, owner string) error {
	if owner != OwnerSquad {
		return unknownPath(w, r, owner)
	}
	var body struct {
		Name string `json:"name"`
		Dir  string `json:"dir"`
	}
	if err := decode(w, r, &body, false); err != nil {
		return err
	}
	return s.withBox(r, owner, func(ctx context.Context, b *box) error {
		if b.view().State != running {
			return squad.Errorf(squad.CodeConflict, "Sandbox %q is paused", b.id)
		}
		path, err := b.machine.Lend(ctx, body.Name, body.Dir)
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, map[string]string{"path": path})
		return nil
	})
}
