package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/client"
	"agentsquad/internal/git/gittest"
)

// try is something the attacker does in a fresh clone on its own branch, where one
// good commit is pushed already. It must end with an error that says what the gateway
// says, and upstream must stay as it was.
type try struct {
	name   string
	script string
	says   string
}

// clone is what each try begins with.
const clone = `set -e; rm -rf w; git clone -q http://squad.internal/git/$SHOP.git w; cd w
git checkout -q "$BRANCH"; git config push.default nothing; set +e
`

var pushes = []try{
	{"push to main", `echo x > x; git add x; git commit -qm "feat: x"; git push origin HEAD:main`, "may push only refs/heads/task-"},
	{"push to main by its commit's name", `echo x > x; git add x; git commit -qm "feat: x"; git push origin $(git rev-parse HEAD):refs/heads/main`, "may push only"},
	{"push to another task's branch", `echo x > x; git add x; git commit -qm "feat: x"; git push origin HEAD:task-99`, "may push only"},
	{"push to a new branch", `git push origin HEAD:refs/heads/backdoor`, "may push only"},
	{"push to a branch that begins alike", `git push origin "HEAD:refs/heads/$BRANCH-b"`, "may push only"},
	{"push a tag", `git tag v1; git push origin v1`, "may push only"},
	{"push all and mirror", `git push --mirror origin`, "may push only"},
	{"push to other tasks' checkpoints", `git push origin HEAD:refs/squad/checkpoints/00000000-0000-0000-0000-000000000000/1`, "may push only"},
	{"push to the queue for upstream", `git push origin HEAD:refs/squad/pending/main`, "may push only"},
	{"push to a pull request's ref", `git push origin HEAD:refs/pull/1/head`, "may push only"},
	{"push good and bad together", `echo x > x; git add x; git commit -qm "feat: x"; git push origin HEAD:"$BRANCH" HEAD:main`, "may push only"},
	{"delete main", `git push origin :main`, "may push only"},
	{"delete its own branch", `git push origin :"$BRANCH"`, "refs may not be deleted"},
	{"force over another's commit", `git commit -q --amend -m "feat: mine alone"; git reset -q --hard HEAD~1; echo y > y; git add y; git commit -qm "feat: y"; git push --force origin HEAD:"$BRANCH"`, "which this task did not make"},
	{"force with a forged lease", `git reset -q --hard HEAD~1; git push --force-with-lease="$BRANCH":$(git rev-parse origin/main) --force origin HEAD:"$BRANCH"`, "which this task did not make"},
	{"a message that breaks the rule", `echo x > x; git add x; git commit -qm "stuff"; git push origin HEAD:"$BRANCH"`, "not a conventional commit"},
	{"an object that is no commit", `git push origin $(git rev-parse "HEAD^{tree}"):refs/heads/"$BRANCH"`, ""},
	{"another repository of its squad", `git push "http://squad.internal/git/$TOOLS.git" HEAD:"$BRANCH"`, "may only read"},
	{"another squad's repository", `git push "http://squad.internal/git/$SAFE.git" HEAD:"$BRANCH"`, "not found"},
	{"reading another squad's repository", `git clone -q "http://squad.internal/git/$SAFE.git" ../stolen`, "not found"},
	{"upstream itself", `git push "$UPSTREAM/shop.git" HEAD:main`, ""},
	{"a repository by path", `git clone -q /opt/squad/../../data/repos ../stolen`, ""},
}

func TestAttacker(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.prepare(t)
	for _, try := range pushes {
		t.Run(try.name, func(t *testing.T) { h.refused(t, try) })
	}
	t.Run("a known secret in a file", h.secret)
	t.Run("a secret in an earlier commit", h.buriedSecret)
	t.Run("one gigabyte in one file", h.hugeFile)
	t.Run("a small pack of many large files", h.manyFiles)
	t.Run("what was refused is told and names no secret", h.told)
	h.webAttacks(t)
	h.insideAttacks(t)
}

// prepare pushes one good commit, which works, and has a person add another one.
func (h *house) prepare(t *testing.T) {
	t.Helper()
	out, code := h.inside(t, "user", `set -e; cd shop; echo good > good.txt; git add good.txt; git commit -qm "feat: good"; git push -q origin HEAD:"$BRANCH"`)
	if code != 0 {
		t.Fatalf("an honest push does not work:\n%s", out)
	}
	work := filepath.Join(t.TempDir(), "person")
	gittest.Git(t, t.TempDir(), "clone", "-q", "-b", h.branch(), h.bare, work)
	gittest.Commit(t, work, "person.txt", "by a person\n", "fix: what the person saw")
	gittest.Git(t, work, "push", "-q", "origin", h.branch())
	gittest.Git(t, work, "push", "-q", "origin", "origin/main:refs/heads/task-99")
}

