package e2b

import (
	"fmt"
	"net/http"
	"net/url"
)

// Host returns the name under which a port of the sandbox is public, such as
// 3000-abc.e2b.app. On an installation without such names use
// [Sandbox.HTTPClient], which needs none.
func (s *Sandbox) Host(port int) string { return fmt.Sprintf("%d-%s.%s", port, s.ID, s.Domain) }

// HTTPClient returns a client whose every request, whatever host it names, goes
// to the port inside the sandbox. WebSocket libraries that take an http.Client
// or a RoundTripper (github.com/coder/websocket, for one) work with it. It does
// not follow redirects: their target may be a name that only the sandbox knows.
func (s *Sandbox) HTTPClient(port int) *http.Client {
	return &http.Client{Transport: s.Transport(port), CheckRedirect: noRedirect}
}

// Transport is the RoundTripper of [Sandbox.HTTPClient].
func (s *Sandbox) Transport(port int) http.RoundTripper {
	return portTransport{sb: s, port: port, next: s.client.transport()}
}

type portTransport struct {
	sb   *Sandbox
	port int
	next http.RoundTripper
}

func (t portTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	base, err := url.Parse(t.sb.portURL(t.port))
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = base.Scheme, base.Host, ""
	t.sb.route(req.Header, t.port)
	if t.sb.trafficToken != "" {
		req.Header.Set("E2b-Traffic-Access-Token", t.sb.trafficToken)
	}
	if req.Header.Get("Upgrade") != "" {
		return t.sb.client.upgrades.RoundTrip(req)
	}
	return t.next.RoundTrip(req)
}

// portURL is where a request for a port is sent: one address for all sandboxes
// where there is one, the port's own host name elsewhere.
func (s *Sandbox) portURL(port int) string {
	if s.client.cfg.SandboxURL != "" {
		return s.client.cfg.SandboxURL
	}
	return "https://" + s.Host(port)
}
