package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"agentsquad"
)

// Lent is where folders that were lent to a sandbox appear inside, each by its name.
const Lent = insideShown + "/lent"

var lentPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// Lend shows the files of a host folder to the sandbox while it lives: read-only, at
// Lent/name. Mounts are fixed when a sandbox is made, so they are hard links in a
// folder that every sandbox has. They stay when the original goes; what the original
// gets later is shown when it is lent again. A folder on another file system is
// [squad.CodeRule].
func (s *Sandbox) Lend(ctx context.Context, name, dir string) error {
	if !lentPattern.MatchString(name) {
		return squad.Invalid("name", "%q cannot name a lent folder", name)
	}
	if info, err := os.Stat(dir); !filepath.IsAbs(dir) || err != nil || !info.IsDir() {
		return squad.Invalid("dir", "%q is not a folder of this machine", dir)
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	if s.Info().Status.Final() {
		return squad.NotFound("sandbox", s.id)
	}
	return s.box.lend(ctx, filepath.Join(s.box.lent(), name), dir)
}

// lend links a folder; one that changes meanwhile is looked at again.
func (f folder) lend(ctx context.Context, to, from string) error {
	var err error
	for range 3 {
		if err = linkTree(ctx, from, to); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrPermission) {
		return squad.Wrap(squad.CodeRule, err, "%s cannot be lent: it is not on the file system of the sandboxes", from)
	}
	return err
}

// relend gives a new sandbox what the one that it comes from was lent; "" is nothing.
func (f folder) relend(ctx context.Context, from string) error {
	if _, err := os.Stat(from); from == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.lend(ctx, f.lent(), from)
}

// linkTree links all plain files below from into to, which may have some already.
// Those with the greater name come first: a pack of git before its index.
func linkTree(ctx context.Context, from, to string) error {
	var files []string
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755) //nolint:gosec // everybody inside reads it
		}
		if d.Type().IsRegular() {
			files = append(files, rel)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("lend %s: %w", from, err)
	}
	for _, rel := range slices.Backward(files) {
		if err := os.Link(filepath.Join(from, rel), filepath.Join(to, rel)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("lend %s: %w", from, err)
		}
	}
	return nil
}
