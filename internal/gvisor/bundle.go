package gvisor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"

	"agentsquad/internal/gvisor/words"
)

// Where the runtime's own parts appear inside a sandbox.
const (
	insideShown = "/run/squad"
	insideEnvd  = "/.squad"
)

// insideCaps are the capabilities of root inside. CAP_SYS_ADMIN and
// CAP_SYS_RESOURCE are not among them: they would lift the process limit.
var insideCaps = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID",
	"CAP_KILL", "CAP_MKNOD", "CAP_NET_BIND_SERVICE", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID",
	"CAP_SYS_CHROOT", "CAP_SYS_NICE", "CAP_SYS_PTRACE",
}

const insidePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// writeBundle writes the OCI bundle of a sandbox and the note for its boot.
func (s *Sandbox) writeBundle(rec record) error {
	spec := s.spec(rec)
	if err := writeJSON(filepath.Join(s.box.bundle(), "config.json"), spec); err != nil {
		return err
	}
	return writeBootNote(s.box.bundle(), rec.Limits)
}

func (s *Sandbox) spec(rec record) *specs.Spec {
	hostname := rec.Hostname
	if hostname == "" {
		hostname = rec.ID
	}
	spec := &specs.Spec{
		Version:  specs.Version,
		Hostname: hostname,
		Root:     &specs.Root{Path: "rootfs"},
		Process: &specs.Process{
			Args: []string{insideEnvd + "/envd"},
			Cwd:  "/",
			Env:  []string{"PATH=" + insidePath, "HOME=/root", "LANG=C.UTF-8"},
			Capabilities: &specs.LinuxCapabilities{
				Bounding: insideCaps, Effective: insideCaps, Permitted: insideCaps,
			},
			Rlimits: rlimits(rec.Limits),
		},
		Annotations: map[string]string{
			"dev.gvisor.spec.rootfs.source":  rec.Held.of(rec.Root.Image),
			"dev.gvisor.spec.rootfs.type":    "erofs",
			"dev.gvisor.spec.rootfs.overlay": s.rt.rootOverlay(s.box),
			"dev.gvisor.spec.rootfs.options": "size=" + strconv.FormatInt(rec.DiskMB, 10) + "M",
		},
		Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{
			{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
			{Type: specs.MountNamespace}, {Type: specs.NetworkNamespace},
		}},
	}
	spec.Mounts = s.mounts(rec)
	return spec
}

// rootOverlay is where writes to the root go.
func (r *Runtime) rootOverlay(box folder) string {
	if r.cfg.Overlay == OverlayMemory {
		return "memory"
	}
	return "dir=" + box.overlay()
}

func (s *Sandbox) mounts(rec record) []specs.Mount {
	shm := strconv.FormatInt(max(rec.MemoryMB/2, 16), 10)
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"ro", "nosuid", "noexec", "nodev"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts"},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "nodev", "mode=1777", "size=" + shm + "M"}},
	}
	for _, m := range append(append([]Mount{}, rec.Root.Binds...), rec.Mounts...) {
		m.Image = rec.Held.of(m.Image)
		all = append(all, m.oci())
	}
	return append(all,
		specs.Mount{Destination: insideShown, Type: "bind", Source: s.box.shown(), Options: []string{"bind", "ro", "nosuid", "nodev", "noexec"}},
		specs.Mount{Destination: insideEnvd, Type: "erofs", Source: rec.Held.of(rec.Envd), Options: []string{"ro"}},
	)
}

// oci returns the mount as gVisor takes it. "rw" is copy-on-write under the
// overlay.
func (m Mount) oci() specs.Mount {
	out := specs.Mount{Destination: m.Path, Options: []string{"rw"}}
	if m.ReadOnly {
		out.Options = []string{"ro"}
	}
	if m.Image != "" {
		out.Type, out.Source = "erofs", m.Image
		return out
	}
	out.Type, out.Source = "bind", m.Dir
	out.Options = append(out.Options, "bind", "nodev")
	return out
}

// rlimits of every process inside. There is none on memory: programs that reserve
// far more than they use (Bun, sanitizers) would not start, and the cgroup counts
// what is really used.
func rlimits(l Limits) []specs.POSIXRlimit {
	procs := uint64(l.MaxProcs)
	return []specs.POSIXRlimit{
		{Type: "RLIMIT_NOFILE", Soft: 65536, Hard: 1 << 20},
		{Type: "RLIMIT_NPROC", Soft: procs, Hard: procs},
		{Type: "RLIMIT_CORE", Soft: 0, Hard: 0},
	}
}

// writeBootNote says how large a machine the sandbox is shown.
func writeBootNote(bundle string, l Limits) error {
	cpus := min(max(int(l.CPU+0.999), 1), runtime.NumCPU())
	note := fmt.Sprintf("%d %d\n", cpus, l.MemoryMB<<20)
	if err := os.WriteFile(filepath.Join(bundle, words.BootNote), []byte(note), 0o600); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
