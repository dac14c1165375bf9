package nodes

import (
	"context"
	"os"
	"testing"
	"time"

	"agentsquad/test/house"
)

// server is one process of the built program, and its name among the nodes.
type server struct {
	*house.Server
	t    *testing.T
	name string
}

// folder is a short-named one: unix sockets of sandboxes lie in it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "squad-nodes-") //nolint:usetesting // unix sockets need a short path
	house.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// newServer prepares a server; env are its settings beyond the defaults.
func newServer(t *testing.T, name string, env ...string) *server {
	t.Helper()
	return &server{Server: house.New(t, []string{"--pool-max", "0"}, env), t: t, name: name}
}

// refused starts a server that must not come up, and returns what it says.
func (s *server) refused() string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	s.Prepare()
	house.Must(s.t, s.Cmd.Start())
	done := make(chan error, 1)
	go func() { done <- s.Cmd.Wait() }()
	select {
	case err := <-done:
		if err == nil {
			s.t.Errorf("%s ended without an error", s.name)
		}
	case <-ctx.Done():
		_ = s.Cmd.Process.Kill()
		s.t.Errorf("%s started, although it must not:\n%s", s.name, s.Log.String())
	}
	return s.Log.String()
}
