package e2bsdk_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"agentsquad/internal/e2bserver"
)

// outside gives sandboxes a small internet: names that resolve to public
// addresses behind which a server of the test listens, and names that lie.
func outside(t *testing.T) func(*e2bserver.Config) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "outside says hello to %s", r.Host)
	}))
	t.Cleanup(web.Close)
	names := map[string]string{
		"one.test": "203.0.113.1", "two.test": "203.0.113.2", "sub.one.test": "203.0.113.3",
		"lies.test": "127.0.0.1", "meta.test": "169.254.169.254", "inner.test": "10.0.0.1",
	}
	return func(c *e2bserver.Config) {
		c.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
			if text, ok := names[host]; ok {
				return []netip.Addr{netip.MustParseAddr(text)}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if addr := netip.MustParseAddrPort(address); !netip.MustParsePrefix("203.0.113.0/24").Contains(addr.Addr()) {
				return nil, fmt.Errorf("test: a forbidden address was dialled: %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, web.Listener.Addr().String())
		}
	}
}
