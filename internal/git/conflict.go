package git

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	squad "agentsquad"
)

const maxConflictFile = 1 << 20

// ConflictError says that two lines of work do not go together. It is found with
// errors.As in what merges and rebases return.
type ConflictError struct{ Files []FileConflict }

func (e *ConflictError) Error() string {
	names := make([]string, 0, 5)
	for i, f := range e.Files {
		if i == 5 {
			names = append(names, fmt.Sprintf("%d more", len(e.Files)-i))
			break
		}
		names = append(names, f.Path)
	}
	return "conflict in " + strings.Join(names, ", ")
}

func conflict(subject string, files []FileConflict) error {
	e := &ConflictError{Files: files}
	return squad.Wrap(squad.CodeConflict, e, "%s: both sides changed %s", subject, strings.TrimPrefix(e.Error(), "conflict in "))
}

// Conflicts merges two revisions in memory and returns the files that clash, with
// both sides' text; none where the merge is clean. The repository stays as it is.
func Conflicts(ctx context.Context, r *Runner, gitDir, ours, theirs string) ([]FileConflict, error) {
	a, err := r.Resolve(ctx, gitDir, ours)
	if err != nil {
		return nil, err
	}
	b, err := r.Resolve(ctx, gitDir, theirs)
	if err != nil {
		return nil, err
	}
	scratch, err := NewScratch(gitDir)
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	merged, err := MergeTree(ctx, r, gitDir, scratch.Env(), []Pair{{a, b}})
	if err != nil {
		return nil, err
	}
	if merged[0].Clean {
		return nil, nil
	}
	return fillHunks(ctx, r, gitDir, scratch.Env(), merged[0])
}

// fillHunks reads the merged files and takes the marked places out of them.
func fillHunks(ctx context.Context, r *Runner, dir string, env []string, m MergeResult) ([]FileConflict, error) {
	files := m.Conflicts
	for i := range files {
		f := &files[i]
		if f.Ours == "" || f.Theirs == "" || strings.Contains(f.Path, "\n") {
			continue
		}
		res, err := r.Run(ctx, Call{
			Dir: dir, Env: env, Args: []string{"cat-file", "--batch"}, Stdin: strings.NewReader(m.Tree + ":" + f.Path + "\n"),
			MaxOutput: maxConflictFile + 4096,
		})
		if err != nil {
			continue // too large to show; its name is enough
		}
		_, text, _ := bytes.Cut(res.Stdout, []byte("\n"))
		f.Hunks = ParseMarkers(string(text))
	}
	return files, nil
}

// ParseMarkers returns the marked conflicts of a merged file.
func ParseMarkers(text string) []ConflictHunk {
	const none, ours, base, theirs = 0, 1, 2, 3
	var hunks []ConflictHunk
	state := none
	for i, line := range strings.SplitAfter(text, "\n") {
		switch {
		case strings.HasPrefix(line, "<<<<<<< ") && state == none:
			hunks = append(hunks, ConflictHunk{Line: i + 1})
			state = ours
		case strings.HasPrefix(line, "||||||| ") && state == ours:
			state = base
		case strings.TrimRight(line, "\r\n") == "=======" && (state == ours || state == base):
			state = theirs
		case strings.HasPrefix(line, ">>>>>>> ") && state == theirs:
			state = none
		case state == ours:
			hunks[len(hunks)-1].Ours += line
		case state == theirs:
			hunks[len(hunks)-1].Theirs += line
		}
	}
	return hunks
}
