package forge

import (
	"slices"
	"strconv"
	"strings"

	squad "agentsquad"
)

// remoteID names a remark of a forge: reviews, remarks on lines and plain remarks
// are counted apart there.
func remoteID(kind string, id int64) string { return kind + "-" + strconv.FormatInt(id, 10) }

// joinReview lists a review and its remarks on lines. A review whose words stand on
// a line as well, as ours do, is one remark with its place; one that has no words
// of its own and no verdict is nothing beside its lines.
func joinReview(whole squad.ReviewComment, lines []squad.ReviewComment) []squad.ReviewComment {
	if i := slices.IndexFunc(lines, func(l squad.ReviewComment) bool { return l.Body == whole.Body }); i >= 0 {
		whole.Path, whole.Line, whole.Side = lines[i].Path, lines[i].Line, lines[i].Side
		lines = slices.Delete(slices.Clone(lines), i, i+1)
	}
	if whole.Verdict == "comment" && whole.Body == "" {
		return lines
	}
	return append([]squad.ReviewComment{whole}, lines...)
}

func verdictOf(state string) string {
	switch strings.ToUpper(state) {
	case "APPROVED":
		return "approve"
	case "CHANGES_REQUESTED", "REQUEST_CHANGES":
		return "request_changes"
	}
	return "comment"
}
