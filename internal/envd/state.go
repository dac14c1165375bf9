package envd

import (
	"maps"
	"sync"
)

// state is what /init sets and everything else reads.
type state struct {
	mu       sync.RWMutex
	token    string
	user     string
	workdir  string
	vars     map[string]string // of the user; replaced by each /init
	sandbox  string
	template string
}

func (s *state) accessToken() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.token
}

func (s *state) defaults() (user, workdir string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.user, s.workdir
}

// environment returns the variables that all commands get, a copy.
func (s *state) environment() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	env := map[string]string{"E2B_SANDBOX": "true"}
	if s.sandbox != "" {
		env["E2B_SANDBOX_ID"] = s.sandbox
	}
	if s.template != "" {
		env["E2B_TEMPLATE_ID"] = s.template
	}
	maps.Copy(env, s.vars)
	return env
}
