package e2bserver

import (
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	squad "agentsquad"
)

// Lifetimes of a sandbox that asks for none, by the old and the new path.
const (
	oldTimeout = 15 * time.Second
	newTimeout = 300 * time.Second
)

// Bounds on what a sandbox carries.
const (
	maxPairs     = 256
	maxPairBytes = 64 << 10
	maxMounts    = 32
)

// create handles POST /sandboxes and /v2/sandboxes.
func (s *Server) create(defaultTimeout time.Duration) handler {
	return func(w http.ResponseWriter, r *http.Request, owner string) error {
		var body newSandbox
		if err := decode(w, r, &body, false); err != nil {
			return err
		}
		rec, err := s.recordOf(body, owner, defaultTimeout)
		if err != nil {
			return err
		}
		release, err := s.reserve(owner, 1)
		if err != nil {
			return err
		}
		defer release()
		b, err := s.start(r.Context(), rec)
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusCreated, s.opened(b))
		return nil
	}
}

// recordOf checks a request and turns it into the record of a new sandbox.
func (s *Server) recordOf(body newSandbox, owner string, defaultTimeout time.Duration) (record, error) {
	timeout, err := s.lifetime(body.Timeout, defaultTimeout)
	if err != nil {
		return record{}, err
	}
	if err := body.check(owner); err != nil {
		return record{}, err
	}
	t, err := s.library.resolve(owner, body.TemplateID)
	if err != nil {
		return record{}, err
	}
	rec := record{
		ID: newSandboxID(), Owner: owner, Template: t.ID, Alias: t.Alias, Image: t.Image, Base: t.Base,
		Metadata: body.Metadata, Env: merged(t.Env, body.EnvVars), Timeout: timeout,
		AutoPause: body.AutoPause, AutoPauseMemory: body.AutoPauseMemory == nil || *body.AutoPauseMemory,
		AutoResume:    body.AutoResume != nil && body.AutoResume.Enabled,
		AllowInternet: body.AllowInternet, Mounts: body.SquadMounts,
		CPU: s.cfg.CPU, MemoryMB: s.cfg.MemoryMB, DiskMB: s.cfg.DiskMB, Workdir: t.Workdir, User: t.User,
	}
	if body.Network != nil {
		rec.Network = *body.Network
	}
	if t.CPU > 0 {
		rec.CPU = t.CPU
	}
	if t.MemoryMB > 0 {
		rec.MemoryMB = t.MemoryMB
	}
	return rec, nil
}

// check refuses what is wrong in itself or not to be had here.
func (body newSandbox) check(owner string) error {
	switch {
	case body.TemplateID == "":
		return squad.Invalid("templateID", "templateID is required")
	case body.AutoPauseMemory != nil && !*body.AutoPauseMemory && !body.AutoPause:
		return squad.Invalid("autoPauseMemory", "autoPauseMemory needs autoPause")
	case body.AutoPauseMemory != nil && !*body.AutoPauseMemory && body.AutoResume != nil && body.AutoResume.Enabled:
		return squad.Invalid("autoPauseMemory", "autoPauseMemory=false cannot be combined with autoResume")
	case len(body.VolumeMounts) > 0:
		return squad.Invalid("volumeMounts", "This server does not support volumes")
	case len(body.IAM) > 0:
		return squad.Invalid("iam", "This server does not support iam tokens")
	case len(body.SquadMounts) > 0 && owner != OwnerSquad:
		return squad.Invalid("squadMounts", "squadMounts is not yours to use")
	}
	if err := checkPairs("metadata", body.Metadata); err != nil {
		return err
	}
	if err := checkPairs("envVars", body.EnvVars); err != nil {
		return err
	}
	for name := range body.EnvVars {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return squad.Invalid("envVars", "%q cannot be the name of an environment variable", name)
		}
	}
	if err := checkMounts(body.SquadMounts); err != nil {
		return err
	}
	if body.Network == nil {
		return nil
	}
	return body.Network.check()
}

func checkPairs(field string, pairs map[string]string) error {
	if len(pairs) > maxPairs {
		return squad.Invalid(field, "%s may have at most %d entries", field, maxPairs)
	}
	total := 0
	for k, v := range pairs {
		total += len(k) + len(v)
		if strings.ContainsRune(k+v, 0) || !utf8.ValidString(k+v) {
			return squad.Invalid(field, "%s may hold valid text only", field)
		}
	}
	if total > maxPairBytes {
		return squad.Invalid(field, "%s may have at most %d bytes", field, maxPairBytes)
	}
	return nil
}

func checkMounts(mounts []Mount) error {
	if len(mounts) > maxMounts {
		return squad.Invalid("squadMounts", "at most %d mounts", maxMounts)
	}
	for _, m := range mounts {
		source := m.Image + m.Dir // one of the two
		if m.Image != "" && m.Dir != "" || !path.IsAbs(source) || path.Clean(source) != source {
			return squad.Invalid("squadMounts", "image %q is not an absolute, clean path", source)
		}
		if !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path || m.Path == "/" {
			return squad.Invalid("squadMounts", "path %q is not an absolute, clean path", m.Path)
		}
	}
	return nil
}

// lifetime turns the seconds of a request into a time to live.
func (s *Server) lifetime(seconds *int64, fallback time.Duration) (time.Duration, error) {
	if seconds == nil {
		return min(fallback, s.cfg.MaxLifetime), nil
	}
	limit := int64(s.cfg.MaxLifetime / time.Second)
	switch {
	case *seconds <= 0:
		return 0, squad.Invalid("timeout", "Timeout must be greater than 0")
	case *seconds > limit:
		return 0, squad.Invalid("timeout", "Timeout cannot be greater than %d hours", limit/3600)
	}
	return time.Duration(*seconds) * time.Second, nil
}

func merged(a, b map[string]string) map[string]string {
	if len(a) == 0 {
		return b
	}
	out := make(map[string]string, len(a)+len(b))
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		out[k] = v
	}
	return out
}
