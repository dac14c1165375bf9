package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// writeTimeout is how long a reader may take with what was sent to it. Then it
// is cut off; it comes back with Last-Event-ID and misses nothing.
const writeTimeout = 10 * time.Second

// reader is one open stream. The writing goroutine and the heartbeat share it.
type reader struct {
	wire  wire
	actor atomic.Pointer[squad.Actor]

	mu      sync.Mutex
	bounded time.Time // when the time of a write was last set
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
	rd := &reader{}
	actor := actorOf(ctx)
	rd.actor.Store(&actor)
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
		rd.wire = socket{conn}
	} else {
		w.WriteHeader(http.StatusOK)
		rd.wire = response{w, http.NewResponseController(w)}
	}
	if rd.send(net.Buffers{[]byte("retry: 2000\n\n")}) != nil {
		return
	}
	group.Go(func() { s.heartbeat(ctx, rd, cancel) })

	see := func(e *squad.Event) bool { return seesEvent(*rd.actor.Load(), e) }
	var buffers net.Buffers
	for batch, err := range s.events.Batches(ctx, f) {
		if err != nil {
			return
		}
		var n int
		if buffers, n = event.Wire(buffers[:0], batch, see); n == 0 {
			continue
		}
		if err := rd.send(buffers); err != nil {
			s.metrics.cut.Inc()
			return
		}
		s.metrics.sent.Add(float64(n))
	}
}

// send writes within the time that a reader has.
func (rd *reader) send(buffers net.Buffers) error {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if err := rd.bound(); err != nil {
		return err
	}
	return rd.wire.send(buffers)
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
			rd.actor.Store(&actor)
		}
		if err := rd.send(net.Buffers{[]byte(": heartbeat\n\n")}); err != nil {
			s.metrics.cut.Inc()
			cancel(err)
			return
		}
	}
}
