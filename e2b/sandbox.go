package e2b

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"agentsquad/internal/envdpb/filesystem/filesystemconnect"
	"agentsquad/internal/envdpb/process/processconnect"
)

// Sandbox is a handle to one sandbox. It is safe for concurrent use and holds
// no connection: dropping it costs nothing and ends nothing.
type Sandbox struct {
	// ID names the sandbox to the control plane.
	ID string
	// TemplateID is what it was made of.
	TemplateID string
	// EnvdVersion is the version of the daemon inside.
	EnvdVersion string
	// Domain that the sandbox's host names end in.
	Domain string

	// Commands runs programs in the sandbox.
	Commands *Commands
	// Pty runs programs on a terminal.
	Pty *Pty
	// Files reads and writes the sandbox's files.
	Files *Files

	client       *Client
	accessToken  string
	trafficToken string
	process      processconnect.ProcessClient
	filesystem   filesystemconnect.FilesystemClient
}

// EnvdPort is where the daemon inside a sandbox listens.
const EnvdPort = 49983

func (c *Client) handle(w wireSandbox, op string) (*Sandbox, error) {
	if w.SandboxID == "" {
		return nil, &Error{Op: op, Message: "answer names no sandbox"}
	}
	sb := Sandbox{ID: w.SandboxID, TemplateID: w.TemplateID, EnvdVersion: w.EnvdVersion}
	if w.AccessToken != nil {
		sb.accessToken = *w.AccessToken
	}
	if w.TrafficToken != nil {
		sb.trafficToken = *w.TrafficToken
	}
	if w.Domain != nil {
		sb.Domain = *w.Domain
	}
	return c.sandbox(sb), nil
}

func (c *Client) sandbox(sb Sandbox) *Sandbox {
	sb.client = c
	if sb.Domain == "" {
		sb.Domain = c.cfg.Domain
	}
	s := &sb
	rpc := &http.Client{Transport: envdTransport{sb: s, next: c.transport(), rpc: true}, CheckRedirect: noRedirect}
	var opts []connect.ClientOption
	if c.cfg.JSON {
		opts = append(opts, connect.WithProtoJSON())
	}
	s.process = processconnect.NewProcessClient(rpc, s.envdURL(), opts...)
	s.filesystem = filesystemconnect.NewFilesystemClient(rpc, s.envdURL(), opts...)
	s.Commands = &Commands{sb: s}
	s.Pty = &Pty{sb: s}
	s.Files = &Files{sb: s}
	return s
}

// Client returns the client that made the handle.
func (s *Sandbox) Client() *Client { return s.client }

// Info tells about the sandbox.
func (s *Sandbox) Info(ctx context.Context) (SandboxInfo, error) { return s.client.Get(ctx, s.ID) }

// Kill ends the sandbox; nil also where it is gone already.
func (s *Sandbox) Kill(ctx context.Context) error {
	_, err := s.client.Kill(ctx, s.ID)
	return err
}

// Running asks the daemon inside whether it is there. A sandbox that is paused,
// killed or timed out is not.
func (s *Sandbox) Running(ctx context.Context) (bool, error) {
	resp, err := s.envd(ctx, http.MethodGet, "/health", nil, nil)
	if errors.Is(err, ErrSandboxGone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, resp.Body.Close()
}

// isGone says whether the control plane does not know the sandbox.
func isGone(err error) bool { return errors.Is(err, ErrSandboxGone) }

// cutShort explains a stream that broke: a sandbox that ended takes its streams
// with it, and only the daemon's silence tells that from a bad network.
func (s *Sandbox) cutShort(ctx context.Context, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Kind != nil && !errors.Is(e, ErrBusy) || ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if running, probe := s.Running(ctx); probe == nil && !running {
		return &Error{Op: e.Op, Kind: ErrSandboxGone, Message: "sandbox was killed or reached its end of life", Err: err}
	}
	return err
}

// atLeast says whether the daemon inside has at least this version. An unknown
// version counts as new.
func (s *Sandbox) atLeast(version string) bool {
	have, want := numbers(s.EnvdVersion), numbers(version)
	if have == nil {
		return true
	}
	for i := range want {
		if have[i] != want[i] {
			return have[i] > want[i]
		}
	}
	return true
}

func numbers(version string) []int {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return nil
	}
	out := make([]int, 3)
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return nil
		}
		out[i] = n
	}
	return out
}
