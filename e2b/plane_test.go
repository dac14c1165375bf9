package e2b_test

import (
	"net/http"
	"os/user"
	"testing"

	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
	"agentsquad/internal/envd"
)

// machine is a server whose sandboxes are the real daemon on this machine, with
// a directory of their own as home.
func machine(t testing.TB) e2btest.Options {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return e2btest.Options{Envd: func(_, token string) http.Handler {
		home := t.TempDir() // also as HOME: the profile of whoever runs the test is not our concern
		daemon := envd.NewServer(envd.Config{AccessToken: token, DefaultUser: me.Username, DefaultWorkdir: home, Env: map[string]string{"HOME": home}})
		t.Cleanup(func() { daemon.Close() })
		return daemon
	}}
}

// both runs a test over the binary and the JSON codec.
func both(t *testing.T, test func(t *testing.T, s *e2btest.Server, sb *e2b.Sandbox)) {
	t.Helper()
	for name, json := range map[string]bool{"proto": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := e2btest.New(machine(t))
			t.Cleanup(func() {
				s.CloseClientConnections()
				s.Close()
			})
			c, err := e2b.New(e2b.Config{APIKey: "e2b_00", APIURL: s.URL, SandboxURL: s.URL, JSON: json})
			if err != nil {
				t.Fatal(err)
			}
			sb, err := c.Create(t.Context(), e2b.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			test(t, s, sb)
		})
	}
}
