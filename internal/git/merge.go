package git

import (
	"context"
	"fmt"
	"strings"

	squad "agentsquad"
)

// Identity is the name on a commit.
type Identity struct{ Name, Email string }

func (id Identity) check() error {
	if strings.TrimSpace(id.Name) == "" || strings.TrimSpace(id.Email) == "" || strings.ContainsAny(id.Name+id.Email, "<>\n\r\x00") {
		return squad.Invalid("author", "a commit needs an author's name and address without < > or line breaks")
	}
	return nil
}

func (id Identity) env() []string {
	return []string{
		"GIT_AUTHOR_NAME=" + id.Name, "GIT_AUTHOR_EMAIL=" + id.Email,
		"GIT_COMMITTER_NAME=" + id.Name, "GIT_COMMITTER_EMAIL=" + id.Email,
	}
}

// MergeMethod is a way to bring a branch into another.
type MergeMethod string

// The methods.
const (
	MethodMerge  MergeMethod = "merge"
	MethodSquash MergeMethod = "squash"
	MethodRebase MergeMethod = "rebase"
)

// MergeRequest asks for a merge inside a bare repository.
type MergeRequest struct {
	Into    string // branch that receives
	Head    string // revision that is merged
	Method  MergeMethod
	Message string // of the merge or squash commit
	Author  Identity
	// ExpectHead, where given, is the commit that Head must be: a merge of
	// something other than what was reviewed is refused.
	ExpectHead string
}

// Merge merges inside a bare repository, without a working tree. The branch is
// moved only if it still is where it was when the merge began (CodeConflict
// otherwise: try again); a clash is a [*ConflictError] inside a CodeConflict. It
// returns the branch's new commit.
func Merge(ctx context.Context, r *Runner, dir string, q MergeRequest) (string, error) {
	if err := checkBranch("into", q.Into); err != nil {
		return "", err
	}
	if err := q.Author.check(); err != nil {
		return "", err
	}
	old, err := r.Resolve(ctx, dir, "refs/heads/"+q.Into)
	if err != nil {
		return "", err
	}
	head, err := r.Resolve(ctx, dir, q.Head)
	if err != nil {
		return "", err
	}
	if q.ExpectHead != "" && head != q.ExpectHead {
		return "", squad.Errorf(squad.CodeStale, "the branch to merge has moved to %.10s since it was looked at", head)
	}
	ahead, err := r.Line(ctx, dir, "rev-list", "--count", old+".."+head, "--")
	if err != nil {
		return "", err
	}
	if ahead == "0" {
		return "", squad.Errorf(squad.CodeConflict, "there is nothing to merge: %s already has these commits", q.Into)
	}
	var merged string
	switch q.Method {
	case MethodRebase:
		merged, err = rebaseOnto(ctx, r, dir, old, head, q.Author)
	case MethodSquash:
		merged, err = mergeCommit(ctx, r, dir, old, head, []string{old}, q)
	case MethodMerge, "":
		merged, err = mergeCommit(ctx, r, dir, old, head, []string{old, head}, q)
	default:
		return "", squad.Invalid("method", "%q is not merge, squash or rebase", q.Method)
	}
	if err != nil {
		return "", err
	}
	return merged, UpdateRef(ctx, r, dir, "refs/heads/"+q.Into, merged, old)
}

// UpdateRef moves a ref from old to new; old is the zero name for a ref that must
// not exist yet. A ref that is elsewhere gives CodeConflict.
func UpdateRef(ctx context.Context, r *Runner, dir, ref, sha, old string) error {
	if !ValidRef(ref) || !ValidSHA(sha) || !ValidSHA(old) {
		return squad.Invalid("ref", "%q cannot be set to %q", ref, sha)
	}
	_, err := r.Run(ctx, Call{Dir: dir, Args: []string{"update-ref", "--create-reflog", ref, sha, old}})
	if KindOf(err) == KindRejected {
		return squad.Wrap(squad.CodeConflict, err, "%s has moved meanwhile", strings.TrimPrefix(ref, "refs/heads/"))
	}
	return err
}

