package api

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"agentsquad"
)

// info travels in the context of one request.
type info struct {
	id     string
	remote string
	host   string
	secure bool // reached over https, here or at a trusted proxy
	route  string
	actor  squad.Actor
	known  bool   // actor is set
	secret string // what the actor presented; streams check it again
	log    *slog.Logger
}

type infoKey struct{}

func infoOf(ctx context.Context) *info {
	if i, ok := ctx.Value(infoKey{}).(*info); ok {
		return i
	}
	return &info{log: slog.New(slog.DiscardHandler)}
}

// ActorFrom returns who makes the request of this context. Handlers behind the
// ports use it; it is false where nobody was authenticated.
func ActorFrom(ctx context.Context) (squad.Actor, bool) {
	i := infoOf(ctx)
	return i.actor, i.known
}

// recorder remembers what was answered. Unwrap keeps flushing, hijacking and
// deadlines of the real writer within reach.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

func (w *recorder) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack notes that the request was answered by someone who took the connection.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusOK
	}
	return conn, rw, err
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// statusGone is counted for a request whose sender no longer waits for the answer, as
// each page does that is left while it loads: that is no failure of ours.
const statusGone = 499

// observe gives each request its identity, contains its panics, writes one log
// line and counts it.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := requestID(r.Header.Get("X-Request-Id"))
		i := &info{id: id, remote: s.remote(r), host: r.Host, secure: s.secure(r), log: s.log.With("request_id", id)}
		r = r.WithContext(context.WithValue(r.Context(), infoKey{}, i))
		w.Header().Set("X-Request-Id", id)
		rec := &recorder{ResponseWriter: w}
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler { //nolint:errorlint // the value itself is the signal
					panic(v)
				}
				i.log.ErrorContext(r.Context(), "request panicked", "panic", v, "stack", string(debug.Stack()))
				if rec.status == 0 {
					writeProblem(rec, r, squad.Errorf(squad.CodeInternal, "something went wrong on the server; its log has the details"))
				}
			}
			status, level := rec.status, slog.LevelDebug
			switch {
			case status < http.StatusInternalServerError:
			case errors.Is(r.Context().Err(), context.Canceled):
				status = statusGone
			default:
				level = slog.LevelWarn
			}
			s.metrics.request(r.Method, i.route, status, time.Since(began))
			i.log.Log(r.Context(), level, "request", "method", r.Method, "path", r.URL.Path, "status", status,
				"bytes", rec.bytes, "duration_ms", time.Since(began).Milliseconds(), "actor", i.actor.String(), "remote", i.remote)
		}()
		next.ServeHTTP(rec, r)
	})
}

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestID keeps a caller's identifier if it is harmless in a log.
func requestID(given string) string {
	if requestIDForm.MatchString(given) {
		return given
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b[:])
}

func (s *Server) remote(r *http.Request) string {
	if s.cfg.BehindProxy {
		// The last entry is the one that our own proxy has added.
		hops := strings.Split(r.Header.Get("X-Forwarded-For"), ",")
		if ip, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1])); err == nil {
			return ip.String()
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func (s *Server) secure(r *http.Request) bool {
	return r.TLS != nil || s.cfg.BehindProxy && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// local says whether the client is on this machine and no proxy stands between.
func (s *Server) local(r *http.Request) bool {
	ip, err := netip.ParseAddr(infoOf(r.Context()).remote)
	return err == nil && ip.IsLoopback() && !s.cfg.BehindProxy
}
