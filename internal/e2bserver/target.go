package e2bserver

import (
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	squad "agentsquad"
)

// Headers of the data plane.
const (
	headerSandbox = "E2b-Sandbox-Id"
	headerPort    = "E2b-Sandbox-Port"
	headerTraffic = "E2b-Traffic-Access-Token"
)

// uploadPrefix is where builders of templates send files; the address itself is
// signed.
const uploadPrefix = "/e2b/uploads/"

// target is where a request of the data plane goes.
type target struct {
	id   string
	port int
	// byHost says that the request has an origin of its own. The others share
	// theirs with the page of squad and must not touch its cookies.
	byHost bool
}

var previewHost = regexp.MustCompile(`^([0-9]{1,5})-([a-z0-9]{1,64})(-[a-z0-9]+)?\.(.+)$`)

// ownID is the form of our identifiers, which no other host name has by chance.
var ownID = regexp.MustCompile(`^i[a-z0-9]{20}$`)

// preview takes the host of a request apart, "<port>-<sandbox>.<domain>". A name
// that only looks so, as in 1-prod.example.com, is not ours.
func (s *Server) preview(r *http.Request) (port, id string, ok bool) {
	m := previewHost.FindStringSubmatch(hostOnly(r.Host))
	if m == nil || !ownID.MatchString(m[2]) && m[4] != hostOnly(s.cfg.Domain) {
		return "", "", false
	}
	return m[1], m[2], true
}

// Claims says whether a request is E2B's, where one port serves all of squad: it
// carries an API key, names a sandbox in a header or in its host, is a signed
// address of a file or an upload, or asks before sending one of those headers.
func (s *Server) Claims(r *http.Request) bool {
	_, _, isPreview := s.preview(r)
	if isPreview || r.Header.Get("X-API-Key") != "" || r.Header.Get(headerSandbox) != "" {
		return true
	}
	if r.URL.Path == "/files" && r.URL.Query().Get("signature") != "" {
		return true
	}
	return isPreflight(r) || r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, uploadPrefix)
}

// isPreflight says whether a browser asks to send E2B's headers.
func isPreflight(r *http.Request) bool {
	if r.Method != http.MethodOptions {
		return false
	}
	asked := strings.ToLower(r.Header.Get("Access-Control-Request-Headers"))
	return strings.Contains(asked, "x-api-key") || strings.Contains(asked, "e2b-sandbox-id")
}

func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return strings.ToLower(host)
	}
	return strings.ToLower(hostport)
}

// targetOf finds where a request goes; ok is false for the control plane. The
// host decides before headers, so that a page in one sandbox cannot name another
// on its own origin.
func (s *Server) targetOf(r *http.Request) (t target, ok bool, err error) {
	if text, id, ok := s.preview(r); ok {
		port, err := parsePort(text)
		return target{id: id, port: port, byHost: true}, true, err
	}
	if id := r.Header.Get(headerSandbox); id != "" {
		t.id = bareID(id)
		if !sandboxID.MatchString(t.id) {
			return t, true, squad.Errorf(squad.CodeInvalid, "%q is not the identifier of a sandbox", id)
		}
		t.port = envdPort
		if text := r.Header.Get(headerPort); text != "" {
			t.port, err = parsePort(text)
		}
		return t, true, err
	}
	if r.URL.Path == "/files" && r.URL.Query().Get("signature") != "" {
		return target{id: s.signed(r), port: envdPort}, true, nil
	}
	return t, false, nil
}

func parsePort(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 65535 {
		return 0, squad.Errorf(squad.CodeInvalid, "%q is not a port", text)
	}
	return n, nil
}

// signed finds the sandbox whose token signed the address of a file. Such an
// address names no sandbox; the token does. Envd checks it again, and its time.
func (s *Server) signed(r *http.Request) string {
	q := r.URL.Query()
	operation := "read"
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		operation = "write"
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id := range s.boxes {
		want := fileSignature(q.Get("path"), operation, q.Get("username"), s.seed.envd(id), q.Get("signature_expiration"))
		if same(want, q.Get("signature")) {
			return id
		}
	}
	return ""
}
