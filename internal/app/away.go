package app

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

// newAway forwards to the gateway of another installation that rents sandboxes here.
// It has several addresses where it has several nodes: the one that answered last is
// asked first, and the next one when nobody is there. Who asks must show the token
// that installation gave its sandbox; nothing of ours is added.
func newAway(addresses []string, log *slog.Logger) http.Handler {
	t := &failover{base: http.DefaultTransport.(*http.Transport).Clone()}
	for _, text := range addresses {
		if u, err := url.Parse(text); err == nil { // validated with the settings
			t.targets = append(t.targets, u)
		}
	}
	proxy := &httputil.ReverseProxy{
		Transport: t, FlushInterval: -1, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(t.targets[0]) },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.WarnContext(r.Context(), "the gateway of rented sandboxes does not answer", "error", err)
			http.Error(w, "the gateway of this sandbox's installation does not answer", http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/git/") && !strings.HasPrefix(r.URL.Path, "/llm/") {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// failover sends a request to the first target that takes a connection.
type failover struct {
	base    http.RoundTripper
	targets []*url.URL
	last    atomic.Int64 // index of the target that answered last
}

// RoundTrip implements [http.RoundTripper].
func (t *failover) RoundTrip(r *http.Request) (*http.Response, error) {
	var errs []error
	from := int(t.last.Load())
	for i := range t.targets {
		at := (from + i) % len(t.targets)
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host = t.targets[at].Scheme, t.targets[at].Host, t.targets[at].Host
		if r.Body != nil {
			out.Body = io.NopCloser(r.Body) // a refused connection closes it unread
		}
		resp, err := t.base.RoundTrip(out)
		if err == nil {
			t.last.Store(int64(at))
			return resp, nil
		}
		errs = append(errs, err)
		var dial *net.OpError
		if !errors.As(err, &dial) || dial.Op != "dial" {
			break // it may have been heard
		}
	}
	return nil, errors.Join(errs...)
}
