package e2bserver

import (
	"context"
	"io"
	"net"
	"time"

	"agentsquad/internal/tunnel"
)

// Host makes sandboxes. [Local] adapts the gVisor runtime to it; tests of races
// put a double here.
type Host interface {
	// Create starts a sandbox from a template and returns once it was started;
	// its tunnel may still be on the way.
	Create(ctx context.Context, spec MachineSpec) (Machine, error)
	// Recover re-attaches what an earlier process left, and returns all sandboxes
	// that are alive or paused by identifier.
	Recover(ctx context.Context) (map[string]Machine, error)
	// Templates returns the names of all templates and snapshots.
	Templates() ([]string, error)
	// ImportImage makes a template from an OCI image and returns its name, which
	// follows from the content, and what the image says about its processes.
	ImportImage(ctx context.Context, source ImageSource) (name string, env map[string]string, err error)
	// ImportFolder makes a template called name of base and a folder at the path
	// at with the entries of a tar archive, and returns its size.
	ImportFolder(ctx context.Context, archive io.Reader, at, name string) (int64, error)
	// RemoveTemplate forgets a template or snapshot. Unknown names are no error.
	RemoveTemplate(ctx context.Context, name string) error
}

// Machine is one sandbox of a [Host]. Its methods may be called at any time;
// the server calls those that change its state one at a time.
type Machine interface {
	// Open opens a stream to envd or to a TCP port inside, waiting for the tunnel
	// as long as ctx allows. A port on which nothing listens is a
	// [*tunnel.Refusal].
	Open(ctx context.Context, h tunnel.Header) (net.Conn, error)
	Pause(ctx context.Context, keepMemory bool) error
	// Resume starts a paused sandbox again, with its processes or, if fresh, from
	// its files alone.
	Resume(ctx context.Context, fresh bool) error
	// Snapshot stores memory and files under a name that Create takes as a
	// template, and leaves the sandbox running.
	Snapshot(ctx context.Context, name string) error
	// Fork makes a running sandbox for each name, as this one is now. Both results
	// are as long as ids; where the error is nil the machine is not.
	Fork(ctx context.Context, ids []string) ([]Machine, []error)
	// Kill ends the sandbox and removes all it had. A second call is no error.
	Kill(ctx context.Context) error
	Usage(ctx context.Context) (Usage, error)
	// Lend shows the files of a host folder inside, read-only, at a path that
	// follows from the name.
	Lend(ctx context.Context, name, dir string) (path string, err error)
	// Paused says whether it is stored rather than running.
	Paused() bool
	// Done is closed when a running sandbox ended on its own.
	Done() <-chan struct{}
}

// MachineSpec is what a new sandbox is made of.
type MachineSpec struct {
	ID       string
	Template string
	CPU      float64
	MemoryMB int64
	DiskMB   int64
	Mounts   []Mount
}

// Mount puts a read-only EROFS image of the host into a sandbox, with a
// copy-on-write layer over it.
type Mount struct {
	Image string `json:"image,omitempty"`
	// Dir is a host folder in place of an image.
	Dir      string `json:"dir,omitempty"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// ImageSource names an OCI image and how to sign in to its registry.
type ImageSource struct {
	Reference string
	Username  string
	Password  string
	// Dial makes the connections to the registry.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Usage is what a sandbox uses at one moment.
type Usage struct {
	At       time.Time
	CPUTime  time.Duration // since start, all processors together
	Memory   int64         // bytes
	Cache    int64
	DiskUsed int64
}
