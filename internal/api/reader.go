package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// writeTimeout is how long a reader may take with what was sent to it. Then it
// is cut off; it comes back with Last-Event-ID and misses nothing.
const writeTimeout = 10 * time.Second

// reader is one open stream. The event log, the goroutine that writes what the
// log could not, and the heartbeat share it.
type reader struct {
	wire    wire
	raw     syscall.RawConn // of the wire; nil where every write may have to wait
	metrics *metrics
	view    atomic.Pointer[event.View]

	mu      sync.Mutex
	bounded time.Time   // when the time of a write was last set
	rest    net.Buffers // to be written before anything else
	broken  error       // part of an event may have been the last that was written
}

func (s *Server) serveStream(w http.ResponseWriter, r *http.Request, f store.EventFilter) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.stopping, func() { cancel(context.Cause(s.stopping)) })()
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	rd := &reader{metrics: s.metrics}
	rd.look(actorOf(ctx))
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	if conn := takeOver(w, r); conn != nil {
		defer conn.Close()
		// Nobody else notices that the reader has gone.
		group.Go(func() {
			_, err := io.Copy(io.Discard, conn)
			cancel(err)
		})
		rd.wire, rd.raw = socket{conn}, rawOf(conn)
	} else {
		w.WriteHeader(http.StatusOK)
		rd.wire = response{w, http.NewResponseController(w)}
	}
	if rd.send(net.Buffers{[]byte("retry: 2000\n\n")}) != nil {
		return
	}
	group.Go(func() { s.heartbeat(ctx, rd, cancel) })

	var sink event.Sink
	if rd.raw != nil {
		sink = rd
	}
	var buffers net.Buffers
	for batch, err := range s.events.Feed(ctx, f, sink) {
		if err != nil {
			return
		}
		var n int
		if buffers, n = event.Wire(buffers[:0], batch, rd.View().See); n == 0 {
			continue
		}
		if rd.send(buffers) != nil {
			return
		}
		s.metrics.sent.Add(float64(n))
	}
}

// send writes within the time that a reader has.
func (rd *reader) send(buffers net.Buffers) error {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if rd.broken != nil {
		return rd.broken
	}
	err := rd.bound()
	if err == nil && len(rd.rest) > 0 {
		err = rd.wire.send(rd.rest)
		rd.rest = nil
	}
	if err == nil && len(buffers) > 0 {
		err = rd.wire.send(buffers)
	}
	if err != nil {
		rd.broken = err
		rd.metrics.cut.Inc()
	}
	return err
}

// bound gives the write its time, at most once a second: each setting moves a
// timer.
func (rd *reader) bound() error {
	now := time.Now()
	if now.Sub(rd.bounded) < time.Second {
		return nil
	}
	rd.bounded = now
	if err := rd.wire.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
		return fmt.Errorf("bound the write: %w", err)
	}
	return nil
}

// heartbeat keeps proxies from closing a silent stream, and ends the stream of
// someone who lost the right to it.
func (s *Server) heartbeat(ctx context.Context, rd *reader, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(s.cfg.Heartbeat)
	defer tick.Stop()
	secret := infoOf(ctx).secret
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		actor, err := s.identify(ctx, secret)
		if squad.CodeOf(err) == squad.CodeUnauthorized {
			cancel(err)
			return
		}
		if err == nil {
			rd.look(actor)
		}
		if err := rd.send(net.Buffers{[]byte(": heartbeat\n\n")}); err != nil {
			cancel(err)
			return
		}
	}
}
