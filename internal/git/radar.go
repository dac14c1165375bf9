package git

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Head is the newest commit of one line of work.
type Head struct {
	ID  string // the task's
	SHA string
}

// Overlap says that two heads, or a head and the base where B is empty, cannot be
// merged as they are.
type Overlap struct {
	A, B  string
	Files []FileConflict
}

// Radar merges each head with the base and with each other head, in memory, and
// returns those that clash, in the order of the heads. Pairs that change no common
// place are not merged at all, which makes the usual case cheap. The repository in
// gitDir stays as it is.
func Radar(ctx context.Context, r *Runner, gitDir, base string, heads []Head) ([]Overlap, error) {
	baseSHA, err := r.Resolve(ctx, gitDir, base)
	if err != nil {
		return nil, fmt.Errorf("radar: %w", err)
	}
	changes, err := allChanges(ctx, r, gitDir, baseSHA, heads)
	if err != nil {
		return nil, fmt.Errorf("radar: %w", err)
	}
	var pairs []Pair
	var names []Overlap
	for i, h := range heads {
		if h.SHA != baseSHA && changes[i].clashesWith(changes[i].moved) {
			pairs = append(pairs, Pair{h.SHA, baseSHA})
			names = append(names, Overlap{A: h.ID})
		}
		for j := i + 1; j < len(heads); j++ {
			if h.SHA != heads[j].SHA && changes[i].clashesWith(changes[j].own) {
				pairs = append(pairs, Pair{h.SHA, heads[j].SHA})
				names = append(names, Overlap{A: h.ID, B: heads[j].ID})
			}
		}
	}
	results, err := mergeMany(ctx, r, gitDir, pairs)
	if err != nil {
		return nil, fmt.Errorf("radar: %w", err)
	}
	var found []Overlap
	for i, m := range results {
		if !m.Clean {
			names[i].Files = m.Conflicts
			found = append(found, names[i])
		}
	}
	return found, nil
}

// mergeMany spreads the pairs over the processors.
func mergeMany(ctx context.Context, r *Runner, gitDir string, pairs []Pair) ([]MergeResult, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	scratch, err := NewScratch(gitDir)
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	workers := min(runtime.GOMAXPROCS(0), 8, (len(pairs)+15)/16)
	results := make([]MergeResult, len(pairs))
	size := (len(pairs) + workers - 1) / workers
	g, ctx := errgroup.WithContext(ctx)
	for start := 0; start < len(pairs); start += size {
		end := min(start+size, len(pairs))
		g.Go(func() error {
			part, err := MergeTree(ctx, r, gitDir, scratch.Env(), pairs[start:end])
			copy(results[start:], part)
			return err
		})
	}
	return results, g.Wait()
}

// changed is what one head did since it left the base, and what the base did
// since.
type changed struct {
	own, moved *footprint
}

func (c changed) clashesWith(other *footprint) bool { return c.own.touches(other) }

// footprint is the set of places that a line of work touched: the files, the
// folders they are in (a file where the other has a folder), and the folders that
// lost or gained files (a folder that one side renames and the other adds to).
type footprint struct {
	files   map[string]bool
	folders map[string]bool
	lost    map[string]bool
	gained  map[string]bool
}

func newFootprint() *footprint {
	return &footprint{files: map[string]bool{}, folders: map[string]bool{}, lost: map[string]bool{}, gained: map[string]bool{}}
}

func (f *footprint) add(status byte, name string) {
	f.files[name] = true
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
		Dir: gitDir, Args: []string{"diff-tree", "--stdin", "-r", "-z", "--name-status", "--no-renames"},
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
		if len(w) == 1 && current != nil && i+1 < len(words) {
			i++
			current.add(w[0], words[i])
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
