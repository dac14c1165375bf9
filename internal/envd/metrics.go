package envd

import (
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// load remembers the last reading of the CPU clocks: use is what happened
// between two calls.
type load struct {
	mu          sync.Mutex
	busy, total uint64
}

type metrics struct {
	Timestamp   int64   `json:"ts"`
	CPUCount    int     `json:"cpu_count"`
	CPUUsed     float64 `json:"cpu_used_pct"`
	MemTotalMiB uint64  `json:"mem_total_mib"`
	MemUsedMiB  uint64  `json:"mem_used_mib"`
	MemTotal    uint64  `json:"mem_total"`
	MemUsed     uint64  `json:"mem_used"`
	MemCache    uint64  `json:"mem_cache"`
	DiskUsed    uint64  `json:"disk_used"`
	DiskTotal   uint64  `json:"disk_total"`
}

func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	m := metrics{Timestamp: time.Now().Unix(), CPUCount: runtime.NumCPU(), CPUUsed: s.load.used()}
	mem := readMeminfo()
	m.MemTotal, m.MemCache = mem["MemTotal"], mem["Cached"]
	if free := mem["MemFree"] + mem["Cached"] + mem["Buffers"]; free < m.MemTotal {
		m.MemUsed = m.MemTotal - free
	}
	m.MemTotalMiB, m.MemUsedMiB = m.MemTotal>>20, m.MemUsed>>20
	var fs syscall.Statfs_t
	if err := syscall.Statfs("/", &fs); err == nil {
		block := uint64(fs.Bsize)
		m.DiskTotal = fs.Blocks * block
		m.DiskUsed = (fs.Blocks - fs.Bfree) * block
	}
	writeJSON(w, m)
}

// used is the share of all CPUs in percent since the last call.
func (l *load) used() float64 {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(first)
	if len(fields) < 6 {
		return 0
	}
	var busy, total uint64
	for i, field := range fields[1:min(len(fields), 9)] {
		n, _ := strconv.ParseUint(field, 10, 64)
		total += n
		if i != 3 && i != 4 { // idle, iowait
			busy += n
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was, wasTotal := l.busy, l.total
	l.busy, l.total = busy, total
	if total <= wasTotal || busy < was {
		return 0
	}
	return float64(busy-was) / float64(total-wasTotal) * 100
}

// readMeminfo returns /proc/meminfo in bytes.
func readMeminfo() map[string]uint64 {
	out := map[string]uint64{}
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		if fields := strings.Fields(rest); len(fields) > 0 {
			if n, err := strconv.ParseUint(fields[0], 10, 64); err == nil {
				out[name] = n << 10
			}
		}
	}
	return out
}
