package e2bserver_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsquad/e2b"
	"agentsquad/internal/gvisor/gvisortest"
	"agentsquad/test/e2bsdk/e2btest"
)

// The benchmarks measure through HTTP, as a client does, and report ratios to a
// floor measured in the same run: the machine cancels out.

func quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[min(len(times)-1, int(q*float64(len(times))))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// forkFloor is one fork+exec of /bin/true in a shell loop inside.
func forkFloor(b *testing.B, sb *e2b.Sandbox, n int) time.Duration {
	b.Helper()
	out := sh(b, sb, `s=$(date +%%s%%N); i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done; e=$(date +%%s%%N); echo $(((e-s)/%d))`, n, n)
	ns, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}

func BenchmarkExec(b *testing.B) {
	s := e2btest.Start(b)
	sb := start(b, client(b, s, e2btest.Key), e2b.CreateOptions{Timeout: time.Hour})
	run := func() {
		if _, err := sb.Commands.Run(b.Context(), "/bin/true", e2b.CommandOptions{Args: []string{}}); err != nil {
			b.Fatal(err)
		}
	}
	for range 20 {
		run()
	}
	const n = 200
	programs := []string{gvisortest.Build(b), gvisortest.Runsc(filepath.Join(s.Dir, "gv"))} // gVisor's own, and ours
	var times []time.Duration
	var outer [2][]time.Duration
	var floors []time.Duration
	for b.Loop() {
		for i := range n {
			if i%50 == 0 {
				floors = append(floors, forkFloor(b, sb, 50))
			}
			began := time.Now()
			run()
			times = append(times, time.Since(began))
		}
		for i := range 40 {
			cmd := exec.CommandContext(b.Context(), programs[i%2], "--root="+filepath.Join(s.Dir, "gv", "runsc"), "exec", sb.ID, "/bin/true")
			cmd.Args[0] = "runsc"
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("runsc exec: %v\n%s", err, out)
			}
			outer[i%2] = append(outer[i%2], time.Since(began))
		}
	}
	floor, p50 := quantile(floors, 0.5), quantile(times, 0.5)
	b.ReportMetric(milliseconds(p50), "p50-ms")
	b.ReportMetric(milliseconds(quantile(times, 0.99)), "p99-ms")
	b.ReportMetric(milliseconds(floor), "floor-ms")
	b.ReportMetric(float64(p50)/float64(floor), "x-floor")
	b.ReportMetric(float64(p50)/float64(quantile(outer[0], 0.5)), "x-runsc-exec")
	b.ReportMetric(float64(p50)/float64(quantile(outer[1], 0.5)), "x-our-runsc-exec")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkFiles(b *testing.B) {
	s := e2btest.Start(b)
	sb := start(b, client(b, s, e2btest.Key), e2b.CreateOptions{Timeout: time.Hour})
	const size = 256 << 20
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	var up, down time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := sb.Files.Write(b.Context(), "big", bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
		up = time.Since(began)
		began = time.Now()
		r, err := sb.Files.Read(b.Context(), "big", e2b.ReadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if err != nil || n != size {
			b.Fatalf("read %d bytes: %v", n, err)
		}
		_ = r.Close()
		down = time.Since(began)
	}
	b.ReportMetric(size/1e6/up.Seconds(), "up-MB/s")
	b.ReportMetric(size/1e6/down.Seconds(), "down-MB/s")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkStdout(b *testing.B) {
	s := e2btest.Start(b)
	sb := start(b, client(b, s, e2btest.Key), e2b.CreateOptions{Timeout: time.Hour})
	const size = 128 << 20
	var took time.Duration
	for b.Loop() {
		var got counter
		began := time.Now()
		line := fmt.Sprintf("head -c %d /dev/zero", size)
		if _, err := sb.Commands.Run(b.Context(), line, e2b.CommandOptions{Stdout: &got}); err != nil {
			b.Fatal(err)
		}
		took = time.Since(began)
		if got != size {
			b.Fatalf("%d bytes came", got)
		}
	}
	b.ReportMetric(size/1e6/took.Seconds(), "MB/s")
	b.ReportMetric(0, "ns/op")
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// BenchmarkCreate100 asks for a hundred sandboxes at once: all run within 8 s is the
// aim. Each is given a command as soon as it is there, so that the last ones start
// beside the first ones' work; when all have answered is told too. The floor is a hundred
// runs of echo by gVisor's own runsc.
func BenchmarkCreate100(b *testing.B) {
	s := e2btest.Start(b)
	c := client(b, s, e2btest.Key)
	floor := gvisortest.NewBare(b, s.Runtime, gvisortest.Build(b)).Hundred(b)
	const n = 100
	var run, answered []time.Duration
	for b.Loop() {
		boxes := make([]*e2b.Sandbox, n)
		run, answered = make([]time.Duration, n), make([]time.Duration, n)
		errs := make([]error, n)
		began := time.Now()
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				boxes[i], errs[i] = c.Create(b.Context(), e2b.CreateOptions{Timeout: time.Hour})
				if run[i] = time.Since(began); errs[i] == nil {
					errs[i] = firstOutput(b.Context(), boxes[i])
				}
				answered[i] = time.Since(began)
			})
		}
		wg.Wait()
		b.StopTimer()
		for i, err := range errs {
			if err != nil {
				b.Fatalf("sandbox %d: %v", i, err)
			}
		}
		for _, sb := range boxes {
			wg.Go(func() { _ = sb.Kill(context.WithoutCancel(b.Context())) })
		}
		wg.Wait()
		b.StartTimer()
	}
	b.ReportMetric(slices.Max(run).Seconds(), "all-run-s")
	b.ReportMetric(quantile(run, 0.5).Seconds(), "run-p50-s")
	b.ReportMetric(quantile(run, 0.99).Seconds(), "run-p99-s")
	b.ReportMetric(slices.Max(answered).Seconds(), "all-answered-s")
	b.ReportMetric(floor.Seconds(), "100-bare-s")
	b.ReportMetric(slices.Max(run).Seconds()/floor.Seconds(), "x-of-100-bare")
	b.ReportMetric(0, "ns/op")
}

func firstOutput(ctx context.Context, sb *e2b.Sandbox) error {
	res, err := sb.Commands.Run(ctx, "echo up", e2b.CommandOptions{})
	if err == nil && strings.TrimSpace(res.Stdout) != "up" {
		return fmt.Errorf("first output is %q", res.Stdout)
	}
	return err
}
