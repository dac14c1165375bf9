package e2bserver

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	squad "agentsquad"
	"agentsquad/internal/gvisor"
	"agentsquad/internal/tunnel"
)

// Local makes a [Host] of the gVisor runtime.
func Local(rt *gvisor.Runtime) Host { return localHost{rt} }

type localHost struct{ rt *gvisor.Runtime }

// Create implements [Host].
func (h localHost) Create(ctx context.Context, spec MachineSpec) (Machine, error) {
	mounts := make([]gvisor.Mount, 0, len(spec.Mounts))
	for _, m := range spec.Mounts {
		mounts = append(mounts, gvisor.Mount(m))
	}
	sb, err := h.rt.Create(ctx, gvisor.Spec{
		ID: spec.ID, Template: spec.Template, Mounts: mounts, Hostname: "e2b.local",
		Limits: gvisor.Limits{CPU: spec.CPU, MemoryMB: spec.MemoryMB, DiskMB: spec.DiskMB},
	})
	if err != nil {
		return nil, err
	}
	return localMachine{sb}, nil
}

// Recover implements [Host].
func (h localHost) Recover(ctx context.Context) (map[string]Machine, error) {
	if _, err := h.rt.Recover(ctx); err != nil {
		return nil, err
	}
	all := map[string]Machine{}
	for _, sb := range h.rt.List() {
		all[sb.ID()] = localMachine{sb}
	}
	return all, nil
}

// Templates implements [Host].
func (h localHost) Templates() ([]string, error) {
	all, err := h.rt.Templates()
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(all))
	for _, t := range all {
		names = append(names, t.Name)
	}
	return names, nil
}

// ImportFolder implements [Host].
func (h localHost) ImportFolder(ctx context.Context, archive io.Reader, at, name string) (int64, error) {
	t, err := h.rt.ImportFolder(ctx, archive, at, name)
	return t.SizeBytes, err
}

// RemoveTemplate implements [Host].
func (h localHost) RemoveTemplate(_ context.Context, name string) error {
	err := h.rt.DeleteTemplate(name)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil
	}
	return err
}

// localMachine is a sandbox of the gVisor runtime.
type localMachine struct{ sb *gvisor.Sandbox }

// Open implements [Machine].
func (m localMachine) Open(ctx context.Context, h tunnel.Header) (net.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, tunnelWait)
	defer cancel()
	for {
		session, err := m.sb.Tunnel(waiting)
		if err != nil {
			return nil, err
		}
		conn, err := session.Open(ctx, h)
		if !errors.Is(err, tunnel.ErrClosed) {
			return conn, err
		}
		select { // nothing was sent: the next one will do
		case <-session.Done():
		case <-waiting.Done():
			return nil, err
		}
	}
}

// tunnelWait bounds how long a request waits for a sandbox whose daemon is away,
// as it is for a moment while a sandbox is saved.
const tunnelWait = 30 * time.Second

// Pause implements [Machine].
func (m localMachine) Pause(ctx context.Context, keepMemory bool) error {
	return m.sb.Pause(ctx, keepMemory)
}

// Resume implements [Machine]. To drop the processes of a sandbox that was
// paused with them it is woken and stored once more without.
func (m localMachine) Resume(ctx context.Context, fresh bool) error {
	kept := m.sb.Info().KeptMemory
	if err := m.sb.Resume(ctx); err != nil || !fresh || !kept {
		return err
	}
	if err := m.sb.Pause(ctx, false); err != nil {
		return errors.Join(err, m.sb.Pause(ctx, true))
	}
	return m.sb.Resume(ctx)
}

// Snapshot implements [Machine].
func (m localMachine) Snapshot(ctx context.Context, name string) error {
	_, err := m.sb.Snapshot(ctx, name)
	return err
}

// Fork implements [Machine].
func (m localMachine) Fork(ctx context.Context, ids []string) ([]Machine, []error) {
	boxes, errs := m.sb.ForkAll(ctx, ids)
	machines := make([]Machine, len(boxes))
	for i, sb := range boxes {
		if errs[i] == nil {
			machines[i] = localMachine{sb}
		}
	}
	return machines, errs
}

// Lend implements [Machine].
func (m localMachine) Lend(ctx context.Context, name, dir string) (string, error) {
	return gvisor.Lent + "/" + name, m.sb.Lend(ctx, name, dir)
}

// Kill implements [Machine].
func (m localMachine) Kill(ctx context.Context) error {
	err := m.sb.Kill(ctx)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil
	}
	return err
}

// Usage implements [Machine].
func (m localMachine) Usage(ctx context.Context) (Usage, error) {
	st, err := m.sb.Stats(ctx)
	if err != nil {
		return Usage{}, err
	}
	return Usage{At: st.At, CPUTime: st.CPU, Memory: st.MemoryBytes, Cache: st.CacheBytes, DiskUsed: st.DiskBytes}, nil
}

// Paused implements [Machine].
func (m localMachine) Paused() bool { return m.sb.Info().Status == squad.SandboxPaused }

// Done implements [Machine].
func (m localMachine) Done() <-chan struct{} { return m.sb.Done() }
