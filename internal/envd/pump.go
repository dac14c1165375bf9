package envd

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"agentsquad/internal/envdpb/process"
)

var pumpBuffers = sync.Pool{New: func() any { b := make([]byte, pipeChunk); return &b }}

// gatherPause is how long output is gathered while its reader is still busy with
// what came before. Each event costs far more than the bytes in it.
const gatherPause = 200 * time.Microsecond

// pump reads one output to its end. Without a reader it throws the bytes away.
func (r *running) pump(from *os.File, chunk int, wrap func([]byte) *process.ProcessEvent) {
	defer r.part()
	defer from.Close()
	pooled := pumpBuffers.Get().(*[]byte)
	defer pumpBuffers.Put(pooled)
	buf := (*pooled)[:chunk]
	last := false
	for {
		n, err := from.Read(buf)
		if err == nil {
			n += r.gather(from, buf[n:])
		}
		if n > 0 && r.listened() {
			r.publish(wrap(append([]byte(nil), buf[:n]...)))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && !last {
			// The shell of a terminal has gone; what it wrote may still be there.
			_ = from.SetReadDeadline(time.Now().Add(ptyLinger / 4))
			last = true
			continue
		}
		if err != nil {
			return
		}
		last = false
	}
}

// gather fills the rest of a chunk with what is there already, and waits a
// moment for more while the reader has not yet taken the chunk before.
func (r *running) gather(from *os.File, buf []byte) int {
	raw, err := from.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	for waited := false; n < len(buf) && r.busy(); {
		m := 0
		_ = raw.Read(func(fd uintptr) bool {
			m, _ = syscall.Read(int(fd), buf[n:])
			return true // never wait
		})
		if m <= 0 {
			if waited {
				break
			}
			waited = true
			time.Sleep(gatherPause)
			continue
		}
		n += m
	}
	return n
}

func (r *running) listened() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.readers) > 0
}

// busy says whether some reader has events waiting.
func (r *running) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sub := range r.readers {
		if len(sub.events) > 0 {
			return true
		}
	}
	return false
}
