package e2bserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentsquad/internal/tunnel"
)

// EgressCounts says what a sandbox did with the network since it was taken up.
type EgressCounts struct {
	Allowed int64 // connections made
	Refused int64 // connections a rule refused
	Failed  int64 // connections that could not be made
	Sent    int64 // bytes
	Got     int64
}

type egressCounts struct{ allowed, refused, failed, sent, got atomic.Int64 }

// EgressCounts returns the counters of a live sandbox.
func (s *Server) EgressCounts(sandboxID string) (EgressCounts, bool) {
	b := s.find(sandboxID)
	if b == nil {
		return EgressCounts{}, false
	}
	c := &b.counts
	return EgressCounts{c.allowed.Load(), c.refused.Load(), c.failed.Load(), c.sent.Load(), c.got.Load()}, true
}

// Accept serves one stream that a sandbox opened towards the host: a connection
// to the outside, or HTTP to squad.internal. It owns the connection and returns
// when it is over. Give it to the runtime as its Accept.
func (s *Server) Accept(sandboxID string, h tunnel.Header, c net.Conn) {
	b := s.find(sandboxID)
	var run *live
	if b != nil {
		run = b.current()
	}
	if run == nil {
		refuseStream(h, c, "the sandbox is not running")
		return
	}
	defer context.AfterFunc(run.ctx, func() { c.Close() })()
	switch h.Kind {
	case tunnel.KindEgress:
		s.egress(run.ctx, b, h, c)
	case tunnel.KindInternal:
		s.serveInternal(run.ctx, b.id, c)
	default:
		c.Close()
	}
}

func refuseStream(h tunnel.Header, c net.Conn, why string) {
	if h.Replied() {
		_ = tunnel.Refuse(c, why)
		return
	}
	c.Close()
}

// dialTimeout bounds resolving and connecting.
const dialTimeout = 30 * time.Second

// denied is a refusal by a rule, as opposed to a failure.
type denied struct{ rule string }

// Error names the rule.
func (d *denied) Error() string { return "refused by rule: " + d.rule }

// egress connects a sandbox to the outside, if it may.
func (s *Server) egress(ctx context.Context, b *box, h tunnel.Header, c net.Conn) {
	out, err := s.dialOut(ctx, b, h.Host, h.Port)
	if err != nil {
		var d *denied
		if errors.As(err, &d) {
			b.counts.refused.Add(1)
			s.log.InfoContext(ctx, "egress refused", "sandbox_id", b.id, "host", h.Host, "port", h.Port, "rule", d.rule)
			_ = tunnel.Deny(c, fmt.Sprintf("%s:%d %s", h.Host, h.Port, d.Error()))
			return
		}
		b.counts.failed.Add(1)
		_ = tunnel.Refuse(c, fmt.Sprintf("%s:%d cannot be reached: %v", h.Host, h.Port, err))
		return
	}
	b.counts.allowed.Add(1)
	defer context.AfterFunc(ctx, func() { out.Close() })()
	if err := tunnel.Accept(c); err != nil {
		out.Close()
		c.Close()
		return
	}
	b.mu.Lock()
	b.outs[out] = struct{}{}
	b.mu.Unlock()
	b.cutForbidden() // the rules may have changed while it was made
	defer func() {
		b.mu.Lock()
		delete(b.outs, out)
		b.mu.Unlock()
	}()
	tunnel.Join(c, out)
}

// cutForbidden closes the connections that a new policy does not allow: a
// proxy inside may keep them for the next request.
func (b *box) cutForbidden() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for out := range b.outs {
		if b.policy.check(out.host, out.addr) != nil {
			_ = out.Close()
		}
	}
}

// dialOut checks the rules, resolves the name once, and connects to an address
// that passed: the name is not looked up again, so it cannot change between
// check and use.
func (s *Server) dialOut(ctx context.Context, b *box, host string, port int) (*outConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	b.mu.Lock()
	rules := b.policy
	b.mu.Unlock()
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	// Before the name is looked up: a question to DNS is a message by itself.
	if s.cfg.Egress != nil && b.owner == OwnerSquad {
		if ok, rule := s.cfg.Egress(b.id, host, port); !ok {
			return nil, &denied{rule}
		}
	}
	addrs, err := s.resolve(ctx, host, rules)
	if err != nil {
		return nil, err
	}
	var last error
	for _, addr := range addrs {
		addr = addr.Unmap().WithZone("")
		if last = rules.check(host, addr); last != nil {
			continue
		}
		var conn net.Conn
		if conn, last = s.cfg.Dial(ctx, "tcp", net.JoinHostPort(addr.String(), strconv.Itoa(port))); last == nil {
			return &outConn{Conn: conn, counts: &b.counts, host: host, addr: addr}, nil
		}
	}
	if last == nil {
		last = errors.New("the name has no address")
	}
	return nil, last
}

// resolve returns the addresses of a host. A name is not even looked up when
// everything but some names is closed: DNS would be a way out by itself.
func (s *Server) resolve(ctx context.Context, host string, rules *policy) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if !domainName.MatchString(strings.ToLower(host)) || strings.HasPrefix(host, "*") {
		return nil, &denied{"not a host name"}
	}
	if !rules.allowsName(host) && len(rules.allow) == 0 {
		if rule := rules.refuses(netip.IPv4Unspecified()); rule != "" {
			return nil, &denied{rule}
		}
	}
	addrs, err := s.cfg.Resolve(ctx, host)
	if err != nil {
		var dns *net.DNSError
		if errors.As(err, &dns) && dns.IsNotFound {
			return nil, errors.New("no such host")
		}
		return nil, fmt.Errorf("look up name: %w", err)
	}
	return addrs, nil
}

// outConn is a connection of a sandbox to the outside; it counts its bytes.
type outConn struct {
	net.Conn
	counts *egressCounts
	host   string // as the sandbox named it
	addr   netip.Addr
}

// Read counts what came.
func (c *outConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.counts.got.Add(int64(n))
	return n, err
}

// Write counts what went.
func (c *outConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.counts.sent.Add(int64(n))
	return n, err
}

// CloseWrite passes a half-close on where the network has one.
func (c *outConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// serveInternal serves HTTP on one stream: squad.internal of that sandbox.
func (s *Server) serveInternal(ctx context.Context, sandboxID string, c net.Conn) {
	h := http.NotFoundHandler()
	if s.cfg.Internal != nil {
		h = s.cfg.Internal(sandboxID)
	}
	l := &oneConn{conn: c, done: make(chan struct{})}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				l.finish()
			}
		},
	}
	_ = srv.Serve(l) // returns once the one connection is over
}

// oneConn is a listener of one connection; Accept blocks until that is over.
type oneConn struct {
	conn  net.Conn
	taken atomic.Bool
	over  atomic.Bool
	done  chan struct{}
}

// Accept returns the connection, then waits for its end.
func (l *oneConn) Accept() (net.Conn, error) {
	if l.taken.CompareAndSwap(false, true) {
		return l.conn, nil
	}
	<-l.done
	return nil, io.EOF
}

func (l *oneConn) finish() {
	if l.over.CompareAndSwap(false, true) {
		close(l.done)
	}
}

// Close implements [net.Listener].
func (l *oneConn) Close() error { l.finish(); return nil }

// Addr implements [net.Listener].
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
