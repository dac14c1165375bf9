package forge

import (
	"fmt"
	"path"
	"slices"
	"strings"

	squad "agentsquad"
)

// protection is what a branch wants before something is merged into it.
type protection struct {
	branch    string
	approvals int
	checks    []string // names, which may have * in them
}

// refuse tells what is still missing, nil where nothing is.
func (p protection) refuse(approvals int, checks []Check) error {
	var missing []string
	if n := p.approvals - approvals; n > 0 {
		missing = append(missing, fmt.Sprintf("%d more approving review(s)", n))
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(p.checks))) {
		i := slices.IndexFunc(checks, func(c Check) bool { return matches(name, c.Name) })
		switch {
		case i < 0:
			missing = append(missing, fmt.Sprintf("the check %q, which has not run", name))
		case checks[i].Status != "success":
			missing = append(missing, fmt.Sprintf("the check %q, which is %s", name, checks[i].Status))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return squad.Errorf(squad.CodeRule, "branch %s is protected and wants: %s", p.branch, strings.Join(missing, ", "))
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == name || err == nil && ok
}

// mayMerge refuses what no forge merges, with the same words for all.
func mayMerge(pull squad.PullRequest, m MergeOptions) error {
	switch {
	case pull.State == squad.PullClosed:
		return squad.Errorf(squad.CodeConflict, "pull request #%d is closed", pull.Number)
	case pull.Draft:
		return squad.Errorf(squad.CodeConflict, "pull request #%d is a draft: mark it ready first", pull.Number)
	case pull.Mergeable == "conflict":
		return squad.Errorf(squad.CodeConflict, "pull request #%d has conflicts with %s", pull.Number, pull.Base)
	case m.HeadSHA != "" && m.HeadSHA != pull.HeadSHA:
		return squad.Errorf(squad.CodeConflict, "pull request #%d has newer commits: its head is %.10s now", pull.Number, pull.HeadSHA)
	}
	return nil
}
