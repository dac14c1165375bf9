package e2bserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"

	squad "agentsquad"
	"agentsquad/internal/tunnel"
)

// ServeHTTP serves both planes: see [Server.Claims] for which requests to send.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, isData, err := s.targetOf(r)
	switch {
	case err != nil:
		allowOrigin(w.Header())
		http.Error(w, squadMessage(err), http.StatusBadRequest)
	case isData && (t.byHost || !isPreflight(r)):
		s.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), targetKey{}, t)))
	case r.Method == http.MethodOptions:
		preflight(w)
	case strings.HasPrefix(r.URL.Path, uploadPrefix):
		s.receiveUpload(w, r)
	default:
		allowOrigin(w.Header())
		s.routes.ServeHTTP(w, r)
	}
}

func squadMessage(err error) string { return bodyOf(err).Message }

func allowOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
}

// preflight lets any page ask: keys and tokens are in headers, never in cookies,
// so that an origin proves nothing.
func preflight(w http.ResponseWriter) {
	allowOrigin(w.Header())
	w.Header().Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
	w.Header().Set("Access-Control-Allow-Headers", "*")
	w.Header().Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
}

type (
	targetKey struct{}
	routeKey  struct{}
)

// route is a request on its way into a sandbox.
type route struct {
	target
	run  *live
	mask string
	tls  bool // the server inside speaks TLS
	body *watchedBody
}

// internalRoutes are for the host only.
var internalRoutes = map[string]bool{
	"/init": true, "/freeze": true, "/unfreeze": true, "/collapse": true, "/fsfreeze": true, "/fsthaw": true, "/upgrade": true,
}

// dataPlane passes requests on to envd and to ports of sandboxes, unbuffered
// both ways.
func (s *Server) dataPlane() http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: byRun{}, FlushInterval: -1, ModifyResponse: guardResponse, BufferPool: newBuffers(),
		// Cut streams are no news: their end is in the log already.
		ErrorLog:     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { s.unreachable(w, r, err) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := r.Context().Value(targetKey{}).(target)
		rt, err := s.admit(r, t)
		if err != nil {
			s.refuse(w, r, t, err)
			return
		}
		rt.body = watchBody(r)
		ctx, cancel := context.WithCancelCause(context.WithValue(r.Context(), routeKey{}, rt))
		defer cancel(nil)
		// The streams of a run end with it; a client learns at once.
		defer context.AfterFunc(rt.run.ctx, func() { cancel(context.Cause(rt.run.ctx)) })()
		forward.ServeHTTP(w, r.WithContext(ctx))
	})
}

// admit finds the live run behind a target and checks that the request may
// reach it.
func (s *Server) admit(r *http.Request, t target) (route, error) {
	if err := s.AwaitReady(r.Context()); err != nil {
		return route{}, err
	}
	b := s.find(t.id)
	if b == nil {
		return route{}, errNoSandbox
	}
	if t.port == envdPort && internalRoutes[r.URL.Path] {
		return route{}, errInternalRoute
	}
	rec := b.view()
	if t.port != envdPort && !rec.Network.public() && !same(r.Header.Get(headerTraffic), s.seed.traffic(b.id)) {
		return route{}, squad.Errorf(squad.CodeForbidden, "Sandbox is secured with a traffic access token: send it in the header e2b-traffic-access-token")
	}
	run := b.current()
	if run == nil && rec.State == paused && rec.AutoResume && !rec.Build {
		if err := s.resumeByTraffic(r.Context(), b); err != nil {
			return route{}, err
		}
		run = b.current()
	}
	if run == nil {
		return route{}, errNoSandbox
	}
	return route{target: t, run: run, mask: rec.Network.MaskRequestHost, tls: slices.Contains(rec.Network.HTTPSPorts, t.port)}, nil
}

// resumeByTraffic wakes a paused sandbox because somebody wants to talk to it.
func (s *Server) resumeByTraffic(ctx context.Context, b *box) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	rec := b.view()
	if rec.State == running {
		return nil
	}
	return s.resumeLocked(ctx, b, min(max(rec.Timeout, minResume), s.cfg.MaxLifetime), false)
}

// byRun sends each request through the transport of its sandbox's run.
type byRun struct{}

// RoundTrip implements [http.RoundTripper].
func (byRun) RoundTrip(r *http.Request) (*http.Response, error) {
	rt := r.Context().Value(routeKey{}).(route)
	if rt.port == envdPort {
		return rt.run.transport.RoundTrip(r)
	}
	return rt.run.ports.RoundTrip(r)
}

// rewrite turns a request into the one that is sent inside. Keys for the host
// and cookies of the page stay out; all else goes as it came.
func rewrite(p *httputil.ProxyRequest) {
	rt := p.In.Context().Value(routeKey{}).(route)
	port := strconv.Itoa(rt.port)
	p.Out.URL.Scheme, p.Out.URL.Host = "http", rt.id+":"+port
	if rt.tls {
		p.Out.URL.Scheme = "https"
	}
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	p.Out.Host = p.In.Host
	if rt.mask != "" && rt.port != envdPort {
		p.Out.Host = strings.ReplaceAll(rt.mask, "${PORT}", port)
	}
	for _, name := range []string{"X-Api-Key", headerTraffic, "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		p.Out.Header.Del(name)
	}
	if !rt.byHost {
		p.Out.Header.Del("Cookie")
	} else if p.In.TLS != nil {
		p.Out.Header.Set("X-Forwarded-Proto", "https")
	}
}

// guardResponse keeps what a sandbox answers away from the page of squad. A
// preview's cookies are bound to its own host. What shares the page's origin
// sets no cookie, and is no document there: scripts in it run nowhere.
func guardResponse(resp *http.Response) error {
	rt := resp.Request.Context().Value(routeKey{}).(route)
	rt.body.wait(resp.Request.Context())
	if !rt.byHost {
		resp.Header.Del("Set-Cookie")
		resp.Header.Set("Content-Security-Policy", "sandbox")
		resp.Header.Set("X-Content-Type-Options", "nosniff")
		resp.Header.Del("Service-Worker-Allowed")
		resp.Header.Del("Clear-Site-Data")
		return nil
	}
	cookies := resp.Header.Values("Set-Cookie")
	for i, c := range cookies {
		cookies[i] = hostCookie(c)
	}
	return nil
}

// hostCookie drops the Domain of a cookie.
func hostCookie(cookie string) string {
	parts := strings.Split(cookie, ";")
	kept := parts[:1]
	for _, p := range parts[1:] {
		name, _, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "domain") {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ";")
}

// unreachable answers for a request that could not be passed on.
func (s *Server) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	rt := r.Context().Value(routeKey{}).(route)
	var refusal *tunnel.Refusal
	var target *url.Error
	switch {
	case errors.As(err, &refusal):
		err = errPortClosed
	case rt.run.ctx.Err() != nil:
		err = errNoSandbox
	case r.Context().Err() != nil: // the client went away: nobody reads this
	case errors.As(err, &target):
		err = target.Err
	}
	s.refuse(w, r, rt.target, err)
}
