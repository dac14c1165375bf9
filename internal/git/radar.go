package git

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	var blobs []string
	for i, h := range heads {
		blobs = append(blobs, changes[i].own.blobs...)
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
	if err := d.learn(ctx, gitDir, pairs, blobs); err != nil {
		return nil, fmt.Errorf("scan for conflicts: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, p := range pairs {
		found[i].Files = d.seen[p]
	}
	return slices.DeleteFunc(found, func(o Overlap) bool { return len(o.Files) == 0 }), nil
}

// learn merges the pairs that are not known yet. The heads brought these blobs.
func (d *Radar) learn(ctx context.Context, gitDir string, pairs []Pair, blobs []string) error {
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
	if len(fresh) == 0 {
		return nil
	}
	small, err := allSmall(ctx, d.r, gitDir, blobs)
	if err != nil {
		return err
	}
	results, err := mergeMany(ctx, d.r, gitDir, fresh, small)
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

// perScratch bounds how many merges leave their objects in a scratch at a time:
// where many branches change one large file, each merge writes it again.
const perScratch = 128

// mergeMany spreads the pairs over the processors. A merge is mostly the writing of
// objects that nobody wants: in memory that is five times as fast as on disk.
func mergeMany(ctx context.Context, r *Runner, gitDir string, pairs []Pair, inMemory bool) ([]MergeResult, error) {
	results := make([]MergeResult, len(pairs))
	workers := min(runtime.GOMAXPROCS(0), 8)
	size := max(16, min(perScratch, (len(pairs)+workers-1)/workers))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for start := 0; start < len(pairs); start += size {
		end := min(start+size, len(pairs))
		g.Go(func() error {
			var part []MergeResult
			err := errNoMemoryScratch
			if inMemory {
				part, err = mergeIn(ctx, r, gitDir, newMemoryScratch, pairs[start:end])
			}
			if err != nil && ctx.Err() == nil { // full, or there is none
				part, err = mergeIn(ctx, r, gitDir, NewScratch, pairs[start:end])
			}
			copy(results[start:], part)
			return err
		})
	}
	return results, g.Wait()
}

func mergeIn(ctx context.Context, r *Runner, gitDir string, open func(string) (*Scratch, error), pairs []Pair) ([]MergeResult, error) {
	scratch, err := open(gitDir)
	if err != nil {
		return nil, err
	}
	part, err := MergeTree(ctx, r, gitDir, scratch.Env(), pairs)
	return part, errors.Join(err, scratch.Close())
}

// maxInMemory bounds a file whose merges may be written to memory.
const maxInMemory = 1 << 20

// allSmall says whether no blob is larger than that.
func allSmall(ctx context.Context, r *Runner, gitDir string, blobs []string) (bool, error) {
	res, err := r.Run(ctx, Call{
		Dir: gitDir, Args: []string{"cat-file", "--batch-check=%(objectsize)"}, Stdin: strings.NewReader(strings.Join(blobs, "\n") + "\n"), MaxOutput: 256 << 20,
	})
	if err != nil {
		return false, err
	}
	for _, line := range strings.Fields(string(res.Stdout)) {
		if n, err := strconv.ParseInt(line, 10, 64); err == nil && n > maxInMemory {
			return false, nil
		}
	}
	return true, nil
}
