package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/e2bserver"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/tunnel"
)

// localHost is the runtime of this machine with the E2B-compatible server in
// front of it.
type localHost struct {
	runtime *gvisor.Runtime
	server  *e2bserver.Server
	key     string // opens it for this process; made anew at each start
	// why says what keeps sandboxes from running here.
	why error
}

// buildLocal makes the local runtime. A machine that cannot have one still
// serves everything else; the doctor says why.
func (a *App) buildLocal(context.Context) error {
	l := &a.rooms.local
	if a.cfg.Provider == "e2b" {
		return nil
	}
	if len(a.cfg.InternalURL) > 0 {
		a.rooms.away = newAway(a.cfg.InternalURL, a.log)
	}
	key := make([]byte, 20)
	_, _ = rand.Read(key) // never fails: crypto/rand aborts the program instead
	l.key = "e2b_" + hex.EncodeToString(key)

	var accept atomic.Pointer[e2bserver.Server]
	l.runtime, l.why = gvisor.New(gvisor.Config{
		Dir: a.folder.dir, Log: a.log, Envd: gvisor.EmbeddedEnvd(), Sudo: gvisor.EmbeddedEnvd(),
		Defaults: gvisor.Limits{CPU: a.cfg.SandboxCPU, MemoryMB: a.cfg.SandboxMemoryMB, DiskMB: a.cfg.SandboxDiskMB},
		Accept: func(id string, h tunnel.Header, c net.Conn) {
			if s := accept.Load(); s != nil {
				s.Accept(id, h, c)
				return
			}
			_ = c.Close()
		},
	})
	if l.why != nil {
		a.log.Warn("local sandboxes cannot run; `squad doctor` says what to do", "error", l.why)
		l.runtime = nil
		return nil
	}
	a.onStop("runtime", l.runtime.Close)
	server, err := e2bserver.New(e2bserver.Config{
		Runtime: l.runtime, Dir: a.folder.path("e2b"), Domain: a.e2bDomain(), PublicURL: a.cfg.PublicURL,
		Keys: a.keyOwner, Internal: a.internal, Egress: a.egress,
		MaxRunning: a.cfg.MaxSandboxes, MaxLifetime: a.cfg.SandboxLifetime,
		CPU: int(max(1, a.cfg.SandboxCPU)), MemoryMB: a.cfg.SandboxMemoryMB, DiskMB: a.cfg.SandboxDiskMB, Log: a.log,
	})
	if err != nil {
		return err
	}
	l.server = server
	accept.Store(server)
	a.rooms.ports.Claimed, a.rooms.ports.Templates = server, server
	return nil
}

// e2bDomain is the domain of host names of ports: the one that was set, else the
// host of the public address, else localhost, under which every name leads to
// this machine.
func (a *App) e2bDomain() string {
	if a.cfg.Domain != "" {
		return a.cfg.Domain
	}
	if u, err := url.Parse(a.cfg.PublicURL); err == nil && u.Host != "" && net.ParseIP(u.Hostname()) == nil {
		return u.Host
	}
	_, port, err := net.SplitHostPort(a.listener.Addr().String())
	if err != nil {
		return "localhost"
	}
	return "localhost:" + port
}

// keyOwner tells whose an E2B key is: this process's own, or a user's.
func (a *App) keyOwner(ctx context.Context, key string) (string, bool) {
	if own := a.rooms.local.key; subtle.ConstantTimeCompare([]byte(key), []byte(own)) == 1 {
		return e2bserver.OwnerSquad, true
	}
	return a.api.KeyOwner(ctx, key)
}

// internal serves http://squad.internal/ of a sandbox: our gateway for ours, and for
// those that other installations rent here theirs, where the settings name it.
func (a *App) internal(sandboxID string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.rooms.away != nil {
			_, err := a.store.SandboxByE2BID(r.Context(), sandboxID)
			if squad.CodeOf(err) == squad.CodeNotFound {
				a.rooms.away.ServeHTTP(w, r)
				return
			}
		}
		a.rooms.gateway.For(sandboxID).ServeHTTP(w, r)
	})
}

// egress decides what a sandbox may reach outside.
func (a *App) egress(sandboxID, host string, port int) (allow bool, rule string) {
	if g := a.rooms.gateway; g != nil {
		return g.Allow(sandboxID, host, port)
	}
	return false, "no gateway"
}

// buildSandboxes makes the sandbox service over the local runtime and E2B.
func (a *App) buildSandboxes(ctx context.Context) error {
	providers := map[string]sandbox.Provider{}
	if a.rooms.local.server != nil {
		c, err := e2b.New(e2b.Config{
			APIKey: a.rooms.local.key, Domain: a.e2bDomain(), APIURL: a.url, SandboxURL: a.url, UserAgent: "squad/" + Version,
		})
		if err != nil {
			return err
		}
		providers["local"] = sandbox.Provider{
			Client: c, Node: a.cfg.Node, Own: true, Mounts: true, Max: a.cfg.MaxSandboxes, PauseAtEnd: true,
			CPU: a.cfg.SandboxCPU, MemoryMB: a.cfg.SandboxMemoryMB,
		}
	}
	if a.cfg.E2BAPIKey != "" {
		c, err := e2b.New(e2b.Config{
			APIKey: a.cfg.E2BAPIKey, Domain: a.cfg.E2BDomain, APIURL: a.cfg.E2BAPIURL, SandboxURL: a.cfg.E2BSandboxURL, UserAgent: "squad/" + Version,
		})
		if err != nil {
			return err
		}
		providers["e2b"] = sandbox.Provider{
			Client: c, Template: a.cfg.E2BTemplateID, Lifetime: a.cfg.E2BTimeout,
			PerVCPUSecond: sandbox.E2BPerVCPUSecond, PerGiBSecond: sandbox.E2BPerGiBSecond,
		}
	}
	if len(providers) == 0 {
		return nil
	}
	name := a.cfg.SandboxProvider()
	if _, ok := providers[name]; !ok {
		for name = range providers {
			break
		}
	}
	s, err := sandbox.New(ctx, sandbox.Config{
		Store: a.store, Providers: providers, Default: name, Owner: a.cfg.Node + "/" + a.rooms.owner,
		Pools:  []sandbox.Pool{{Provider: name, Min: a.cfg.PoolMin, Max: a.cfg.PoolMax}},
		MaxAge: a.cfg.SandboxLifetime, CommandTimeout: a.cfg.CommandTimeout, Retention: a.cfg.Retention,
		Metrics: a.registry, Log: a.log, OnLost: a.onLost, Nodes: a.otherNodes(),
	})
	if err != nil {
		return err
	}
	a.rooms.sandboxes = s
	a.rooms.ports.Sandboxes = s
	return nil
}
