package forge

import (
	"strconv"
	"strings"

	squad "agentsquad"
)

// Bounds of a diff that goes to a page.
const (
	maxPatchBytes = 256 << 10 // of one file; larger ones are listed without text
	maxDiffBytes  = 4 << 20
	maxDiffFiles  = 2000
)

// parsePatch splits git's unified diff text, from our git or from a forge, into
// files.
func parsePatch(text string) squad.Diff {
	var diff squad.Diff
	total := 0
	for part := range strings.SplitSeq("\n"+text, "\ndiff --git ") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		if len(diff.Files) == maxDiffFiles {
			diff.Truncated = true
			break
		}
		file := parseFile(part)
		total += len(file.Patch)
		if len(file.Patch) > maxPatchBytes || total > maxDiffBytes {
			total -= len(file.Patch)
			file.Patch, diff.Truncated = "", true
		}
		diff.Files = append(diff.Files, file)
	}
	return diff
}

// parseFile reads one file's part, from behind "diff --git ".
func parseFile(part string) squad.FileDiff {
	head, body, hasHunks := strings.Cut(part, "\n@@")
	f := squad.FileDiff{Status: "modified"}
	for i, line := range strings.Split(head, "\n") {
		switch {
		case i == 0:
			f.Path = pathOfHeader(line)
		case strings.HasPrefix(line, "new file mode"):
			f.Status = "added"
		case strings.HasPrefix(line, "deleted file mode"):
			f.Status = "deleted"
		case strings.HasPrefix(line, "rename from "):
			f.Status, f.OldPath = "renamed", unquote(strings.TrimPrefix(line, "rename from "))
		case strings.HasPrefix(line, "copy from "):
			f.Status, f.OldPath = "copied", unquote(strings.TrimPrefix(line, "copy from "))
		case strings.HasPrefix(line, "rename to "), strings.HasPrefix(line, "copy to "):
			_, to, _ := strings.Cut(line, " to ")
			f.Path = unquote(to)
		case strings.HasPrefix(line, "+++ ") && line != "+++ /dev/null":
			f.Path = side(line)
		case strings.HasPrefix(line, "--- ") && line != "--- /dev/null":
			f.Path = side(line)
		case strings.HasPrefix(line, "Binary files "), strings.HasPrefix(line, "GIT binary patch"):
			f.Binary = true
		}
	}
	if !hasHunks {
		return f
	}
	f.Patch = "@@" + body
	if !strings.HasSuffix(f.Patch, "\n") {
		f.Patch += "\n"
	}
	for line := range strings.Lines(f.Patch) {
		switch line[0] {
		case '+':
			f.Additions++
		case '-':
			f.Deletions++
		}
	}
	return f
}

// side reads the name in a "--- a/name" or "+++ b/name" line. Git ends names that
// contain a space with a tab.
func side(line string) string {
	name := unquote(strings.TrimSuffix(line[4:], "\t"))
	if _, rest, ok := strings.Cut(name, "/"); ok {
		return rest
	}
	return name
}

// pathOfHeader reads "a/name b/name" where both names are the same, which is the
// case whenever no other line names the file.
func pathOfHeader(line string) string {
	if strings.HasPrefix(line, `"`) {
		if i := strings.Index(line[1:], `" "`); i >= 0 {
			return side("    " + line[:i+2])
		}
	}
	half := len(line) / 2
	if len(line)%2 == 1 && line[half] == ' ' {
		return strings.TrimPrefix(line[:half], "a/")
	}
	return line
}

func unquote(name string) string {
	if strings.HasPrefix(name, `"`) {
		if plain, err := strconv.Unquote(name); err == nil {
			return plain
		}
	}
	return name
}
