package envd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"agentsquad/internal/tunnel"
)

// InternalHost is the name under which the host's own handler is reached.
const InternalHost = "squad.internal"

const (
	// maxWays is how many connections to the outside may be open at once; it
	// stays under the host's limit, so that what is over waits instead of failing.
	maxWays    = 400
	dialWithin = 60 * time.Second
)

// proxyEnv tells programs inside how to reach the outside. Loopback stays direct.
func proxyEnv() map[string]string {
	proxy, none := "http://"+proxyAddress, "localhost,127.0.0.0/8,127.0.0.1,::1"
	return map[string]string{
		"http_proxy": proxy, "https_proxy": proxy, "HTTP_PROXY": proxy, "HTTPS_PROXY": proxy,
		"no_proxy": none, "NO_PROXY": none,
		"NODE_USE_ENV_PROXY": "1", // node ignores the others without it
	}
}

// opener is the tunnel as seen from here.
type opener interface {
	Open(ctx context.Context, h tunnel.Header) (net.Conn, error)
}

// wayOut gives a sandbox without a network device its way out through the host.
type wayOut struct {
	link  opener
	log   *slog.Logger
	slots chan struct{}
	plain *httputil.ReverseProxy
}

func newWayOut(link opener, log *slog.Logger) *wayOut {
	w := &wayOut{link: link, log: log, slots: make(chan struct{}, maxWays)}
	w.plain = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		FlushInterval: -1,
		ErrorHandler:  refuseRequest,
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return w.dial(ctx, address)
			},
			DisableCompression:  true,
			MaxIdleConnsPerHost: 2,
			MaxIdleConns:        8,
			IdleConnTimeout:     15 * time.Second,
		},
	}
	return w
}

// dial opens a way to host:port; the host decides whether it may be.
func (w *wayOut) dial(ctx context.Context, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("address %q: the port is out of range", address)
	}
	h := tunnel.Header{Kind: tunnel.KindEgress, Host: strings.TrimSuffix(host, "."), Port: port}
	if strings.EqualFold(h.Host, InternalHost) {
		h = tunnel.Header{Kind: tunnel.KindInternal}
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("more than %d connections to the outside are open: %w", maxWays, ctx.Err())
	}
	c, err := w.link.Open(ctx, h)
	if err != nil {
		<-w.slots
		return nil, err
	}
	return &slotConn{Conn: c, slots: w.slots}, nil
}

// serveProxy serves the HTTP proxy: CONNECT, and requests in absolute form.
func (w *wayOut) serveProxy(l net.Listener) error {
	server := &http.Server{
		Handler:           w,
		ReadHeaderTimeout: 60 * time.Second,
		IdleTimeout:       60 * time.Second,
		ErrorLog:          slog.NewLogLogger(w.log.Handler(), slog.LevelDebug),
	}
	return server.Serve(l)
}

// ServeHTTP serves one request to the proxy.
func (w *wayOut) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		w.connect(out, r)
	case r.URL.IsAbs() && r.URL.Scheme == "http" && r.URL.Host != "":
		w.plain.ServeHTTP(out, r)
	case r.URL.IsAbs():
		http.Error(out, "this proxy forwards http:// requests; for "+r.URL.Scheme+" use CONNECT", http.StatusBadRequest)
	default:
		http.Error(out, "this is the sandbox's HTTP proxy: send CONNECT or a request with an absolute URL", http.StatusBadRequest)
	}
}

func (w *wayOut) connect(out http.ResponseWriter, r *http.Request) {
	address := r.Host
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "443")
	}
	target, err := w.dial(r.Context(), address)
	if err != nil {
		refuseRequest(out, r, err)
		return
	}
	client, buffered, err := http.NewResponseController(out).Hijack()
	if err != nil {
		target.Close()
		http.Error(out, "cannot take the connection over", http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		target.Close()
		client.Close()
		return
	}
	if n := buffered.Reader.Buffered(); n > 0 {
		early, _ := buffered.Peek(n)
		if _, err := target.Write(early); err != nil {
			target.Close()
			client.Close()
			return
		}
	}
	tunnel.Join(client, target)
}

// refuseRequest says which rule refused, or what the network said.
func refuseRequest(out http.ResponseWriter, r *http.Request, err error) {
	host := r.Host
	if r.Method != http.MethodConnect && r.URL.Host != "" {
		host = r.URL.Host
	}
	var no *tunnel.Refusal
	switch {
	case errors.As(err, &no) && no.Denied:
		out.Header().Set("X-Squad-Refused", "policy")
		http.Error(out, fmt.Sprintf("connection to %s refused by policy: %s", host, no.Reason), http.StatusForbidden)
	case errors.As(err, &no):
		http.Error(out, fmt.Sprintf("cannot connect to %s: %s", host, no.Reason), http.StatusBadGateway)
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(out, fmt.Sprintf("cannot connect to %s: no answer in time", host), http.StatusGatewayTimeout)
	default:
		http.Error(out, fmt.Sprintf("cannot connect to %s: %s", host, err), http.StatusBadGateway)
	}
}

// serveInternal carries connections to squad.internal home as they are.
func (w *wayOut) serveInternal(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			target, err := w.dial(context.Background(), InternalHost+":80")
			if err != nil {
				_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"+
					"the sandbox cannot reach its host: "+strings.ReplaceAll(err.Error(), "\r\n", " ")+"\n")
				c.Close()
				return
			}
			tunnel.Join(c, target)
		}()
	}
}
