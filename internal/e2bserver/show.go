package e2bserver

import (
	"net/http"
)

// clientID is a field of old; SDKs want it to be there.
const clientID = "squad"

// opened is how create, connect, resume and fork show a sandbox.
func (s *Server) opened(b *box) opened {
	rec := b.view()
	o := opened{
		TemplateID: rec.Template, SandboxID: rec.ID, ClientID: clientID, Alias: rec.Alias,
		EnvdVersion: envdVersion, EnvdAccessToken: s.seed.envd(rec.ID), Domain: s.domain(),
	}
	if !rec.Network.public() {
		token := s.seed.traffic(rec.ID)
		o.TrafficAccessToken = &token
	}
	return o
}

func (s *Server) domain() *string {
	if s.cfg.Domain == "" {
		return nil
	}
	return &s.cfg.Domain
}

func (rec *record) listed() listed {
	return listed{
		TemplateID: rec.Template, Alias: rec.Alias, SandboxID: rec.ID, ClientID: clientID,
		StartedAt: rec.StartedAt, EndAt: rec.EndAt, CPUCount: rec.CPU, MemoryMB: rec.MemoryMB, DiskSizeMB: rec.DiskMB,
		Metadata: rec.Metadata, State: rec.State, EnvdVersion: envdVersion,
	}
}

// get handles GET /sandboxes/{id}.
func (s *Server) get(w http.ResponseWriter, r *http.Request, owner string) error {
	b, err := s.own(owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	rec := b.view()
	onTimeout := "kill"
	if rec.AutoPause {
		onTimeout = "pause"
	}
	net := rec.Network
	writeJSON(w, http.StatusOK, detailed{
		listed: rec.listed(), EnvdAccessToken: s.seed.envd(rec.ID), AllowInternet: rec.AllowInternet,
		Domain: s.domain(), Network: &net, Lifecycle: lifecycle{AutoResume: rec.AutoResume, OnTimeout: onTimeout},
	})
	return nil
}
