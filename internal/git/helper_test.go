package git_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
)

// watched keeps what programs were started with.
type watched struct {
	git.Host
	mu  sync.Mutex
	all strings.Builder
}

func (w *watched) Run(ctx context.Context, c git.Command) (int, error) {
	w.mu.Lock()
	w.all.WriteString(strings.Join(append(append([]string{}, c.Argv...), c.Env...), "\n") + "\n")
	w.mu.Unlock()
	return w.Host.Run(ctx, c)
}

func TestHelper_GitHasTheSecretAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	const secret = "ghs_averysecretsecret0123456789"
	root := t.TempDir()
	gittest.Bare(t, root, "shop.git", "main")
	srv := gittest.Serve(t, root, secret)
	w := &watched{}
	dir := filepath.Join(t.TempDir(), "shop")
	co, err := new(git.Checkouts).Open(git.New(git.Config{Exec: w}), "host", dir)
	must(t, err)
	auth := git.Auth{URL: srv.URL + "/shop.git", Secret: secret, Helper: true}
	for range 2 { // a clone, then a fetch
		_, err := co.Clone(t.Context(), git.CloneOptions{URL: srv.URL + "/shop.git", Auth: auth})
		must(t, err)
	}
	if text := w.all.String(); strings.Contains(text, secret) || !strings.Contains(text, "credential."+auth.URL+".helper") {
		t.Errorf("programs were started with\n%s", text)
	}
	if out, err := gittest.Try(dir, "grep", "--no-index", "-r", secret, "."); err == nil {
		t.Errorf("the checkout holds it: %s", out)
	}
	// For another address there is none, and a wrong one is an error, not a question.
	for _, a := range []git.Auth{{URL: srv.URL + "/other.git", Secret: secret, Helper: true}, {URL: auth.URL, Secret: "wrong", Helper: true}} {
		if err := co.Fetch(t.Context(), a); git.KindOf(err) != git.KindAuth || strings.Contains(err.Error(), secret) {
			t.Errorf("with %s: %v", a.URL, err)
		}
	}
}
