package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

// MergeResult is a merge that was made in memory.
type MergeResult struct {
	Tree      string // the merged tree; with conflict markers where not clean
	Clean     bool
	Conflicts []FileConflict
}

// FileConflict is a path that both sides changed in ways that do not go together.
type FileConflict struct {
	Path string `json:"path"`
	Kind string `json:"kind,omitempty"` // git's word: contents, modify/delete, add/add …
	Note string `json:"note,omitempty"` // git's sentence
	// Base, Ours and Theirs are the blobs of the three sides, "" where a side has none.
	Base   string `json:"base,omitempty"`
	Ours   string `json:"ours,omitempty"`
	Theirs string `json:"theirs,omitempty"`
	// Hunks are the places that clash, filled by [Conflicts].
	Hunks []ConflictHunk `json:"hunks,omitempty"`
}

// ConflictHunk is one place of a file with both sides' text.
type ConflictHunk struct {
	Line   int    `json:"line"` // of the first marker in the merged file
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}

// Pair names two commits to merge.
type Pair struct{ Ours, Theirs string }

// MergeTree merges pairs of commits in memory, in one git process where the
// program can do that. New objects go where env says (see [Scratch]).
func MergeTree(ctx context.Context, r *Runner, dir string, env []string, pairs []Pair) ([]MergeResult, error) {
	var in strings.Builder
	for _, p := range pairs {
		if !ValidSHA(p.Ours) || !ValidSHA(p.Theirs) {
			return nil, fmt.Errorf("merge %s with %s: not full object names", p.Ours, p.Theirs)
		}
		in.WriteString(p.Ours + " " + p.Theirs + "\n")
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	config := []string{"merge.conflictStyle=merge"}
	if len(env) > 0 {
		config = append(config, "core.looseCompression=0", "core.fsync=none") // thrown away soon
	}
	res, err := r.Run(ctx, Call{
		Dir: dir, Env: env, Args: []string{"merge-tree", "--write-tree", "--allow-unrelated-histories", "--stdin"},
		Stdin: strings.NewReader(in.String()), MaxOutput: 256 << 20, Config: config,
	})
	var failed *Error
	if errors.As(err, &failed) && failed.ExitCode == 129 {
		return mergeOneByOne(ctx, r, dir, env, pairs) // git 2.38 has no --stdin
	}
	if err != nil {
		return nil, fmt.Errorf("merge in memory: %w", err)
	}
	results, err := parseMerges(res.Stdout)
	if err == nil && len(results) != len(pairs) {
		err = fmt.Errorf("%d answers for %d pairs", len(results), len(pairs))
	}
	if err != nil {
		return nil, fmt.Errorf("read merges: %w", err)
	}
	return results, nil
}

func mergeOneByOne(ctx context.Context, r *Runner, dir string, env []string, pairs []Pair) ([]MergeResult, error) {
	results := make([]MergeResult, 0, len(pairs))
	for _, p := range pairs {
		res, err := r.Run(ctx, Call{
			Dir: dir, Env: env, Accept: []int{1}, Config: []string{"merge.conflictStyle=merge"},
			Args: []string{"merge-tree", "--write-tree", "--allow-unrelated-histories", "-z", p.Ours, p.Theirs},
		})
		if err != nil {
			return nil, fmt.Errorf("merge in memory: %w", err)
		}
		status := "1\x00"
		if res.ExitCode == 1 {
			status = "0\x00"
		}
		one, err := parseMerges(append(append([]byte(status), res.Stdout...), 0))
		if err != nil || len(one) != 1 {
			return nil, fmt.Errorf("read merge: %w", errors.Join(err, errMergeForm))
		}
		results = append(results, one[0])
	}
	return results, nil
}

var errMergeForm = errors.New("unexpected form of git merge-tree output")

// parseMerges reads the NUL-separated output of merge-tree --stdin.
func parseMerges(out []byte) ([]MergeResult, error) {
	var results []MergeResult
	words := bytes.Split(out, []byte{0})
	next := func() (string, bool) {
		if len(words) == 0 {
			return "", false
		}
		w := string(words[0])
		words = words[1:]
		return w, true
	}
	for len(words) > 1 { // the last word is what follows the last NUL: nothing
		status, _ := next()
		tree, ok := next()
		if !ok || !ValidSHA(tree) || (status != "0" && status != "1") {
			return nil, errMergeForm
		}
		m := MergeResult{Tree: tree, Clean: status == "1"}
		if err := m.readStages(next); err != nil {
			return nil, err
		}
		if !m.Clean {
			if err := m.readMessages(next); err != nil {
				return nil, err
			}
		}
		results = append(results, m)
	}
	return results, nil
}

func (m *MergeResult) at(path string) *FileConflict {
	for i := range m.Conflicts {
		if m.Conflicts[i].Path == path {
			return &m.Conflicts[i]
		}
	}
	m.Conflicts = append(m.Conflicts, FileConflict{Path: path})
	return &m.Conflicts[len(m.Conflicts)-1]
}

func (m *MergeResult) readStages(next func() (string, bool)) error {
	for {
		w, ok := next()
		if !ok {
			return errMergeForm
		}
		if w == "" {
			return nil
		}
		info, path, tab := strings.Cut(w, "\t")
		fields := strings.Fields(info)
		if !tab || len(fields) != 3 || !ValidSHA(fields[1]) {
			return errMergeForm
		}
		f := m.at(path)
		switch fields[2] {
		case "1":
			f.Base = fields[1]
		case "2":
			f.Ours = fields[1]
		case "3":
			f.Theirs = fields[1]
		default:
			return errMergeForm
		}
	}
}

func (m *MergeResult) readMessages(next func() (string, bool)) error {
	for {
		count, ok := next()
		if !ok {
			return errMergeForm
		}
		if count == "" {
			return nil
		}
		var n int
		if _, err := fmt.Sscanf(count, "%d", &n); err != nil || n < 0 || n > 1000 {
			return errMergeForm
		}
		paths := make([]string, n)
		for i := range paths {
			paths[i], _ = next()
		}
		kind, _ := next()
		text, ok := next()
		if !ok {
			return errMergeForm
		}
		if name, conflict := strings.CutPrefix(kind, "CONFLICT ("); conflict && n > 0 {
			f := m.at(paths[0])
			f.Kind, f.Note = strings.TrimSuffix(name, ")"), strings.TrimSpace(text)
		}
	}
}
