package runner_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// A repository has what repositories have: another default branch, a submodule that
// leads nowhere, pointers to large files, names that shells do not like. All of it
// reaches the sandbox as it is and comes back unchanged, with the agent's own.
func TestExecution_OddRepositoryComesBackWhole(t *testing.T) {
	h := newHouse(t)
	work := t.TempDir()
	sh(t, work, `git init -q -b trunk
printf '* filter=lfs diff=lfs merge=lfs -text\n' > .gitattributes; git add .gitattributes; git commit -qm 'docs: begin'
mkdir a; printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 5\n' 1 > a/large.bin
printf '[submodule "lib"]\n\tpath = lib\n\turl = http://nowhere.invalid/lib.git\n' > .gitmodules
printf 1 > "$(printf 'new\nline')"; printf 2 > 'quo"te'\''s'; printf 3 > ./-dash; printf 4 > 'grün ☃'; printf 5 > 'z trail '
git -c filter.lfs.clean=cat -c filter.lfs.required=false add -A
git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib
git commit -qm 'feat: odd things'`)
	repo := squad.Repository{Name: "odd", Forge: squad.ForgeLocal, SquadID: h.squad.ID}
	h.must(h.forges.Prepare(t.Context(), &repo, work))
	if repo.DefaultBranch != "trunk" {
		t.Fatalf("default branch %q", repo.DefaultBranch)
	}
	h.tx(func(tx *store.Tx) error { return tx.CreateRepository(t.Context(), &repo) })
	h.repo = repo
	k := h.task("Add odd names", h.member("Ada", `set -e
git status --porcelain | sed 's/^/dirty: /'
grep -q git-lfs a/large.bin; [ "$(cat ./-dash)" = 3 ]; [ "$(cat "$(printf 'new\nline')")" = 1 ]
printf a > "$(printf 'my\nown')"; printf b > ./--force; printf c > 'tab	and ☕'; mkdir -p 'sub dir'; printf d > 'sub dir/*'`))
	h.start(k)
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" {
		h.story(k)
		t.Fatal(k.Cause)
	}
	names := strings.Split(strings.TrimSuffix(h.git("ls-tree", "-r", "-z", "--name-only", "task-1"), "\x00"), "\x00")
	for _, want := range []string{"new\nline", `quo"te's`, "-dash", "grün ☃", "z trail ", "my\nown", "--force", "tab\tand ☕", "sub dir/*", "lib", "a/large.bin", ".gitmodules"} {
		if !slices.Contains(names, want) {
			t.Errorf("%q is not on the branch: %q", want, names)
		}
	}
	if got := h.git("diff", "--name-status", "trunk", "task-1"); strings.Contains(got, "M\t") || strings.Contains(got, "D\t") {
		t.Errorf("other things changed:\n%s", got)
	}
	if pull := h.pull(k); pull.Base != "trunk" {
		t.Errorf("pull request into %q", pull.Base)
	}
	list, err := h.store.Events(t.Context(), store.EventFilter{TaskID: k.ID, Types: []squad.EventType{squad.EventLog}, Limit: 100})
	h.must(err)
	for _, e := range list {
		if strings.Contains(string(e.Payload), "dirty: ") {
			t.Errorf("the tree did not come clean: %s", e.Payload)
		}
	}
}

// A key of the squad signs what the server commits, and git believes it.
func TestExecution_SquadsKeySignsItsCommits(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	h.signKey.Store(new(pem.EncodeToMemory(block)))
	k := h.task("Say hi", h.member("Ada", "echo hi > hi.txt"))
	h.start(k)
	k = h.untilTask(k, func(k squad.Task) bool { return inReview(k) || k.Flag != "" })
	if k.Flag != "" {
		h.story(k)
		t.Fatal(k.Cause)
	}
	pub, err := ssh.NewPublicKey(public)
	h.must(err)
	allowed := filepath.Join(t.TempDir(), "allowed")
	h.must(os.WriteFile(allowed, append([]byte("* "), ssh.MarshalAuthorizedKey(pub)...), 0o600))
	if got := h.git("-c", "gpg.ssh.allowedSignersFile="+allowed, "log", "-1", "--format=%G?", "task-1"); got != "G" {
		t.Errorf("signature is %q", got)
	}
}
