package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	squad "agentsquad"
	"agentsquad/internal/git"
)

// TreeConfig says where and how images of checkouts are made.
type TreeConfig struct {
	Dir string // holds the images
	// WriteImage makes an image of a folder. Nil means there are none.
	WriteImage func(ctx context.Context, dir, out string) error
	// ObjectsPath is the folder inside sandboxes under which the objects of a mirror
	// are mounted read-only, by repository; default /opt/squad/objects.
	ObjectsPath string
	// Origin is the address of the gateway inside a sandbox; default
	// http://squad.internal.
	Origin string
	// MaxAge is how long an image stays after its last use. It must be longer than
	// any sandbox lives; default 48 hours.
	MaxAge time.Duration
}

// Tree is a checkout ready to be mounted copy-on-write.
type Tree struct {
	Image  string // file on the host
	Commit string // "" in an empty repository: there is no image then
	Branch string
	Path   string // where it belongs inside the sandbox
	// Objects is the mirror's folder of objects on the host, to be mounted
	// read-only at ObjectsPath.
	Objects     string
	ObjectsPath string
}

// trees keeps the images.
type trees struct {
	cfg TreeConfig

	mu      sync.Mutex
	flights map[string]*treeFlight
	locks   map[string]*sync.Mutex // by folder
	swept   time.Time
}

type treeFlight struct {
	done chan struct{}
	err  error
}

func newTrees(cfg TreeConfig) *trees {
	if cfg.ObjectsPath == "" {
		cfg.ObjectsPath = "/opt/squad/objects"
	}
	if cfg.Origin == "" {
		cfg.Origin = "http://squad.internal"
	}
	if cfg.MaxAge == 0 {
		cfg.MaxAge = 48 * time.Hour
	}
	return &trees{cfg: cfg, flights: map[string]*treeFlight{}, locks: map[string]*sync.Mutex{}}
}

// PrepareTree makes, or finds, the image of a repository's branch as it is upstream
// now. Callers that ask for the same at once share the work. CodeUnavailable: this
// server makes no images; clone instead.
func (g *Gateway) PrepareTree(ctx context.Context, repositoryID, branch string) (Tree, error) {
	var tree Tree
	if g.cfg.Trees.WriteImage == nil || g.cfg.Trees.Dir == "" {
		return tree, squad.Errorf(squad.CodeUnavailable, "this server makes no images of repositories")
	}
	repo, err := g.cfg.Store.Repository(ctx, repositoryID)
	if err != nil {
		return tree, err
	}
	if branch == "" {
		branch = repo.DefaultBranch
	}
	if !git.ValidBranch(branch) {
		return tree, squad.Invalid("branch", "%q is not a valid branch name", branch)
	}
	mirror, err := g.Mirror(repo)
	if err != nil {
		return tree, err
	}
	if err := mirror.Fetch(ctx, nil); err != nil && (!mirror.Exists() || git.KindOf(err) != git.KindNetwork) {
		return tree, git.Explain(err, "fetch "+repo.Name)
	}
	tree = Tree{
		Branch: branch, Path: CheckoutPath(repo), Objects: filepath.Join(mirror.Dir(), "objects"),
		ObjectsPath: g.trees.cfg.ObjectsPath + "/" + repo.ID,
	}
	tree.Commit, err = g.runner.Resolve(ctx, mirror.Dir(), "refs/heads/"+branch)
	if git.KindOf(err) == git.KindNotFound {
		tree.Commit = ""
		return tree, nil
	}
	if err != nil {
		return tree, err
	}
	tree.Image = g.trees.file(repo.ID, tree)
	image := func(ctx context.Context) error { return g.makeImage(ctx, repo, mirror, tree) }
	if err = g.trees.once(ctx, tree.Image, image); err != nil && mirror.Doubt(err) {
		if err = mirror.Fetch(ctx, nil); err == nil {
			err = g.trees.once(ctx, tree.Image, image)
		}
	}
	return tree, err
}

// CheckoutPath is where a repository's checkout lies inside sandboxes.
func CheckoutPath(repo squad.Repository) string {
	if repo.Policy.Path != "" {
		return repo.Policy.Path
	}
	name := repo.Name[strings.LastIndexByte(repo.Name, '/')+1:]
	return "/home/user/" + strings.TrimSuffix(name, ".git")
}

