package git

import (
	"context"
	"fmt"
	"strings"
)

// Several git commands in one run: in a sandbox each run costs as much as git's own
// work. The texts are constants; what varies comes in as arguments and is never
// read as shell text.

// recordScript commits everything that changed and prints whether it did and what HEAD
// is then. Argument: message. Exit 91 says that conflicts are open. A merge that was
// left open is concluded even if it changes nothing. The ref is read without git where
// it is a file, as it is after a commit.
const recordScript = `nl='
'
st="$nl$(git status --porcelain=v2 --branch --untracked-files=normal)" || exit
case "$st" in *"${nl}u "*) exit 91;; esac
made=same
if [ -e .git/MERGE_HEAD ] || case "$st" in *"$nl"[12?]" "*) ;; *) false;; esac; then
  git add -A || exit
  if git commit --quiet --no-verify --cleanup=whitespace -m "$1" >&2; then made=made
  else git diff --cached --quiet --no-ext-diff || exit 1
  fi
fi
echo "$made"
head=; read -r head 2>/dev/null < .git/HEAD
case "$head" in "ref: "*) ref="${head#ref: }"; head=; read -r head 2>/dev/null < ".git/$ref";; esac
[ -n "$head" ] || head="$(git rev-parse --verify --quiet HEAD)"
echo "$head"`

// snapshotScript writes the working tree as it is, untracked files included, without
// changing the index, the branch or a file. A copy of the index brings its record of
// unchanged files along, so that only what changed is read; a checkout without a
// commit may have none. It prints the tree.
const snapshotScript = `export GIT_INDEX_FILE="$PWD/.git/squad-index"
if [ -e .git/index ]; then cp -- .git/index "$GIT_INDEX_FILE"; else rm -f -- "$GIT_INDEX_FILE"; fi
git add -A || exit
tree="$(git write-tree)" || exit
`

// snapshotCommitScript prints a commit of the working tree on top of HEAD: HEAD itself
// where they are the same. Arguments: message.
const snapshotCommitScript = snapshotScript + `head="$(git rev-parse --verify --quiet HEAD)"
if [ -n "$head" ] && [ "$tree" = "$(git rev-parse --verify "$head^{tree}")" ]; then echo "$head"; exit; fi
exec git commit-tree ${head:+-p "$head"} -m "$1" "$tree"`

// packScript prints a pack of what a commit has and the others have not. Arguments:
// the commit, a commit that it must come after or "", the others. Exit 92 says that
// it does not come after it.
const packScript = `new="$1"; old="$2"; shift 2
if [ -n "$old" ]; then git merge-base --is-ancestor "$old" "$new" 2>/dev/null || exit 92; fi
{ printf '%s\n' "$new" ${old:+"^$old"}
  for not; do echo "^$not"; done
  [ $# -gt 0 ] || git for-each-ref --format='^%(objectname)' refs/remotes/origin
} | git pack-objects --revs --stdout --thin --delta-base-offset --all-progress`

// beginScript makes a branch and goes to it. Where HEAD is at its commit already, no
// file has to be looked at, of which a checkout looks at all. Arguments: branch, commit,
// and "here" where HEAD is known to be there.
const beginScript = `[ "$3" = here ] || [ "$(git rev-parse --verify --quiet HEAD)" = "$2" ] || exec git checkout --quiet --no-track -b "$1" "$2" --
git update-ref -m "branch: made from $2" "refs/heads/$1" "$2" 0000000000000000000000000000000000000000 || exit
exec git symbolic-ref -m "checkout: moving to $1" HEAD "refs/heads/$1"`

const refFormat = "--format=%(objectname) %(refname)%(HEAD)"

// branchScript prints the refs that say where a branch begins. Where none of them is the
// branch, the remote is known not to have it and HEAD is at its base, it makes the branch
// as git does, one file and HEAD under its lock, without another run of git. Arguments:
// branch, base, mark of a prepared checkout, and "absent".
const branchScript = `refs="$(git for-each-ref '` + refFormat + `' -- "refs/heads/$1" "refs/remotes/origin/$1" "refs/heads/$2" "refs/remotes/origin/$2" "$3")" || exit
printf '%s\n' "$refs"
start=; here=; prepared=
while read -r sha ref; do
  case "$ref" in *'*') ref="${ref%?}"; here="$sha";; esac
  case "$ref" in
  "refs/heads/$1"|"refs/remotes/origin/$1") exit 0;;
  "refs/heads/$2"|"refs/remotes/origin/$2") start="$sha";;
  "$3") prepared=yes;;
  esac
done <<END
$refs
END
[ -n "$start" ] && [ "$here" = "$start" ] && [ -d .git/refs/heads ] && [ ! -e .git/reftable ] || exit 0
[ -z "$prepared" ] || [ "$4" = absent ] || exit 0
case "$1" in */*) mkdir -p -- ".git/refs/heads/${1%/*}" || exit;; esac
set -C
echo "ref: refs/heads/$1" 2>/dev/null > .git/HEAD.lock || exit 0
if echo "$start" > ".git/refs/heads/$1" && mv -- .git/HEAD.lock .git/HEAD; then echo "$start made"; else rm -f -- .git/HEAD.lock; exit 1; fi`

// borrowScript makes a checkout whose objects lie elsewhere. It is made beside its
// final place and moved there, so that one that was cut off is never taken for a
// checkout. Input: the packed refs. Arguments: folder to make it in, final one, its
// parent, folder of the objects, branch, its commit or "", configuration. Exit 93 says
// that there is a checkout already, 94 that something else is in its place.
const borrowScript = `[ ! -e "$2/.git" ] || exit 93
rm -rf -- "$1" && mkdir -p -- "$3" "$1/.git/objects/info" "$1/.git/refs/heads" "$1/.git/refs/remotes/origin" && cd -- "$1" || exit
printf 'ref: refs/heads/%s\n' "$5" > .git/HEAD && printf '%s\n' "$4" > .git/objects/info/alternates && printf '%s' "$7" > .git/config || exit
[ -z "$6" ] || printf 'ref: refs/remotes/origin/%s\n' "$5" > .git/refs/remotes/origin/HEAD || exit
cat > .git/packed-refs || exit
[ -z "$6" ] || git read-tree -v --reset -u "$6" || exit
cd / || exit
mv -T -- "$1" "$2" || exit 94`

const (
	exitUnmerged    = 91
	exitNotAncestor = 92
	exitExists      = 93
	exitTaken       = 94
)

// script runs one of the texts above in the checkout. The call's Args are the
// script's arguments, its Config holds for every git command of it.
func (r *Runner) script(ctx context.Context, op, text string, c Call) (Result, error) {
	c.Env = append(configEnv(append(settings(c.Dir), c.Config...)), c.Env...)
	return r.run(ctx, op, append([]string{"/bin/sh", "-c", text, "squad-git"}, c.Args...), c)
}

// configEnv gives settings to every git command below a process.
func configEnv(settings []string) []string {
	env := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings))}
	for i, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return env
}
