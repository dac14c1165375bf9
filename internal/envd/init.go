package envd

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// initRequest is the body of /init. Fields of E2B that mean nothing here (clock,
// volumes, hyperloop) are accepted and ignored.
type initRequest struct {
	EnvVars        map[string]string `json:"envVars"`
	AccessToken    string            `json:"accessToken"`
	DefaultUser    string            `json:"defaultUser"`
	DefaultWorkdir string            `json:"defaultWorkdir"`
	SandboxID      string            `json:"sandboxID"`  // ours: becomes E2B_SANDBOX_ID
	TemplateID     string            `json:"templateID"` // ours: becomes E2B_TEMPLATE_ID
}

// serveInit sets what the host knows about this sandbox. Once a token is set,
// only who knows it, or the host itself, may change anything.
func (s *Server) serveInit(w http.ResponseWriter, r *http.Request) {
	var req initRequest
	body := http.MaxBytesReader(w, r.Body, 1<<20)
	if err := json.NewDecoder(body).Decode(&req); err != nil && !errors.Is(err, io.EOF) {
		fail(w, http.StatusBadRequest, "the body is not valid JSON: "+err.Error())
		return
	}
	if token := s.state.accessToken(); token != "" && !isTrusted(r.Context()) && !same(req.AccessToken, token) {
		fail(w, http.StatusUnauthorized, "access token does not match")
		return
	}
	if _, err := environ(req.EnvVars); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if req.DefaultUser != "" {
		if _, err := s.accounts.lookup(req.DefaultUser); err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	s.state.apply(req)
	if s.config.Reap { // only inside a sandbox is /run ours
		s.writeMarks()
	}
	w.Header().Set("X-Envd-Version", Version)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

func (s *state) apply(req initRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = req.AccessToken
	if req.EnvVars != nil {
		s.vars = req.EnvVars
	}
	if req.DefaultUser != "" {
		s.user = req.DefaultUser
	}
	if req.DefaultWorkdir != "" {
		s.workdir = req.DefaultWorkdir
	}
	if req.SandboxID != "" {
		s.sandbox = req.SandboxID
	}
	if req.TemplateID != "" {
		s.template = req.TemplateID
	}
}

// writeMarks leaves the files by which programs recognise an E2B sandbox.
// Best effort: nothing of ours reads them.
func (s *Server) writeMarks() {
	dir := "/run/e2b"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.log.Warn("cannot write sandbox marks", "error", err)
		return
	}
	env := s.state.environment()
	for _, name := range []string{"E2B_SANDBOX", "E2B_SANDBOX_ID", "E2B_TEMPLATE_ID"} {
		if env[name] != "" {
			_ = os.WriteFile(filepath.Join(dir, "."+name), []byte(env[name]), 0o644)
		}
	}
}

// serveEnvs answers with the variables all commands get.
func (s *Server) serveEnvs(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.state.environment())
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a caller that left
}
