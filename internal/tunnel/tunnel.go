// Package tunnel carries everything between a sandbox and its host over one
// connection: many independent streams with flow control, opened by either side.
//
// Each stream begins with one header line (JSON, at most 4 KiB) that says what
// it is for. Streams that end at a socket of the other side ([KindPort],
// [KindEgress]) are answered with one reply line before data flows, so that the
// opener learns why a connection was refused. The others carry HTTP/1.1.
//
// The host side is [Server], the side inside the sandbox is [Client], kept alive
// over restarts of the host and restores of the sandbox by [Link]. There is no
// keep-alive: the carrier is a unix socket, whose death is always seen, and a
// hundred idle sandboxes must cost nothing.
//
// Connections returned here have CloseWrite for half-close. Close gives up both
// directions: unread data is thrown away and the other side is told to stop.
//
// A session runs two goroutines of its own, one for accepting, and one per
// accepted stream; all end when the session does.
package tunnel

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// Kinds of streams.
const (
	KindEnvd     = "envd"     // host to sandbox: HTTP/1.1 of the data plane, callers authenticate
	KindControl  = "control"  // host to sandbox: the same handlers, called by the host itself: no token asked
	KindPort     = "port"     // host to sandbox: raw TCP to a loopback port inside
	KindEgress   = "egress"   // sandbox to host: raw TCP to host:port, if policy allows
	KindInternal = "internal" // sandbox to host: HTTP/1.1 to the host's own handler, squad.internal

	kindReset = "reset" // both ways: the opener no longer reads the stream with this number
)

const maxLine = 4096

// Header opens a stream and says where it leads.
type Header struct {
	Kind   string `json:"kind"`
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`
	Stream uint32 `json:"stream,omitempty"`
}

// Replied says whether the accepting side must answer with [Accept], [Refuse]
// or [Deny] before data flows.
func (h Header) Replied() bool { return h.Kind == KindPort || h.Kind == KindEgress }

// ParseHeader reads a header line and refuses one that is malformed or names
// an impossible target. Unknown kinds pass: the accepting room refuses them.
func ParseHeader(line []byte) (Header, error) {
	var h Header
	if len(line) > maxLine {
		return h, fmt.Errorf("parse header: longer than %d bytes", maxLine)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return Header{}, fmt.Errorf("parse header: %w", err)
	}
	if err := h.check(); err != nil {
		return Header{}, fmt.Errorf("parse header: %w", err)
	}
	return h, nil
}

func (h Header) check() error {
	switch {
	case h.Kind == "":
		return fmt.Errorf("kind is missing")
	case h.Port < 0 || h.Port > 65535:
		return fmt.Errorf("port %d is out of range", h.Port)
	case h.Replied() && h.Port == 0:
		return fmt.Errorf("%s needs a port", h.Kind)
	case h.Kind == KindEgress && h.Host == "":
		return fmt.Errorf("egress needs a host")
	case len(h.Host) > 255:
		return fmt.Errorf("host is longer than 255 bytes")
	case strings.ContainsFunc(h.Host, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '/' || r == '@' }):
		return fmt.Errorf("host %q has a forbidden character", h.Host)
	}
	return nil
}

// Refusal is the error of [Session.Open] when the other side answered that it
// will not or cannot connect.
type Refusal struct {
	Reason string `json:"error,omitempty"`
	// Denied says that a rule refused, not the network.
	Denied bool `json:"denied,omitempty"`
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

type reply struct {
	OK bool `json:"ok,omitempty"`
	Refusal
}

// Accept tells the opener of a replied stream that data may flow.
func Accept(c net.Conn) error { return writeLine(c, reply{OK: true}) }

// Refuse tells the opener that the target cannot be reached, and closes c.
func Refuse(c net.Conn, reason string) error { return refuse(c, Refusal{Reason: reason}) }

// Deny tells the opener which rule forbids the target, and closes c.
func Deny(c net.Conn, rule string) error { return refuse(c, Refusal{Reason: rule, Denied: true}) }

func refuse(c net.Conn, r Refusal) error {
	defer c.Close()
	if len(r.Reason) > maxLine/8 { // escapes can make it several times longer
		r.Reason = strings.ToValidUTF8(r.Reason[:maxLine/8], "")
	}
	if r.Reason == "" {
		r.Reason = "refused"
	}
	return writeLine(c, reply{Refusal: r})
}

func writeLine(c net.Conn, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	if len(line) > maxLine {
		return fmt.Errorf("write line: longer than %d bytes", maxLine)
	}
	if _, err := c.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	return nil
}
