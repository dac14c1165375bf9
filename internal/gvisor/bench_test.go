package gvisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsquad/internal/gvisor"
	"agentsquad/internal/gvisor/gvisortest"
)

// report prints the median and the 99th percentile of what was measured.
func report(b *testing.B, name string, all []time.Duration) {
	b.Helper()
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms_p50_"+name)
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms_p99_"+name)
}

// samples is how often a story is told: enough for a median, even when the
// benchmark runs once.
func samples(b *testing.B) int { return max(b.N, 9) }

// BenchmarkBareRunsc is the floor by itself.
func BenchmarkBareRunsc(b *testing.B) {
	r := newRuntime(b)
	floor, ours := gvisortest.NewBare(b, r, gvisortest.Build(b)), gvisortest.NewBare(b, r, r.Program())
	var all, tuned []time.Duration
	for range samples(b) {
		all = append(all, floor.Run(b))
		tuned = append(tuned, ours.Run(b))
	}
	report(b, "bare", all)
	report(b, "ours", tuned)
}

// BenchmarkCreate takes turns with the floor, so that both meet the same machine.
func BenchmarkCreate(b *testing.B) {
	r := newRuntime(b)
	f, own := gvisortest.NewBare(b, r, gvisortest.Build(b)), gvisortest.NewBare(b, r, r.Program())
	var floor, ours, created, output, killed []time.Duration
	for range samples(b) {
		floor, ours = append(floor, f.Run(b)), append(ours, own.Run(b))
		began := time.Now()
		s := create(b, r, gvisor.Spec{})
		created = append(created, time.Since(began))
		mustRun(b, s, "echo hello")
		output = append(output, time.Since(began))
		began = time.Now()
		if err := s.Kill(b.Context()); err != nil {
			b.Fatal(err)
		}
		killed = append(killed, time.Since(began))
	}
	report(b, "bare", floor)
	report(b, "ours", ours)
	report(b, "create", created)
	report(b, "first_output", output)
	report(b, "kill", killed)
	b.ReportMetric(float64(output[len(output)/2])/float64(floor[len(floor)/2]), "x_first_output_of_bare")
	b.ReportMetric(float64(output[len(output)/2])/float64(ours[len(ours)/2]), "x_first_output_of_ours")
}

func BenchmarkPauseResume(b *testing.B) {
	r := newRuntime(b)
	s := create(b, r, gvisor.Spec{})
	var paused, resumed, output []time.Duration
	for range samples(b) {
		began := time.Now()
		if err := s.Pause(b.Context(), true); err != nil {
			b.Fatal(err)
		}
		paused = append(paused, time.Since(began))
		began = time.Now()
		if err := s.Resume(b.Context()); err != nil {
			b.Fatal(err)
		}
		resumed = append(resumed, time.Since(began))
		mustRun(b, s, "echo hello")
		output = append(output, time.Since(began))
	}
	report(b, "pause", paused)
	report(b, "resume", resumed)
	report(b, "resume_first_output", output)
}

func BenchmarkFork8(b *testing.B) {
	r := newRuntime(b)
	s := create(b, r, gvisor.Spec{})
	var all []time.Duration
	for i := range max(b.N, 3) {
		ids := make([]string, 8)
		for j := range ids {
			ids[j] = fmt.Sprintf("f%d-%d", i, j)
		}
		began := time.Now()
		forks, errs := s.ForkAll(b.Context(), ids)
		for j, f := range forks {
			if errs[j] != nil {
				b.Fatal(errs[j])
			}
			mustRun(b, f, "echo hello")
		}
		all = append(all, time.Since(began))
		for _, f := range forks {
			_ = f.Kill(b.Context())
		}
	}
	report(b, "fork8", all)
}

// Benchmark100AtOnce asks for a hundred at once and gives each a command. The floor, in the
// same run, is a hundred runs of echo by gVisor's own runsc.
func Benchmark100AtOnce(b *testing.B) {
	for range b.N {
		r := newRuntime(b)
		floor := gvisortest.NewBare(b, r, gvisortest.Build(b)).Hundred(b)
		began := time.Now()
		var mu sync.Mutex
		var all []time.Duration
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				s, err := r.Create(b.Context(), gvisor.Spec{Limits: gvisor.Limits{MemoryMB: 256}})
				if err == nil {
					_, _, err = sh(b.Context(), s, "echo hello")
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, time.Since(began))
				if err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		total := time.Since(began)
		b.ReportMetric(total.Seconds(), "s_total")
		b.ReportMetric(floor.Seconds(), "s_100_bare")
		b.ReportMetric(total.Seconds()/floor.Seconds(), "x_of_100_bare")
		report(b, "each", all)
		b.ReportMetric(pssPerSandbox(r), "MB_pss_each")
		var kill sync.WaitGroup
		for _, s := range r.List() {
			kill.Go(func() { _ = s.Kill(context.Background()) })
		}
		kill.Wait()
		_ = r.Close()
	}
}

// pssPerSandbox is the memory of all gVisor processes of this program, shared
// pages counted once, divided by their sandboxes.
func pssPerSandbox(r *gvisor.Runtime) float64 {
	names, _ := filepath.Glob("/proc/[0-9]*/smaps_rollup")
	var sum float64
	for _, name := range names {
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if !strings.Contains(string(cmd), "runsc") && !strings.HasPrefix(string(cmd), "[") {
			continue
		}
		data, _ := os.ReadFile(name)
		for _, line := range strings.Split(string(data), "\n") {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				kb, _ := strconv.ParseFloat(f[1], 64)
				sum += kb / 1024
			}
		}
	}
	return sum / float64(max(len(r.List()), 1))
}
