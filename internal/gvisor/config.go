package gvisor

import (
	"log/slog"
	"net"
	"runtime"
	"time"

	"agentsquad/internal/tunnel"
)

// Overlay says where a sandbox keeps what it writes.
type Overlay string

// Kinds of overlay. Disk is the default: writes go to an unlinked file under
// the sandbox's folder and do not count as memory.
const (
	OverlayDisk   Overlay = "disk"
	OverlayMemory Overlay = "memory"
)

// Config is what a [Runtime] needs. Only Dir is required.
type Config struct {
	// Dir is the data folder: sandboxes/, templates/ and bin/ are made in it.
	Dir string
	// Envd is the daemon's program as bytes (it is written to Dir/bin), or
	// EnvdPath its path on the host. With neither, this program itself is used
	// and called as "envd"; that works, and starts slower.
	Envd     []byte
	EnvdPath string
	// Sudo is the program that is sudo inside; nil means the daemon's, which is
	// one when called by that name.
	Sudo []byte
	// Runsc is a program that is gVisor only (command internal/gvisor/runsc), gzipped;
	// nil means the one that `make build` put in, or else this program itself.
	Runsc []byte
	// Accept is given each stream that a sandbox opens towards the host. It
	// owns the connection. Nil refuses all.
	Accept func(sandboxID string, h tunnel.Header, c net.Conn)
	// OnChange is told of each change of a sandbox's status that nobody asked
	// for: a sandbox that died or was lost. It must not block.
	OnChange func(Info)
	// Rootless forces user namespaces; nil decides by the effective user.
	Rootless *bool
	// Overlay is where writes go; empty means OverlayDisk.
	Overlay Overlay
	// ParallelStarts bounds how many sandboxes start at the same time; 0 means
	// twice the processors.
	ParallelStarts int
	// Crowd is how many running sandboxes are a crowd, see [Runtime.crowded]; 0 means
	// eight for each processor.
	Crowd int
	// StartTimeout bounds one create or resume; 0 means 60 s.
	StartTimeout time.Duration
	// Defaults fill the zero fields of a Spec's limits.
	Defaults Limits
	// Registry says how OCI images are fetched.
	Registry Registry
	// HostDirs are further host folders that the base template shows, for
	// toolchains outside /usr, at the same path, copy-on-write.
	HostDirs []string
	// CgroupParent is the name under which cgroups are made; empty means "squad".
	CgroupParent string
	// Log receives notes; nil discards them.
	Log *slog.Logger
}

// Limits of one sandbox. Zero means the runtime's default; there is always one.
type Limits struct {
	CPU      float64 `json:"cpu"`       // processors
	MemoryMB int64   `json:"memory_mb"` // everything the sandbox holds in memory
	DiskMB   int64   `json:"disk_mb"`   // what it may write
	MaxProcs int     `json:"max_procs"` // processes and threads inside
}

func (l Limits) or(d Limits) Limits {
	if l.CPU == 0 {
		l.CPU = d.CPU
	}
	if l.MemoryMB == 0 {
		l.MemoryMB = d.MemoryMB
	}
	if l.DiskMB == 0 {
		l.DiskMB = d.DiskMB
	}
	if l.MaxProcs == 0 {
		l.MaxProcs = d.MaxProcs
	}
	return l
}

func (c Config) withDefaults() Config {
	if c.Overlay == "" {
		c.Overlay = OverlayDisk
	}
	if c.ParallelStarts <= 0 {
		c.ParallelStarts = 2 * runtime.NumCPU()
	}
	if c.Crowd <= 0 {
		c.Crowd = 8 * runtime.NumCPU()
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = time.Minute
	}
	c.Defaults = c.Defaults.or(Limits{CPU: 2, MemoryMB: 2048, DiskMB: 10240, MaxProcs: 2048})
	if c.CgroupParent == "" {
		c.CgroupParent = "squad"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