// DeleteRef removes a ref that still is at old.
func DeleteRef(ctx context.Context, r *Runner, dir, ref, old string) error {
	if !ValidRef(ref) || !ValidSHA(old) {
		return squad.Invalid("ref", "%q cannot be removed", ref)
	}
	_, err := r.Run(ctx, Call{Dir: dir, Args: []string{"update-ref", "-d", ref, old}})
	return err
}

func mergeCommit(ctx context.Context, r *Runner, dir, old, head string, parents []string, q MergeRequest) (string, error) {
	merged, err := MergeTree(ctx, r, dir, nil, []Pair{{old, head}})
	if err != nil {
		return "", err
	}
	if !merged[0].Clean {
		files, err := fillHunks(ctx, r, dir, nil, merged[0])
		if err != nil {
			return "", err
		}
		return "", conflict("merge into "+q.Into, files)
	}
	return commitTree(ctx, r, dir, merged[0].Tree, parents, q.Message, q.Author.env())
}

func commitTree(ctx context.Context, r *Runner, dir, tree string, parents []string, message string, env []string) (string, error) {
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	res, err := r.Run(ctx, Call{Dir: dir, Args: append(args, "-F", "-"), Stdin: strings.NewReader(message + "\n"), Env: env})
	if err != nil {
		return "", fmt.Errorf("write commit: %w", err)
	}
	return strings.TrimSpace(string(res.Stdout)), nil
}

// rebaseOnto plays the commits of base..head on top of base and returns the last.
// Merge commits are left out, as git rebase does; commits that become empty too.
func rebaseOnto(ctx context.Context, r *Runner, dir, base, head string, committer Identity) (string, error) {
	list, err := r.Line(ctx, dir, "rev-list", "--reverse", "--topo-order", "--no-merges", "--cherry-pick", "--right-only", base+"..."+head, "--")
	if err != nil {
		return "", err
	}
	tip := base
	for _, sha := range strings.Fields(list) {
		if tip, err = pick(ctx, r, dir, tip, sha, committer); err != nil {
			return "", err
		}
	}
	return tip, nil
}

// pick applies one commit on top of tip. The merge base must be the commit's
// parent, which older programs cannot be told: a stand-in commit with tip's tree
// and that parent makes it so.
func pick(ctx context.Context, r *Runner, dir, tip, sha string, committer Identity) (string, error) {
	res, err := r.Run(ctx, Call{Dir: dir, Args: []string{"show", "-s", "--format=%P%x00%an%x00%ae%x00%ad%x00%B", "--date=raw", sha, "--"}})
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(string(res.Stdout), "\x00", 5)
	if len(parts) != 5 {
		return "", fmt.Errorf("read commit %s: unexpected form", sha)
	}
	parent := strings.TrimSpace(parts[0])
	env := append(committer.env(), "GIT_AUTHOR_NAME="+parts[1], "GIT_AUTHOR_EMAIL="+parts[2], "GIT_AUTHOR_DATE="+parts[3])
	if parent == tip {
		return sha, nil
	}
	var parents []string
	if parent != "" {
		parents = []string{parent}
	}
	standIn, err := commitTree(ctx, r, dir, tip+"^{tree}", parents, "stand-in", committer.env())
	if err != nil {
		return "", err
	}
	merged, err := MergeTree(ctx, r, dir, nil, []Pair{{standIn, sha}})
	if err != nil {
		return "", err
	}
	if !merged[0].Clean {
		files, err := fillHunks(ctx, r, dir, nil, merged[0])
		if err != nil {
			return "", err
		}
		return "", conflict(fmt.Sprintf("apply %.10s", sha), files)
	}
	same, err := r.Line(ctx, dir, "rev-parse", "--verify", tip+"^{tree}")
	if err != nil || same == merged[0].Tree {
		return tip, err
	}
	return commitTree(ctx, r, dir, merged[0].Tree, []string{tip}, strings.TrimRight(parts[4], "\n"), env)
}
