package inside_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsquad/internal/envdpb/process"
)

// BenchmarkExec compares a command through the daemon with the floor: one
// fork+exec in a shell loop inside the same sandbox.
func BenchmarkExec(b *testing.B) {
	s := create(b, nil)
	floor := s.sh("", "s=$(date +%s%N); for i in $(seq 100); do /bin/true; done; e=$(date +%s%N); echo $(( (e-s)/100000 ))")
	us, err := strconv.ParseFloat(strings.TrimSpace(floor.stdout), 64)
	if err != nil {
		b.Fatalf("%+v", floor)
	}
	req := &process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/true"}, Stdin: new(bool)}
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		stream := s.start("", req)
		for stream.Receive() {
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	p50 := float64(times[len(times)/2].Microseconds())
	b.ReportMetric(p50, "p50-µs")
	b.ReportMetric(us, "floor-µs")
	b.ReportMetric(p50/us, "ratio")
}

func BenchmarkStdout(b *testing.B) {
	s := create(b, nil)
	const size = 64 << 20
	floor := s.sh("", "s=$(date +%s%N); head -c "+strconv.Itoa(size)+" /dev/zero | cat >/dev/null; e=$(date +%s%N); echo $(( 67108864000/(e-s) ))")
	pipe, _ := strconv.ParseFloat(strings.TrimSpace(floor.stdout), 64)
	events := 0
	b.SetBytes(size)
	for b.Loop() {
		stream := s.start("", shell("head -c "+strconv.Itoa(size)+" /dev/zero"))
		n := 0
		for stream.Receive() {
			n += len(stream.Msg().GetEvent().GetData().GetStdout())
			events++
		}
		if n != size {
			b.Fatalf("%d bytes, %v", n, stream.Err())
		}
	}
	b.ReportMetric(pipe, "pipe-MB/s") // the floor: one pipe between two programs inside
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}

func BenchmarkUpload(b *testing.B) {
	s := create(b, nil)
	data := bytes.Repeat([]byte("squad"), 64<<20/5)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		res, err := s.http.Post("http://envd/files?path=/tmp/up", "application/octet-stream", bytes.NewReader(data))
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatalf("%v %v", res, err)
		}
		res.Body.Close()
	}
}

func BenchmarkDownload(b *testing.B) {
	s := create(b, nil)
	s.sh("", "head -c 67108864 /dev/zero > /tmp/down")
	b.SetBytes(64 << 20)
	for b.Loop() {
		res, err := s.http.Get("http://envd/files?path=/tmp/down")
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, res.Body); n != 64<<20 || err != nil {
			b.Fatalf("%d %v", n, err)
		}
		res.Body.Close()
	}
}
