package e2bserver

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"agentsquad/internal/gvisor"
)

// EgressPolicy decides on a connection of a sandbox in addition to the
// sandbox's own network settings. The rule is named to the sandbox on refusal.
type EgressPolicy func(sandboxID, host string, port int) (allow bool, rule string)

// OwnerSquad is the owner under which squad's own server asks for sandboxes; it
// alone may use the extensions squadMounts and squad-lend.
const OwnerSquad = "squad"

// Config says what a [Server] is made of.
type Config struct {
	// Runtime makes the sandboxes, or Host in its place. The runtime's Accept must
	// lead to [Server.Accept].
	Runtime *gvisor.Runtime
	Host    Host
	// Dir keeps the state of sandboxes, templates and builds across restarts.
	Dir string
	// Domain is put in answers so that SDKs can make host names of ports:
	// "<port>-<sandbox>.<Domain>". It may carry a port, as in "localhost:7700".
	Domain string
	// PublicURL is the base of upload addresses given to builders of templates;
	// empty means the address the request was sent to.
	PublicURL string
	// Keys tells whose an API key is.
	Keys func(ctx context.Context, key string) (owner string, ok bool)
	// Internal serves http://squad.internal/ of a sandbox; nil answers 404.
	Internal func(sandboxID string) http.Handler
	// Egress is asked for each connection that the own settings of a sandbox of
	// [OwnerSquad] allow. Sandboxes of other keys have E2B's rules: what they were
	// made with, public addresses only.
	Egress EgressPolicy
	// Resolve and Dial replace the host's DNS and network. The address given to
	// Dial was checked and is never a name.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)

	// PrivateRegistries are host:port names of image registries that builds may
	// use although they have private addresses.
	PrivateRegistries []string

	// MaxRunning bounds the running sandboxes of one owner. Defaults to 256.
	MaxRunning int
	// MaxLifetime bounds how long one may run from start or resume. Defaults to 24 h.
	MaxLifetime time.Duration
	// CPU, MemoryMB and DiskMB are the size of a sandbox whose template names
	// none. Default to 2, 2048 and 10240.
	CPU      int
	MemoryMB int64
	DiskMB   int64
	// MaxUpload bounds an uploaded layer of a template build. Defaults to 1 GiB.
	MaxUpload int64

	// Now replaces the clock in tests.
	Now func() time.Time
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Host == nil && c.Runtime != nil {
		c.Host = Local(c.Runtime)
	}
	if c.MaxRunning <= 0 {
		c.MaxRunning = 256
	}
	if c.MaxLifetime <= 0 {
		c.MaxLifetime = 24 * time.Hour
	}
	if c.CPU <= 0 {
		c.CPU = 2
	}
	if c.MemoryMB <= 0 {
		c.MemoryMB = 2048
	}
	if c.DiskMB <= 0 {
		c.DiskMB = 10240
	}
	if c.MaxUpload <= 0 {
		c.MaxUpload = 1 << 30
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	}
	return c
}
