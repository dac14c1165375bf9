package git

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// changed is what one head did since it left the base, and what the base did
// since.
type changed struct {
	own, moved *footprint
}

// footprint is the set of places that a line of work touched: the files, the
// folders they are in (a file where the other has a folder), and the folders that
// lost or gained files (a folder that one side renames and the other adds to).
type footprint struct {
	files   map[string]bool
	blobs   []string // what the files hold now
	folders map[string]bool
	lost    map[string]bool
	gained  map[string]bool
}

func newFootprint() *footprint {
	return &footprint{files: map[string]bool{}, folders: map[string]bool{}, lost: map[string]bool{}, gained: map[string]bool{}}
}

func (f *footprint) add(status byte, blob, name string) {
	f.files[name] = true
	if !IsZero(blob) {
		f.blobs = append(f.blobs, blob)
	}
	switch status {
	case 'D':
		f.lost[path.Dir(name)] = true
	case 'A':
		f.gained[path.Dir(name)] = true
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if f.folders[dir] {
				break
			}
			f.folders[dir] = true
		}
	}
}

func (f *footprint) touches(o *footprint) bool {
	return meet(f.files, o.files) || meet(f.files, o.folders) || meet(f.folders, o.files) || meet(f.lost, o.gained) || meet(f.gained, o.lost)
}

func meet(a, b map[string]bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for name := range a {
		if b[name] {
			return true
		}
	}
	return false
}

// allChanges computes the footprints with one merge-base call per distinct head
// and one diff-tree process for all of them.
func allChanges(ctx context.Context, r *Runner, gitDir, base string, heads []Head) ([]changed, error) {
	forks := make([]string, len(heads))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, h := range heads {
		if !ValidSHA(h.SHA) {
			return nil, fmt.Errorf("head of %s is not a full object name", h.ID)
		}
		g.Go(func() error {
			res, err := r.Run(gctx, Call{Dir: gitDir, Args: []string{"merge-base", base, h.SHA}, Accept: []int{1}})
			forks[i] = strings.TrimSpace(string(res.Stdout))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var asked []Pair
	ask := func(from, to string) Pair {
		p := Pair{from, to}
		if from != to && from != "" && !slices.Contains(asked, p) {
			asked = append(asked, p)
		}
		return p
	}
	for i, h := range heads {
		ask(forks[i], h.SHA)
		ask(forks[i], base)
	}
	prints, err := diffNames(ctx, r, gitDir, asked)
	if err != nil {
		return nil, err
	}
	out := make([]changed, len(heads))
	for i, h := range heads {
		out[i] = changed{own: newFootprint(), moved: newFootprint()}
		if p := prints[Pair{forks[i], h.SHA}]; p != nil {
			out[i].own = p
		}
		if p := prints[Pair{forks[i], base}]; p != nil {
			out[i].moved = p
		}
	}
	return out, nil
}

// diffNames lists the changed paths of pairs of commits in one process.
func diffNames(ctx context.Context, r *Runner, gitDir string, pairs []Pair) (map[Pair]*footprint, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	trees, err := treesOf(ctx, r, gitDir, pairs)
	if err != nil {
		return nil, err
	}
	var in strings.Builder
	for _, p := range pairs {
		in.WriteString(trees[p.Ours] + " " + trees[p.Theirs] + "\n")
	}
	res, err := r.Run(ctx, Call{
		Dir: gitDir, Args: []string{"diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames"},
		Stdin: strings.NewReader(in.String()), MaxOutput: 256 << 20,
	})
	if err != nil {
		return nil, err
	}
	byTrees := map[string]*footprint{}
	var current *footprint
	words := strings.Split(string(res.Stdout), "\x00")
	for i := 0; i < len(words); i++ {
		w := words[i]
		// Each pair's answer begins with a line that names its two trees.
		for head, rest, found := strings.Cut(w, "\n"); found && len(head) >= 81; head, rest, found = strings.Cut(w, "\n") {
			current = newFootprint()
			byTrees[head] = current
			w = rest
		}
		// ":<mode> <mode> <blob> <blob> <status>", then the path.
		if f := strings.Fields(w); len(f) == 5 && w[0] == ':' && current != nil && i+1 < len(words) {
			i++
			current.add(f[4][0], f[3], words[i])
		}
	}
	out := map[Pair]*footprint{}
	for _, p := range pairs {
		out[p] = byTrees[trees[p.Ours]+" "+trees[p.Theirs]]
	}
	return out, nil
}

// treesOf resolves commits to trees in one process.
func treesOf(ctx context.Context, r *Runner, gitDir string, pairs []Pair) (map[string]string, error) {
	var order []string
	trees := map[string]string{}
	var in strings.Builder
	for _, p := range pairs {
		for _, sha := range []string{p.Ours, p.Theirs} {
			if _, seen := trees[sha]; !seen {
				trees[sha] = ""
				order = append(order, sha)
				in.WriteString(sha + "^{tree}\n")
			}
		}
	}
	res, err := r.Run(ctx, Call{Dir: gitDir, Args: []string{"cat-file", "--batch-check=%(objectname)"}, Stdin: strings.NewReader(in.String())})
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
	if len(lines) != len(order) {
		return nil, fmt.Errorf("read trees: %d answers for %d commits", len(lines), len(order))
	}
	for i, sha := range order {
		if !ValidSHA(lines[i]) {
			return nil, fmt.Errorf("read tree of %s: %s", sha, lines[i])
		}
		trees[sha] = lines[i]
	}
	return trees, nil
}
