package gvisortest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"agentsquad/internal/gvisor"
)

// Build builds gVisor's own runsc as its makers wrote it, without our additions: the
// floor that benchmarks compare with.
func Build(tb testing.TB) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "runsc")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "gvisor.dev/gvisor/runsc")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build runsc: %v\n%s", err, out)
	}
	return program
}

// Bare runs echo by a runsc alone, with the root of the base template.
type Bare struct {
	program string
	dir     string
	n       atomic.Int64
}

// NewBare prepares to run a runsc on the base template of a runtime.
func NewBare(tb testing.TB, r *gvisor.Runtime, program string) *Bare {
	tb.Helper()
	base, err := r.Template(gvisor.BaseTemplate)
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "bare") //nolint:usetesting // unix sockets need a short path
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	writeBundle(tb, dir, base)
	return &Bare{program: program, dir: dir}
}

// Run returns the time to its output.
func (f *Bare) Run(tb testing.TB) time.Duration {
	tb.Helper()
	took, err := f.try(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return took
}

// Hundred is how long a hundred of them take, as many at once as the runtime starts.
func (f *Bare) Hundred(tb testing.TB) time.Duration {
	tb.Helper()
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(2 * runtime.NumCPU())
	for range 100 {
		group.Go(func() error {
			_, err := f.try(tb.Context())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	return time.Since(began)
}

func (f *Bare) try(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	cmd := exec.CommandContext(ctx, f.program, "--root="+f.dir+"/root", "--network=none", "--ignore-cgroups",
		"--gofer-network-namespace=new", "--overlay2=all:dir="+f.dir, "run", "--bundle="+f.dir, "bare"+strconv.FormatInt(f.n.Add(1), 10))
	cmd.Args[0] = "runsc"
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	took := time.Since(began)
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("bare runsc: %w", err)
	}
	if line != "hello\n" {
		return 0, fmt.Errorf("bare runsc said %q", line)
	}
	return took, nil
}

func writeBundle(tb testing.TB, dir string, base gvisor.Template) {
	tb.Helper()
	var mounts []string
	for _, m := range base.Root.Binds {
		kind, source := "bind", m.Dir
		if m.Image != "" {
			kind, source = "erofs", m.Image
		}
		mounts = append(mounts, fmt.Sprintf(`{"destination":%q,"type":%q,"source":%q,"options":["rw"]}`, m.Path, kind, source))
	}
	spec := fmt.Sprintf(`{"ociVersion":"1.0.0","root":{"path":"rootfs"},"hostname":"bare",
"process":{"user":{"uid":0,"gid":0},"args":["/bin/echo","hello"],"cwd":"/","env":["PATH=/bin"]},
"mounts":[{"destination":"/proc","type":"proc","source":"proc"},%s],
"annotations":{"dev.gvisor.spec.rootfs.source":%q,"dev.gvisor.spec.rootfs.type":"erofs","dev.gvisor.spec.rootfs.overlay":%q},
"linux":{"namespaces":[{"type":"pid"},{"type":"ipc"},{"type":"uts"},{"type":"mount"},{"type":"network"}]}}`,
		strings.Join(mounts, ","), base.Root.Image, "dir="+dir)
	if err := os.MkdirAll(filepath.Join(dir, "rootfs"), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(spec), 0o600); err != nil {
		tb.Fatal(err)
	}
}
