package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// fetchInto brings upstream's branches and tags into dir, which is made where it
// does not exist. Refs outside refs/heads and refs/tags are left alone.
func (m *Mirror) fetchInto(ctx context.Context, dir string, progress func(Progress)) error {
	r := m.keeper.cfg.Runner
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		if err := initBare(ctx, r, dir); err != nil {
			return err
		}
	}
	auth, err := m.Auth(ctx)
	if err != nil {
		return err
	}
	head := ""
	// Which branch is the default changes rarely; asking costs another round trip.
	if dir != m.dir || time.Since(m.asked) > time.Minute {
		if head, err = upstreamHead(ctx, r, m.src.URL, auth); err != nil {
			return err
		}
		m.asked = time.Now()
	}
	args := []string{"fetch", "--prune", "--no-auto-gc", "--no-write-fetch-head", "--force"}
	if progress != nil {
		args = append(args, "--progress")
	}
	args = append(args, "--", m.src.URL, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	_, _, err = r.RunRetry(ctx, Call{
		Dir: dir, Args: args, Auth: auth, Progress: progress, Timeout: m.keeper.cfg.FetchTimeout,
		// A damaged pack from upstream must not enter, and a mirror of a large
		// history is one pack, not ten thousand loose files.
		Config: []string{"fetch.unpackLimit=100"},
	})
	if err != nil {
		return err
	}
	if head != "" {
		if _, err := r.Line(ctx, dir, "symbolic-ref", "HEAD", head); err != nil {
			return fmt.Errorf("set head of mirror: %w", err)
		}
	}
	return nil
}

// initBare makes a bare repository. Its objects are readable to all whatever the
// server's umask is: sandboxes borrow them as another user. The folder itself is
// not, and only its objects are mounted.
func initBare(ctx context.Context, r *Runner, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make mirror folder: %w", err)
	}
	if _, err := r.Run(ctx, Call{Dir: dir, Args: []string{"init", "--bare", "--quiet", "--template=", "--shared=0644"}}); err != nil {
		return fmt.Errorf("make mirror: %w", err)
	}
	return nil
}

// upstreamHead asks which branch is upstream's default; "" where it does not say,
// as an empty repository of old servers.
func upstreamHead(ctx context.Context, r *Runner, url string, auth Auth) (string, error) {
	res, _, err := r.RunRetry(ctx, Call{Args: []string{"ls-remote", "--symref", "--", url, "HEAD"}, Auth: auth, Timeout: time.Minute})
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(res.Stdout), "\n") {
		rest, ok := strings.CutPrefix(line, "ref: ")
		if !ok {
			continue
		}
		if ref, _, _ := strings.Cut(rest, "\t"); ValidRef(ref) && strings.HasPrefix(ref, "refs/heads/") {
			return ref, nil
		}
	}
	return "", nil
}

// DefaultBranch returns the branch that HEAD names, whether or not it has a commit.
func (m *Mirror) DefaultBranch(ctx context.Context) (string, error) {
	ref, err := m.keeper.cfg.Runner.Line(ctx, m.dir, "symbolic-ref", "HEAD")
	if err != nil {
		return "", fmt.Errorf("read head of mirror: %w", err)
	}
	return strings.TrimPrefix(ref, "refs/heads/"), nil
}

// Limits beyond which [Mirror.Maintain] packs.
const (
	maxLoose = 2000
	maxPacks = 40
)

// Maintain packs a mirror that has become slow to read, and says whether it did. It
// drops no object, reachable or not, so that those who borrow objects never miss
// one.
func (m *Mirror) Maintain(ctx context.Context) (bool, error) {
	r := m.keeper.cfg.Runner
	out, err := r.Line(ctx, m.dir, "count-objects", "-v")
	if err != nil {
		return false, fmt.Errorf("count objects of mirror: %w", err)
	}
	counts := map[string]int{}
	for _, line := range strings.Split(out, "\n") {
		name, n, _ := strings.Cut(line, ": ")
		counts[name] = atoi(n, 0)
	}
	var args []string
	switch {
	case counts["packs"] > maxPacks:
		args = []string{"repack", "-a", "-d", "-l", "-k", "-q"}
	case counts["count"] > maxLoose:
		args = []string{"repack", "-d", "-l", "-q"}
	default:
		return false, nil
	}
	if _, err := r.Run(ctx, Call{Dir: m.dir, Args: args, Timeout: 30 * time.Minute}); err != nil {
		return false, fmt.Errorf("pack mirror: %w", err)
	}
	if _, err := r.Run(ctx, Call{Dir: m.dir, Args: []string{"commit-graph", "write", "--reachable"}, Timeout: 10 * time.Minute}); err != nil {
		return true, fmt.Errorf("write commit graph: %w", err)
	}
	return true, nil
}

// CreateBare makes a bare repository of the local forge with the given default
// branch; an existing one is left as it is.
func CreateBare(ctx context.Context, r *Runner, dir, defaultBranch string) error {
	if err := checkBranch("default_branch", defaultBranch); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return nil
	}
	if err := initBare(ctx, r, dir); err != nil {
		return err
	}
	if _, err := r.Line(ctx, dir, "symbolic-ref", "HEAD", "refs/heads/"+defaultBranch); err != nil {
		return fmt.Errorf("set default branch: %w", err)
	}
	return nil
}
