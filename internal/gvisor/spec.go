package gvisor

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"agentsquad"
)

// Mount adds a part of the host to a sandbox. Writes to it are copy-on-write
// and never reach the host.
type Mount struct {
	// Image is an EROFS file made by [WriteImage], or Dir a host folder; one of
	// the two. Absolute.
	Image string `json:"image,omitempty"`
	Dir   string `json:"dir,omitempty"`
	// Path is where it appears inside: absolute, clean, not /.
	Path string `json:"path"`
	// ReadOnly refuses writes inside altogether.
	ReadOnly bool `json:"read_only,omitempty"`
}

// Spec asks for a sandbox.
type Spec struct {
	// ID names it: 1 to 64 of a-z 0-9 and -. Empty makes one.
	ID string `json:"id"`
	// Template is the name of a template or of a snapshot; empty means base.
	Template string `json:"template"`
	Limits
	Mounts   []Mount `json:"mounts,omitempty"`
	Hostname string  `json:"hostname,omitempty"`
	// Labels are kept beside the sandbox and given back, nothing more.
	Labels map[string]string `json:"labels,omitempty"`
}

// Info is what is known of a sandbox: plain data, the same as on disk.
type Info struct {
	Spec
	Status    squad.SandboxStatus `json:"status"`
	Error     string              `json:"error,omitempty"`
	CreatedAt time.Time           `json:"created_at"`
	StartedAt time.Time           `json:"started_at,omitzero"` // of the last start or resume
	PausedAt  time.Time           `json:"paused_at,omitzero"`
	EndedAt   time.Time           `json:"ended_at,omitzero"`
	// KeptMemory says whether the pause kept the processes.
	KeptMemory bool `json:"kept_memory,omitempty"`
	// Warnings name limits that this machine cannot enforce.
	Warnings []string `json:"warnings,omitempty"`
}

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// validate refuses what cannot become a sandbox; d are the runtime's defaults.
func (s *Spec) validate() error {
	if !idPattern.MatchString(s.ID) {
		return squad.Invalid("id", "sandbox id %q must be 1 to 64 of a-z, 0-9 and -", s.ID)
	}
	if len(s.Hostname) > 63 || strings.ContainsAny(s.Hostname, "/\x00\n ") {
		return squad.Invalid("hostname", "hostname %q is not one", s.Hostname)
	}
	if s.CPU < 0 || s.CPU > 1024 || s.MemoryMB < 0 || s.DiskMB < 0 || s.MaxProcs < 0 {
		return squad.Invalid("limits", "limits must not be negative")
	}
	if s.MemoryMB < 64 {
		return squad.Invalid("memory_mb", "a sandbox needs at least 64 MB of memory, not %d", s.MemoryMB)
	}
	seen := map[string]bool{}
	for _, m := range s.Mounts {
		if err := m.validate(); err != nil {
			return err
		}
		if seen[m.Path] {
			return squad.Invalid("mounts", "two mounts at %s", m.Path)
		}
		seen[m.Path] = true
	}
	return nil
}

// reservedPaths are the runtime's own mounts.
var reservedPaths = []string{"/proc", "/sys", "/dev", insideShown, insideEnvd}

func (m Mount) validate() error {
	if (m.Image == "") == (m.Dir == "") {
		return squad.Invalid("mounts", "mount %s needs an image or a folder, one of the two", m.Path)
	}
	if src := m.Image + m.Dir; !filepath.IsAbs(src) || filepath.Clean(src) != src {
		return squad.Invalid("mounts", "mount source %q is not an absolute, clean path", src)
	}
	if !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path || m.Path == "/" || strings.ContainsAny(m.Path, "\x00\n,") {
		return squad.Invalid("mounts", "mount path %q is not an absolute, clean path inside", m.Path)
	}
	for _, r := range reservedPaths {
		if m.Path == r || strings.HasPrefix(m.Path, r+"/") {
			return squad.Invalid("mounts", "mount path %s is the runtime's own", m.Path)
		}
	}
	return nil
}
