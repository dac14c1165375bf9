package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/internal/api"
)

// From Append to 1,000 clients of the HTTP stream, at 1,000 events a second: a million
// deliveries a second. Readers and server share this machine, so that all read and
// some look at what they read.
func BenchmarkStream1000(b *testing.B) {
	const clients, looking, events = 1000, 50, 3000
	h := newHouse(b, func(c *api.Config) { c.Heartbeat = time.Minute })
	start := time.Now()
	var ready, readers sync.WaitGroup
	var mu sync.Mutex
	var times []time.Duration
	var got atomic.Int64
	for i := range clients {
		ready.Add(1)
		readers.Go(func() {
			var mine []time.Duration
			if i < looking {
				mine = make([]time.Duration, 0, events)
			}
			mine = readStream(b, h, start, ready.Done, mine, &got)
			mu.Lock()
			defer mu.Unlock()
			times = append(times, mine...)
		})
	}
	ready.Wait()
	began := time.Now()
	for b.Loop() {
		var agents sync.WaitGroup
		for n := range events {
			if ahead := time.Duration(n)*time.Millisecond - time.Since(began); ahead > 0 {
				time.Sleep(ahead)
			}
			agents.Go(func() { // agents do not wait for each other
				payload := fmt.Appendf(nil, `{"stream":"stdout","text":"a line of output","t":%d}`, time.Since(start).Nanoseconds())
				if err := h.events.Append(b.Context(), squad.Event{Type: squad.EventLog, Payload: payload}); err != nil {
					b.Error(err)
				}
			})
		}
		agents.Wait()
	}
	rate := events / time.Since(began).Seconds()
	for end := time.Now().Add(30 * time.Second); got.Load() < looking*events && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	h.server.Stop()
	readers.Wait()
	if len(times) != looking*events {
		b.Fatalf("%d deliveries, want %d", len(times), looking*events)
	}
	slices.Sort(times)
	at := func(p float64) float64 { return float64(times[int(p*float64(len(times)-1))].Microseconds()) / 1000 }
	b.ReportMetric(at(0.50), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(rate, "events/s")
	b.ReportMetric(0, "ns/op")
}

// readStream follows the stream as it comes off the wire and adds how old each event
// was when it arrived; with nil times it only reads. Events say when they were made,
// counted from start.
func readStream(b *testing.B, h *house, start time.Time, ready func(), times []time.Duration, got *atomic.Int64) []time.Duration {
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		b.Error(err)
		ready()
		return nil
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s/sse HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", api.Prefix, h.admin.token)
	buf, kept := make([]byte, 64<<10), 0
	for {
		n, err := conn.Read(buf[kept:])
		now := time.Since(start)
		if ready != nil && n > 0 {
			ready()
			ready = nil
		}
		if times == nil {
			if err != nil {
				return nil
			}
			continue
		}
		rest := buf[:kept+n]
		seen := len(times)
		for {
			i := bytes.Index(rest, []byte(`"t":`))
			j := -1
			if i >= 0 {
				j = bytes.IndexByte(rest[i:], '}')
			}
			if j < 0 {
				break
			}
			if t, err := strconv.ParseInt(string(rest[i+4:i+j]), 10, 64); err == nil {
				times = append(times, now-time.Duration(t))
			}
			rest = rest[i+j:]
		}
		got.Add(int64(len(times) - seen))
		kept = copy(buf, rest[max(0, len(rest)-512):])
		if err != nil {
			if !errors.Is(err, io.EOF) {
				b.Error(err)
			}
			return times
		}
	}
}
