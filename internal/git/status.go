package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Status is the state of a checkout.
type Status struct {
	Branch   string       `json:"branch,omitempty"` // "" where detached
	Head     string       `json:"head,omitempty"`   // "" before the first commit
	Upstream string       `json:"upstream,omitempty"`
	Ahead    int          `json:"ahead"`
	Behind   int          `json:"behind"`
	Files    []FileStatus `json:"files"`
}

// FileStatus is one file that is not as it was committed.
type FileStatus struct {
	Path     string `json:"path"`
	OldPath  string `json:"old_path,omitempty"`
	Index    string `json:"index"`    // git's letter for the staged change, "." for none
	WorkTree string `json:"worktree"` // git's letter for the unstaged change, "?" for untracked
	Unmerged bool   `json:"unmerged,omitempty"`
}

// Clean says whether nothing is uncommitted.
func (s Status) Clean() bool { return len(s.Files) == 0 }

// Unmerged lists the files with open conflicts.
func (s Status) Unmerged() []string {
	var names []string
	for _, f := range s.Files {
		if f.Unmerged {
			names = append(names, f.Path)
		}
	}
	return names
}

// Status reads the state of the checkout.
func (c *Checkout) Status(ctx context.Context) (st Status, err error) {
	err = c.do(ctx, "", func(*operation) error {
		st, err = c.status(ctx)
		return err
	})
	return st, Explain(err, "status")
}

func (c *Checkout) status(ctx context.Context) (Status, error) {
	res, err := c.r.Run(ctx, Call{Dir: c.dir, Args: []string{"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=none"}})
	if err != nil {
		return Status{}, err
	}
	return ParseStatus(res.Stdout)
}

// ParseStatus reads git status --porcelain=v2 --branch -z.
func ParseStatus(out []byte) (Status, error) {
	var st Status
	words := strings.Split(string(out), "\x00")
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "" {
			continue
		}
		switch w[0] {
		case '#':
			st.header(w)
		case '?':
			st.Files = append(st.Files, FileStatus{Path: strings.TrimPrefix(w, "? "), Index: ".", WorkTree: "?"})
		case '1', '2', 'u':
			fields := map[byte]int{'1': 9, '2': 10, 'u': 11}[w[0]]
			parts := strings.SplitN(w, " ", fields)
			if len(parts) != fields || len(parts[1]) != 2 {
				return Status{}, fmt.Errorf("read status: unexpected line %.80q", w)
			}
			f := FileStatus{Path: parts[fields-1], Index: parts[1][:1], WorkTree: parts[1][1:], Unmerged: w[0] == 'u'}
			if w[0] == '2' && i+1 < len(words) {
				i++
				f.OldPath = words[i]
			}
			st.Files = append(st.Files, f)
		case '!':
		default:
			return Status{}, fmt.Errorf("read status: unexpected line %.80q", w)
		}
	}
	return st, nil
}

func (s *Status) header(line string) {
	parts := strings.SplitN(line, " ", 3)
	if len(parts) != 3 {
		return
	}
	switch parts[1] {
	case "branch.oid":
		if ValidSHA(parts[2]) {
			s.Head = parts[2]
		}
	case "branch.head":
		if parts[2] != "(detached)" {
			s.Branch = parts[2]
		}
	case "branch.upstream":
		s.Upstream = parts[2]
	case "branch.ab":
		a, b, _ := strings.Cut(parts[2], " ")
		s.Ahead, _ = strconv.Atoi(strings.TrimPrefix(a, "+"))
		s.Behind, _ = strconv.Atoi(strings.TrimPrefix(b, "-"))
	}
}