// file names an image by all that its content depends on.
func (t *trees) file(repositoryID string, tree Tree) string {
	const form = "2" // counts changes of what is inside
	sum := sha256.Sum256([]byte(strings.Join([]string{form, tree.Commit, tree.Branch, tree.ObjectsPath, t.cfg.Origin}, "\x00")))
	return filepath.Join(t.cfg.Dir, repositoryID, tree.Commit[:12]+"-"+hex.EncodeToString(sum[:6])+".erofs")
}

// once makes a file unless it exists; those who ask meanwhile wait for it.
func (t *trees) once(ctx context.Context, file string, work func(context.Context) error) error {
	t.mu.Lock()
	now := time.Now()
	// The time of the file is that of its last use; touching it and looking for it
	// is one step, so that it is not swept away in between.
	if err := os.Chtimes(file, now, now); err == nil {
		t.mu.Unlock()
		return nil
	}
	f := t.flights[file]
	if f == nil {
		f = &treeFlight{done: make(chan struct{})}
		t.flights[file] = f
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Minute)
			defer cancel()
			f.err = work(ctx)
			t.mu.Lock()
			delete(t.flights, file)
			t.mu.Unlock()
			close(f.done)
		}()
	}
	t.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.done:
		return f.err
	}
}

// makeImage checks the commit out on the host and turns the folder into an image.
// The folder is kept, so that the next commit costs only what differs.
func (g *Gateway) makeImage(ctx context.Context, repo squad.Repository, m *git.Mirror, tree Tree) (err error) {
	folder := filepath.Dir(tree.Image)
	defer g.trees.lock(folder)()
	work := filepath.Join(folder, checkoutName)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("make checkout: %w", err)
	}
	now := time.Now()
	if err := os.Chtimes(work, now, now); err != nil {
		return fmt.Errorf("make checkout: %w", err)
	}
	spec := git.TreeSpec{
		Dir: work, Objects: tree.Objects, Alternate: tree.ObjectsPath, Commit: tree.Commit, Branch: tree.Branch,
		Origin: g.trees.cfg.Origin + "/git/" + repo.ID + ".git",
	}
	if err := git.CheckoutTree(ctx, g.runner, spec); err != nil {
		g.cfg.Log.WarnContext(ctx, "checkout is made anew", "repository_id", repo.ID, "error", err)
		if err := errors.Join(os.RemoveAll(work), os.MkdirAll(work, 0o755)); err != nil {
			return fmt.Errorf("clear checkout: %w", err)
		}
		if err := git.CheckoutTree(ctx, g.runner, spec); err != nil {
			return err
		}
	}
	part := tree.Image + ".part"
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	if err := g.cfg.Trees.WriteImage(ctx, work, part); err != nil {
		return fmt.Errorf("make image of %s at %.10s: %w", repo.Name, tree.Commit, err)
	}
	if err := os.Rename(part, tree.Image); err != nil {
		return fmt.Errorf("put image in place: %w", err)
	}
	return nil
}

const checkoutName = "checkout"

// lock makes work in one folder single.
func (t *trees) lock(folder string) (unlock func()) {
	t.mu.Lock()
	l := t.locks[folder]
	if l == nil {
		l = &sync.Mutex{}
		t.locks[folder] = l
	}
	t.mu.Unlock()
	l.Lock()
	return l.Unlock
}

// collect removes images that nobody used for long, and what a killed server left.
func (t *trees) collect(ctx context.Context, log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cfg.Dir == "" || time.Since(t.swept) < 10*time.Minute {
		return
	}
	t.swept = time.Now()
	files, err := filepath.Glob(filepath.Join(t.cfg.Dir, "*", "*"))
	if err != nil {
		return
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			continue
		}
		age := t.cfg.MaxAge
		if strings.HasSuffix(f, ".part") {
			age = time.Hour
		}
		if time.Since(info.ModTime()) > age {
			if err := os.RemoveAll(f); err != nil {
				log.WarnContext(ctx, "old image stays", "file", f, "error", err)
			}
		}
	}
}
