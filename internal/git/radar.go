package git

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

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

// Radar finds lines of work that clash before anyone merges them. It remembers
// pairs of commits, so that a later scan merges only what is new. It is safe for
// concurrent use.
type Radar struct {
	r *Runner

	mu   sync.Mutex
	seen map[Pair][]FileConflict // nil for a clean pair
}

const maxSeen = 50_000

// NewRadar makes a radar.
func NewRadar(r *Runner) *Radar { return &Radar{r: r, seen: map[Pair][]FileConflict{}} }

// Scan merges each head with the base and with each other head, in memory, and
// returns those that clash, in the order of the heads. Pairs that change no common
// place are not merged at all, which makes the usual case cheap. The repository in
// gitDir stays as it is.
func (d *Radar) Scan(ctx context.Context, gitDir, base string, heads []Head) ([]Overlap, error) {
	baseSHA, err := d.r.Resolve(ctx, gitDir, base)
	if err != nil {
		return nil, fmt.Errorf("scan for conflicts: %w", err)
	}
	changes, err := allChanges(ctx, d.r, gitDir, baseSHA, heads)
	if err != nil {
		return nil, fmt.Errorf("scan for conflicts: %w", err)
	}
	var pairs []Pair
	var found []Overlap
	for i, h := range heads {
		if h.SHA != baseSHA && changes[i].own.touches(changes[i].moved) {
			pairs = append(pairs, Pair{h.SHA, baseSHA})
			found = append(found, Overlap{A: h.ID})
		}
		for j := i + 1; j < len(heads); j++ {
			if h.SHA != heads[j].SHA && changes[i].own.touches(changes[j].own) {
				pairs = append(pairs, Pair{h.SHA, heads[j].SHA})
				found = append(found, Overlap{A: h.ID, B: heads[j].ID})
			}
		}
	}
	if err := d.learn(ctx, gitDir, pairs); err != nil {
		return nil, fmt.Errorf("scan for conflicts: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, p := range pairs {
		found[i].Files = d.seen[p]
	}
	return slices.DeleteFunc(found, func(o Overlap) bool { return len(o.Files) == 0 }), nil
}

// learn merges the pairs that are not known yet.
func (d *Radar) learn(ctx context.Context, gitDir string, pairs []Pair) error {
	var fresh []Pair
	d.mu.Lock()
	if len(d.seen)+len(pairs) > maxSeen {
		clear(d.seen)
	}
	for _, p := range pairs {
		if _, known := d.seen[p]; !known {
			fresh = append(fresh, p)
		}
	}
	d.mu.Unlock()
	results, err := mergeMany(ctx, d.r, gitDir, fresh)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, m := range results {
		d.seen[fresh[i]] = nil
		if !m.Clean {
			d.seen[fresh[i]] = m.Conflicts
		}
	}
	return nil
}

// perScratch bounds how many merges leave their objects on disk at a time: where
// many branches change one large file, each merge writes it again.
const perScratch = 128

// mergeMany spreads the pairs over the processors.
func mergeMany(ctx context.Context, r *Runner, gitDir string, pairs []Pair) ([]MergeResult, error) {
	results := make([]MergeResult, len(pairs))
	workers := min(runtime.GOMAXPROCS(0), 8)
	size := max(16, min(perScratch, (len(pairs)+workers-1)/workers))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for start := 0; start < len(pairs); start += size {
		end := min(start+size, len(pairs))
		g.Go(func() error {
			scratch, err := NewScratch(gitDir)
			if err != nil {
				return err
			}
			part, err := MergeTree(ctx, r, gitDir, scratch.Env(), pairs[start:end])
			copy(results[start:], part)
			return errors.Join(err, scratch.Close())
		})
	}
	return results, g.Wait()
}
