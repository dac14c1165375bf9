package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentsquad/internal/git"
	"agentsquad/internal/git/gittest"
)

func TestCommit_SignedOutsideIsVerifiedByGit(t *testing.T) {
	t.Parallel()
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed: apt install openssh-client")
	}
	for _, kind := range []string{"ed25519", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			key := filepath.Join(dir, "key")
			if out, err := exec.Command(keygen, "-q", "-t", kind, "-N", "", "-f", key).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			secret, err := os.ReadFile(key)
			must(t, err)
			public, err := os.ReadFile(key + ".pub")
			must(t, err)
			signer, err := git.SSHSigner(secret)
			must(t, err)
			d := newDesk(t, "main")
			d.clone(t, d.co)
			gittest.Write(t, d.dir, "a.txt", "a\n")
			commit, err := d.co.Commit(t.Context(), git.CommitOptions{Message: "feat: signed\n\nbody", Author: ada, Sign: signer})
			must(t, err)
			allowed := filepath.Join(dir, "allowed")
			must(t, os.WriteFile(allowed, []byte(ada.Email+" "+strings.TrimSpace(string(public))+"\n"), 0o600))
			out := gittest.Git(t, d.dir, "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", "-v", commit.SHA)
			if !strings.Contains(out, "Good \"git\" signature for "+ada.Email) {
				t.Errorf("got %s", out)
			}
			gittest.Git(t, d.dir, "fsck", "--strict")
			if got := gittest.Git(t, d.dir, "status", "--porcelain"); got != "" {
				t.Errorf("dirty: %s", got)
			}
		})
	}
	if _, err := git.SSHSigner([]byte("not a key")); err == nil {
		t.Error("anything is a key")
	}
}
