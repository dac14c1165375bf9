package git

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Diff is a difference between two states, file by file.
type Diff struct {
	Files     []FileDiff `json:"files"`
	Added     int        `json:"added"`
	Deleted   int        `json:"deleted"`
	Truncated bool       `json:"truncated,omitempty"` // hunks were left out, names were not
}

// FileDiff is the change of one file.
type FileDiff struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path,omitempty"` // where it was renamed or copied from
	Status  string `json:"status"`             // added, modified, deleted, renamed, copied, type_changed, unmerged
	OldMode string `json:"old_mode,omitempty"`
	NewMode string `json:"new_mode,omitempty"`
	Binary  bool   `json:"binary,omitempty"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Hunks   []Hunk `json:"hunks,omitempty"`
}

// Hunk is a run of changed lines with its surroundings.
type Hunk struct {
	OldStart int    `json:"old_start"`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start"`
	NewLines int    `json:"new_lines"`
	Section  string `json:"section,omitempty"`
	Lines    []Line `json:"lines"`
}

// Line is one line of a hunk.
type Line struct {
	Op   string `json:"op"` // " ", "+" or "-"
	Text string `json:"text"`
	// NoNewline marks a last line without a line break.
	NoNewline bool `json:"no_newline,omitempty"`
}

// diffArgs make git print what ParseDiff reads.
var diffArgs = []string{"--patch-with-raw", "-z", "--abbrev=40", "--no-color", "--no-ext-diff", "--no-textconv", "-M", "--src-prefix=a/", "--dst-prefix=b/"}

var statusNames = map[byte]string{'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed", 'C': "copied", 'T': "type_changed", 'U': "unmerged"}

// ParseDiff reads the output of git diff --patch-with-raw -z: a list of files that
// survives any name, then the patches in the same order.
func ParseDiff(out []byte, maxBytes int) (Diff, error) {
	var d Diff
	for len(out) > 0 && out[0] == ':' {
		f, rest, err := parseRaw(out)
		if err != nil {
			return Diff{}, err
		}
		d.Files = append(d.Files, f)
		out = rest
	}
	out = bytes.TrimPrefix(out, []byte{0})
	if maxBytes > 0 && len(out) > maxBytes {
		d.Truncated = true
		out = out[:maxBytes]
		if i := bytes.LastIndex(out, []byte("\ndiff --git ")); i >= 0 {
			out = out[:i+1]
		} else {
			out = nil
		}
	}
	d.parsePatches(string(out))
	for _, f := range d.Files {
		d.Added += f.Added
		d.Deleted += f.Deleted
	}
	return d, nil
}

func parseRaw(out []byte) (FileDiff, []byte, error) {
	info, rest, ok := bytes.Cut(out[1:], []byte{0})
	fields := strings.Fields(string(info))
	if !ok || len(fields) != 5 || fields[4] == "" {
		return FileDiff{}, nil, fmt.Errorf("read diff: unexpected line %.80q", out)
	}
	name, rest, ok := bytes.Cut(rest, []byte{0})
	if !ok {
		return FileDiff{}, nil, fmt.Errorf("read diff: missing name after %.80q", info)
	}
	f := FileDiff{Path: string(name), OldMode: fields[0], NewMode: fields[1], Status: statusNames[fields[4][0]]}
	if kind := fields[4][0]; kind == 'R' || kind == 'C' {
		f.OldPath = f.Path
		if name, rest, ok = bytes.Cut(rest, []byte{0}); !ok {
			return FileDiff{}, nil, fmt.Errorf("read diff: missing second name after %.80q", info)
		}
		f.Path = string(name)
	}
	return f, rest, nil
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$`)

// parsePatches gives the patches to the files, in order. Files without content
// changes (mode only, pure renames) have a patch header too, so both lists run in
// step; a changed type appears as two patches of one file.
func (d *Diff) parsePatches(text string) {
	index := -1
	var f *FileDiff
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "diff --git ") || strings.HasPrefix(line, "* Unmerged path "):
			if f != nil && f.Status == "type_changed" && strings.HasPrefix(nextLine(lines, i), "new file") {
				continue
			}
			if index++; index >= len(d.Files) {
				return
			}
			f = &d.Files[index]
		case f == nil:
		case strings.HasPrefix(line, "Binary files ") || line == "GIT binary patch":
			f.Binary = true
		case strings.HasPrefix(line, "@@ "):
			i = f.readHunk(lines, i)
		}
	}
}

func nextLine(lines []string, i int) string {
	if i+1 < len(lines) {
		return lines[i+1]
	}
	return ""
}

// readHunk reads the hunk whose header is lines[at] and returns the index of its
// last line. The counts in the header end it, so that content that looks like a
// header does no harm.
func (f *FileDiff) readHunk(lines []string, at int) int {
	m := hunkHeader.FindStringSubmatch(lines[at])
	if m == nil {
		return at
	}
	h := Hunk{OldStart: atoi(m[1], 0), OldLines: atoi(m[2], 1), NewStart: atoi(m[3], 0), NewLines: atoi(m[4], 1), Section: m[5]}
	oldLeft, newLeft := h.OldLines, h.NewLines
	i := at + 1
	for ; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(line, `\ `) && len(h.Lines) > 0 {
			h.Lines[len(h.Lines)-1].NoNewline = true
			continue
		}
		if (oldLeft <= 0 && newLeft <= 0) || line == "" {
			break
		}
		switch line[0] {
		case '+':
			newLeft--
			f.Added++
		case '-':
			oldLeft--
			f.Deleted++
		default:
			oldLeft--
			newLeft--
		}
		h.Lines = append(h.Lines, Line{Op: line[:1], Text: strings.ToValidUTF8(line[1:], "\uFFFD")})
	}
	f.Hunks = append(f.Hunks, h)
	return i - 1
}

func atoi(s string, otherwise int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return otherwise
	}
	return n
}
