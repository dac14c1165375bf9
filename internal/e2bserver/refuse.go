package e2bserver

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"
	"sync"

	squad "agentsquad"
)

// Refusals of the data plane.
var (
	errNoSandbox     = errors.New("The sandbox was not found")                   //nolint:staticcheck // shown as it is
	errPortClosed    = errors.New("The sandbox is running but port is not open") //nolint:staticcheck // shown as it is
	errInternalRoute = errors.New("internal route")
)

// dataError is the body of a refusal of the data plane.
type dataError struct {
	SandboxID string `json:"sandboxId"`
	Message   string `json:"message"`
	Port      int    `json:"port,omitempty"`
	Code      int    `json:"code"`
}

// refuse answers a request that does not reach a sandbox: JSON for programs, a
// page for people.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, t target, err error) {
	body := dataError{SandboxID: t.id, Code: http.StatusBadGateway}
	switch {
	case errors.Is(err, errInternalRoute):
		allowOrigin(w.Header())
		writeJSON(w, http.StatusNotFound, errorBody{Code: http.StatusNotFound, Message: "Not found"})
		return
	case errors.Is(err, errNoSandbox):
		body.Message = errNoSandbox.Error()
	case errors.Is(err, errPortClosed):
		body.Message, body.Port = errPortClosed.Error(), t.port
	default:
		var e *squad.Error
		if errors.As(err, &e) {
			known := bodyOf(err)
			body.Code, body.Message = known.Code, known.Message
		} else {
			body.Message = "The sandbox did not answer"
			s.log.WarnContext(r.Context(), "request not passed on", "sandbox_id", t.id, "port", t.port, "error", err)
		}
	}
	allowOrigin(w.Header())
	if isBrowser(r) {
		writePage(w, body)
		return
	}
	writeJSON(w, body.Code, body)
}

// isBrowser says whether a person looks at the answer.
func isBrowser(r *http.Request) bool {
	return strings.HasPrefix(r.UserAgent(), "Mozilla/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

func writePage(w http.ResponseWriter, body dataError) {
	hint := "It may have been killed or paused, or its time is over."
	switch body.Code {
	case http.StatusForbidden:
		hint = "Its owner closed its ports to the public."
	case http.StatusBadGateway:
		if body.Port > 0 {
			hint = fmt.Sprintf("Start a server on port %d inside the sandbox and load this page again.", body.Port)
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(body.Code)
	fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><title>%d · sandbox</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1rem}code{font-size:.9em}</style>
<h1>%s</h1><p>%s</p><p>Sandbox <code>%s</code></p></html>
`, body.Code, html.EscapeString(body.Message), hint, html.EscapeString(body.SandboxID))
}

// buffers lends the proxy its copy buffers.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{pool: sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}}
}

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte { return *b.pool.Get().(*[]byte) }

// Put implements httputil.BufferPool.
func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }
