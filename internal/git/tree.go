package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// TreeSpec describes a checkout that is made on the host to be used elsewhere.
type TreeSpec struct {
	Dir       string // empty folder that becomes the checkout, or one of an earlier call
	Objects   string // objects folder of the repository on the host
	Alternate string // where that folder is seen from inside, written into the checkout
	Commit    string
	Branch    string
	Origin    string // address of the remote, as seen from inside
}

// preparedRef marks a checkout that knows no branch of its remote but one.
const preparedRef = "refs/squad/prepared"

// CheckoutTree checks a commit out into a folder that has no objects of its own: it
// borrows them from a repository that will be mounted beside it. Times of all files
// are fixed and the index is refreshed after that, with the comparison of files
// reduced to what an image keeps, so that the first git status inside finds
// everything clean without reading a file. A folder that an earlier call filled is
// moved to the new commit, which costs only what differs.
func CheckoutTree(ctx context.Context, r *Runner, s TreeSpec) error {
	if !ValidSHA(s.Commit) || !ValidBranch(s.Branch) || strings.ContainsAny(s.Alternate+s.Origin+s.Branch, "\n\"\\") {
		return errors.New("check out tree: unusable description")
	}
	gitDir := filepath.Join(s.Dir, ".git")
	if _, err := os.Stat(filepath.Join(gitDir, "HEAD")); err != nil {
		if _, err := r.Run(ctx, Call{Dir: s.Dir, Args: []string{"init", "--quiet", "--template="}}); err != nil {
			return fmt.Errorf("check out tree: %w", err)
		}
	}
	config := checkoutConfig(s.Origin, s.Branch, "\tcheckStat = minimal\n\ttrustctime = false\n")
	refs := fmt.Sprintf("# pack-refs with: peeled fully-peeled sorted \n%s refs/heads/%s\n%s refs/remotes/origin/%s\n%s %s\n",
		s.Commit, s.Branch, s.Commit, s.Branch, s.Commit, preparedRef)
	// The alternate is a path of the inside and of no use while the host works here.
	if err := writeFiles(gitDir, map[string]string{"config": config, "packed-refs": refs, "HEAD": "ref: refs/heads/" + s.Branch + "\n", "objects/info/alternates": ""}); err != nil {
		return fmt.Errorf("check out tree: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(gitDir, "index.lock")); err != nil {
		return fmt.Errorf("check out tree: %w", err)
	}
	env := []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + s.Objects, "GIT_OPTIONAL_LOCKS=1"}
	if _, err := r.Run(ctx, Call{Dir: s.Dir, Env: env, Args: []string{"read-tree", "--reset", "-u", s.Commit}, Timeout: 10 * time.Minute}); err != nil {
		return fmt.Errorf("check out tree: %w", err)
	}
	if err := fixTimes(ctx, s.Dir, time.Unix(1_000_000_000, 0)); err != nil {
		return fmt.Errorf("fix times of tree: %w", err)
	}
	if _, err := r.Run(ctx, Call{Dir: s.Dir, Env: env, Args: []string{"update-index", "-q", "--refresh"}, Timeout: 10 * time.Minute}); err != nil {
		return fmt.Errorf("refresh index of tree: %w", err)
	}
	if err := writeFiles(gitDir, map[string]string{"objects/info/alternates": s.Alternate + "\n"}); err != nil {
		return fmt.Errorf("check out tree: %w", err)
	}
	return nil
}

func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fixTimes gives all files outside .git one time in the past. Git takes files that
// are as young as its index for possibly changed and would read them all.
func fixTimes(ctx context.Context, dir string, at time.Time) error {
	stamp := []unix.Timespec{unix.NsecToTimespec(at.UnixNano()), unix.NsecToTimespec(at.UnixNano())}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if d.IsDir() {
			if d.Name() == ".git" && filepath.Dir(path) == dir {
				return fs.SkipDir
			}
			return nil
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, stamp, unix.AT_SYMLINK_NOFOLLOW)
	})
}
