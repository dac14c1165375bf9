package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/internal/api"
	"agentsquad/internal/event"
)

const (
	streamClients = 1000
	streamEvents  = 3000 // one a millisecond
)

// TestMain is also the process that reads streams: readers that share the
// server's runtime would be measured with it.
func TestMain(m *testing.M) {
	if text := os.Getenv("STREAM_TEST_READERS"); text != "" {
		if err := readStreams(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// From Append to 1,000 clients of the HTTP stream, at 1,000 events a second: a
// million deliveries a second. The floor is measured with the same readers in the
// same run: a loop that writes the same bytes at the same rate to the same
// number of connections, and does nothing else.
func BenchmarkStream1000(b *testing.B) {
	for b.Loop() {
		floor := floorOf(b)
		h := newHouse(b, func(c *api.Config) { c.Heartbeat = time.Minute })
		var mu sync.Mutex
		var commits []time.Duration
		ours := measure(b, h.url, h.admin.token, func(payload []byte) {
			began := time.Now()
			if err := h.events.Append(b.Context(), squad.Event{Type: squad.EventLog, Payload: payload}); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			commits = append(commits, time.Since(began))
		})
		slices.Sort(commits)
		b.ReportMetric(float64(commits[len(commits)*99/100].Microseconds())/1000, "commit-p99-ms") // what the writers wait
		b.ReportMetric(floor.P50, "floor-p50-ms")
		b.ReportMetric(floor.P99, "floor-p99-ms")
		b.ReportMetric(floor.cpu.Seconds(), "floor-cpu-s")
		b.ReportMetric(ours.P50, "p50-ms")
		b.ReportMetric(ours.P99, "p99-ms")
		b.ReportMetric(ours.cpu.Seconds(), "cpu-s")
		b.ReportMetric(ours.rate, "events/s")
		b.ReportMetric(0, "ns/op")
	}
}

// delivery is how old events were when they arrived, in milliseconds, and what
// sending them cost this process.
type delivery struct {
	P50, P99 float64
	Count    int
	rate     float64
	cpu      time.Duration
}

// measure starts the readers, makes the events and waits until all have arrived.
func measure(b *testing.B, url, token string, emit func(payload []byte)) delivery {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "STREAM_TEST_READERS="+strings.TrimPrefix(url, "http://")+" "+token)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		b.Fatal("the readers did not start")
	}
	before, began := used(), time.Now()
	var agents sync.WaitGroup
	for n := range streamEvents {
		if ahead := time.Duration(n)*time.Millisecond - time.Since(began); ahead > 0 {
			time.Sleep(ahead)
		}
		agents.Go(func() { // agents do not wait for each other
			emit(fmt.Appendf(nil, `{"stream":"stdout","text":"a line of output","t":%d}`, time.Now().UnixNano()))
		})
	}
	agents.Wait()
	d := delivery{rate: streamEvents / time.Since(began).Seconds()}
	if !lines.Scan() {
		b.Fatal("the readers ended early")
	}
	d.cpu = used() - before
	if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return d
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// floorOf writes what came together to one reader after the other.
func floorOf(b *testing.B) delivery {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var conns []net.Conn
	var mu sync.Mutex
	var pending []byte
	bell := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range streamClients {
			c, err := l.Accept()
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 2000\n\n")
			conns = append(conns, c)
		}
		for range bell {
			time.Sleep(floorRound) // what comes together is written together
			mu.Lock()
			burst := pending
			pending = nil
			mu.Unlock()
			for _, c := range conns {
				_, _ = c.Write(burst)
			}
		}
	}()
	seq := 0
	d := measure(b, l.Addr().String(), "-", func(payload []byte) {
		mu.Lock()
		seq++
		pending = fmt.Appendf(pending, "id: %d\nevent: log\ndata: %s\n\n", seq,
			event.Payload(squad.Event{Seq: int64(seq), Type: squad.EventLog, At: time.Now().UTC(), Payload: payload}))
		mu.Unlock()
		select {
		case bell <- struct{}{}:
		default:
		}
	})
	close(bell)
	<-done
	_ = l.Close()
	return d
}

// floorRound is how long the floor waits for company, as the event log does.
const floorRound = 20 * time.Millisecond