func (h *house) refs(t *testing.T) string {
	t.Helper()
	return gittest.Git(t, h.bare, "for-each-ref", "--format=%(objectname) %(refname)")
}

func (h *house) refused(t *testing.T, try try) {
	t.Helper()
	before := h.refs(t)
	out, code := h.inside(t, "user", "export UPSTREAM="+h.upstream.URL+"\n"+clone+try.script)
	if code == 0 {
		t.Errorf("it was done:\n%s", out)
	}
	if !strings.Contains(out, try.says) {
		t.Errorf("it should say %q:\n%s", try.says, out)
	}
	if after := h.refs(t); after != before {
		t.Errorf("upstream changed from\n%s\nto\n%s", before, after)
	}
}

// awsKey is of the form that scanners know, and nobody's.
func awsKey() string { return "AKIA" + "ZQ3D" + "R5WKLMN7PTVX" }

func (h *house) secret(t *testing.T) {
	script := fmt.Sprintf("mkdir -p conf; printf 'a\\nb\\nkey = \"%s\"\\n' > conf/prod.ini; git add conf; git commit -qm 'feat: configure'; git push origin HEAD:\"$BRANCH\"", awsKey())
	h.refused(t, try{script: script, says: "conf/prod.ini:3"})
	out, _ := h.inside(t, "user", clone+script)
	if strings.Contains(strings.ReplaceAll(out, script, ""), awsKey()) {
		t.Errorf("the answer repeats the secret:\n%s", out)
	}
}

func (h *house) buriedSecret(t *testing.T) {
	h.refused(t, try{script: fmt.Sprintf(`printf 'key = "%s"\n' > k.ini; git add .; git commit -qm 'feat: key'; git rm -q k.ini; git commit -qm 'fix: no key'
git push origin HEAD:"$BRANCH"`, awsKey()), says: "k.ini:1"})
}

// hugeFile is a pack of a megabyte that unpacks to a gigabyte.
func (h *house) hugeFile(t *testing.T) {
	before := h.footprint(t)
	h.refused(t, try{script: `truncate -s 1G big.bin; git -c core.compression=1 add big.bin; git commit -qm "feat: big"; git push origin HEAD:"$BRANCH"`, says: "unpacks to more than"})
	h.grewLittle(t, before)
}

// manyFiles unpacks to many times the limit of a push, in files that are each small
// enough.
func (h *house) manyFiles(t *testing.T) {
	before := h.footprint(t)
	h.refused(t, try{script: `for i in $(seq 4); do { echo $i; head -c 45000000 /dev/zero; } > f$i; done
git -c core.compression=1 -c core.bigFileThreshold=1m add .; git commit -qm "feat: big"; git -c core.bigFileThreshold=1m push origin HEAD:"$BRANCH"`, says: "unpacks to more than"})
	h.grewLittle(t, before)
}

// footprint is what the server holds in memory at most, and on disk.
type footprint struct{ peak, disk int64 }

func (h *house) footprint(t *testing.T) footprint {
	t.Helper()
	var f footprint
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.Cmd.Process.Pid))
	h.must(err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			h.must(err)
			f.peak = kb << 10
		}
	}
	for _, name := range []string{"mirrors", "repos"} {
		h.must(filepath.WalkDir(filepath.Join(h.Data, name), func(_ string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if info, err := d.Info(); err == nil {
				f.disk += info.Size()
			}
			return nil
		}))
	}
	return f
}

// grewLittle holds the server to a small part of what was sent at it.
func (h *house) grewLittle(t *testing.T, before footprint) {
	t.Helper()
	now := h.footprint(t)
	if grew := now.peak - before.peak; grew > 100<<20 {
		t.Errorf("the server's memory grew by %d MiB", grew>>20)
	}
	if grew := now.disk - before.disk; grew > 10<<20 {
		t.Errorf("the mirrors grew by %d MiB", grew>>20)
	}
}

// told reads what the server wrote down about all this.
func (h *house) told(t *testing.T) {
	failed := 0
	for op, err := range h.GitOperations(t.Context(), client.Values{"sandbox_id": h.sandbox.ID}) {
		h.must(err)
		if op.Kind == "push" && op.Status == "failed" {
			failed++
		}
		if strings.Contains(op.OutputTail, awsKey()) {
			t.Errorf("an operation repeats the secret: %s", op.OutputTail)
		}
		h.leaks(t, "an operation", op.OutputTail)
	}
	if failed < 10 {
		t.Errorf("only %d refused pushes are in the books", failed)
	}
	for e, err := range h.StoredEvents(t.Context(), client.EventQuery{Types: []squad.EventType{squad.EventGitOperation}}) {
		h.must(err)
		if strings.Contains(string(e.Payload), awsKey()) {
			t.Errorf("an event repeats the secret: %s", e.Payload)
		}
	}
	if log := h.Log.String(); strings.Contains(log, awsKey()) {
		t.Error("the log repeats the secret")
	}
}
