package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// files are the repository that the demonstration works on.
var files = map[string]string{
	"README.md": "# hello\n\nA greeting for everybody.\n\n    ./greet.sh Ada\n",
	"greet.sh":  "#!/bin/sh\n# Greets whoever is named.\necho \"Hello, ${1:-you}\"\n",
	"test.sh":   "#!/bin/sh\nset -e\n./greet.sh Ada | grep -q Ada\necho ok\n",
}

// makeRepository writes the repository with one commit.
func makeRepository(dir string) error {
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			return fmt.Errorf("write repository: %w", err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "feat: greet everybody"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=Demo", "-c", "user.email=demo@squad.local", "-c", "core.hooksPath=/dev/null"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// actor is a member with a script for an agent.
type actor struct {
	name, role, specialty string
	script                string
}

// lines of the scripts: what the agent thinks, says and runs, as events, with a
// pause that a person can follow.
const prologue = `
say()   { printf '{"squad":"%s","text":"%s"}\n' "$1" "$2"; sleep "${PACE:-0}"; }
tool()  { id=$1; shift
  printf '{"squad":"tool_call","id":"%s","title":"%s","kind":"execute","status":"running","command":"%s"}\n' "$id" "$*" "$*"; sleep "${PACE:-0}"
  out=$("$@" 2>&1); code=$?
  printf '{"squad":"tool_call","id":"%s","title":"%s","kind":"execute","status":"completed","command":"%s","exit_code":%s}\n' "$id" "$*" "$*" "$code"
  [ -z "$out" ] || printf '%s\n' "$out"; return $code; }
`

var actors = []actor{
	{
		name: "Ada", role: "developer", specialty: "documentation and tests",
		script: prologue + `
say thought "The README says how to call it, but not what it answers."
tool 1 cat README.md
printf '\nIt answers:\n\n    Hello, Ada\n' >> README.md
tool 2 ./test.sh
git add README.md && git commit -qm 'docs: show what the greeting answers'
say message "The README now shows the answer; the tests pass."`,
	},
	{
		name: "Bo", role: "developer", specialty: "words",
		script: prologue + `
say thought "A greeting should be warm."
sed -i 's/Hello, /Good to see you, /' greet.sh
tool 1 ./test.sh
say message "The greeting is friendlier now."`,
	},
	{
		name: "Cleo", role: "developer", specialty: "shells",
		script: prologue + `
if [ "$SQUAD_TURN" = 1 ]; then
  say thought "Whoever calls it without a name should hear a name."
  sed -i 's/${1:-you}/${1:-world}!/' greet.sh
  tool 1 ./test.sh
  say message "Without a name it greets the world."
else
  say thought "Somebody changed the same line. Both intents fit: their words, my default."
  printf '#!/bin/sh\n# Greets whoever is named.\necho "Good to see you, ${1:-world}!"\n' > greet.sh
  tool 2 ./test.sh
  git add greet.sh && GIT_EDITOR=true git rebase --continue
  say message "Kept the friendlier words and the default."
fi`,
	},
}

// work is what each actor is given.
var work = []struct{ title, description string }{
	{"Document what the greeting answers", "The README shows how to call `greet.sh`. Show what it answers, too."},
	{"Make the greeting friendlier", "`Hello` is a little cold. Find warmer words."},
	{"Greet the world when no name is given", "`./greet.sh` without a name says *Hello, you*. It should greet the world, with an exclamation mark."},
}
