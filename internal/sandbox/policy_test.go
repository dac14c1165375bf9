package sandbox_test

import (
	"testing"

	squad "agentsquad"
	"agentsquad/internal/sandbox"
)

func TestPolicy_SeesEveryProgramOfALine(t *testing.T) {
	t.Parallel()
	deny := sandbox.Policy{Deny: []string{"rm -rf /*", "curl", "git push *--force*", "npm publish"}}
	for shell, ok := range map[string]bool{
		"ls -l":                              true,
		"curl http://x":                      false,
		"/usr/bin/curl http://x":             false,
		"ls | xargs -n 1 curl":               false,
		"ls; (cd /tmp && curl x) &":          false,
		"echo $(curl x)":                     false,
		"cat <(curl x)":                      false,
		`bash -c "curl x"`:                   false,
		`sh -lc 'true; sudo -u root curl x'`: false,
		`eval "cu""rl x"`:                    false,
		"env A=1 timeout 5 nice -n 3 curl x": false,
		"find . -exec curl {} ;":             false,
		`c\url x`:                            false,
		`"cu"'rl' x`:                         false,
		"$CMD x":                             false, // cannot be known
		"echo curl":                          true,
		"echo 'curl x'":                      true,
		"rm -rf /":                           false,
		"rm -rf /home":                       false,
		"rm -rf build":                       true,
		"rm -rf $DIR":                        false, // may be a path that is denied
		"git push origin --force":            false, // flags fit wherever they stand
		"git push origin main --force-with-lease": false,
		"rm build -rf / -v":                       true, // the word after rm is not /
		"rm / -rf":                                false,
		"git commit -m push":                      true,
		"git push --force":                        false,
		"git push":                                true,
		"npm publish":                             false,
		"npm test":                                true,
		"if true; then curl x; fi":                false,
		"f() { curl x; }; f":                      false,
		"echo 'unterminated":                      false,
		"for i in 1 2; do echo $i; done":          true,
		"while read -r x; do echo $x; done":       true,
		"X=1 Y=2 curl x":                          false,
		"cat <<EOF\ncurl x\nEOF":                  true,
		"bash -c \"$SCRIPT\"":                     false,
		"python3 -c 'import os'":                  true,
		"echo a && echo b || echo c":              true,
	} {
		if err := deny.Check(shell); (err == nil) != ok {
			t.Errorf("%q: allowed %v, want %v (%v)", shell, err == nil, ok, err)
		} else if err != nil && squad.CodeOf(err) != squad.CodeRule {
			t.Errorf("%q: code %s", shell, squad.CodeOf(err))
		}
	}
}

func TestPolicy_AllowListMustCoverEveryProgram(t *testing.T) {
	t.Parallel()
	allow := sandbox.Policy{Allow: []string{"git *", "go test *", "ls"}, Deny: []string{"git push *"}}
	for shell, ok := range map[string]bool{
		"git status":               true,
		"git":                      true,
		"git push":                 false,
		"git push origin":          false,
		"go test ./...":            true,
		"go build":                 false,
		"ls -la /tmp":              true,
		"ls && make":               false,
		"git status | tee log":     false,
		"$X":                       false,
		"go $X":                    false,
		"X=$(make)":                false,
		"git log --format=$FORMAT": true,
	} {
		if err := allow.Check(shell); (err == nil) != ok {
			t.Errorf("%q: allowed %v, want %v (%v)", shell, err == nil, ok, err)
		}
	}
	if err := (sandbox.Policy{}).Check("$anything `at all"); err != nil {
		t.Errorf("no policy refuses: %v", err)
	}
}

func TestPolicy_DenyAlwaysWins(t *testing.T) {
	t.Parallel()
	for _, p := range []sandbox.Policy{
		{Allow: []string{"*"}, Deny: []string{"git push"}},
		{Allow: []string{"git push", "git push origin"}, Deny: []string{"git push"}},
		{Allow: []string{"git *"}, Deny: []string{"make", "git push", "git"}},
	} {
		code(t, p.Check("git push origin"), squad.CodeRule)
	}
}
