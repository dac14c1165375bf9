package attack

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// insideAttacks look for secrets in everything that a sandbox can read, as its user
// and as its root.
func (h *house) insideAttacks(t *testing.T) {
	t.Helper()
	patterns := make([]string, 0, len(h.canaries))
	for _, secret := range h.canaries {
		patterns = append(patterns, secret)
	}
	// Tokens that are made while the server runs are found by their form.
	forms := `(agent|squad|session|signin)_[0-9a-f]{48}|e2b_[0-9a-f]{40}`
	for _, user := range []string{"user", "root"} {
		for name, script := range map[string]string{
			"environment":          `env; cat /proc/*/environ 2>/dev/null | tr '\0' '\n'`,
			"arguments":            `cat /proc/*/cmdline 2>/dev/null | tr '\0' ' '; ps axww 2>/dev/null`,
			"git configuration":    `cd shop; git config --list --show-origin; git remote -v; git credential fill </dev/null 2>&1; cat .git/config ~/.git-credentials ~/.netrc 2>/dev/null`,
			"what git says":        `cd shop; GIT_TRACE=1 GIT_TRACE_CURL=1 GIT_CURL_VERBOSE=1 git fetch origin 2>&1`,
			"open files":           `ls -l /proc/*/fd 2>/dev/null; cat /proc/net/unix /proc/mounts 2>/dev/null`,
			"memory of process":    `for p in /proc/[0-9]*; do [ $p = /proc/self ] && continue; head -c 200000 $p/maps 2>/dev/null; done`,
			"files of the runtime": `ls -laR /run/squad /opt/squad 2>/dev/null | head -500`,
		} {
			t.Run(name+" as "+user, func(t *testing.T) {
				out, _ := h.inside(t, user, script)
				if found := matching(out, forms); found != "" {
					t.Errorf("a token is there: %.12s…", found)
				}
			})
		}
	}
	t.Run("every file", func(t *testing.T) { h.everyFile(t, patterns, forms) })
	t.Run("objects and image are read-only", h.readOnly)
}

// search greps all that is readable. Of /usr, which is the machine's own, only files
// that are younger than the secrets: they are made by this run.
const search = `: > /tmp/hits
grep -rlaEs -D skip -f /tmp/patterns / --exclude-dir=usr --exclude-dir=proc --exclude-dir=sys --exclude=patterns --exclude=hits >> /tmp/hits 2>/dev/null
find /usr -xdev -newer /tmp/patterns -type f -exec grep -laEs -f /tmp/patterns {} + >> /tmp/hits 2>/dev/null
for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/comm /proc/[0-9]*/stat* /proc/[0-9]*/mounts /proc/[0-9]*/mountinfo /proc/sys/kernel/* /proc/net/*; do
  timeout 2 grep -laEs -f /tmp/patterns "$f" >> /tmp/hits 2>/dev/null
done
cat /tmp/hits; rm -f /tmp/hits`

// everyFile searches as root, who may read all that the user may. A word is planted
// in the user's home and must be found, or the search proves nothing.
func (h *house) everyFile(t *testing.T, patterns []string, forms string) {
	const planted = "/home/user/.config/deep/planted"
	word := "planted-" + strings.Repeat("x", 20)
	var b strings.Builder
	// The words go in split, so that the search does not find itself.
	say := func(word string) { b.WriteString("printf '%s%s\\n' '" + word[:8] + "' '" + word[8:] + "'\n") }
	b.WriteString("umask 077; mkdir -p $(dirname " + planted + "); { ")
	say(word)
	b.WriteString("} > " + planted + "\nrm -f /tmp/patterns; {\n")
	for _, p := range append(patterns, word) {
		say(p)
	}
	b.WriteString("echo '" + forms + "'\n} > /tmp/patterns; touch -d '1 hour ago' /tmp/patterns\n")
	out, _ := h.inside(t, "root", b.String()+search+"; rm -f /tmp/patterns "+planted)
	hits := strings.Fields(out)
	if !slices.Contains(hits, planted) {
		t.Errorf("the search finds nothing: %s", out)
	}
	for _, hit := range hits {
		if hit != planted {
			t.Errorf("a secret is in %s", hit)
		}
	}
}

// readOnly tries to change what sandboxes share.
func (h *house) readOnly(t *testing.T) {
	for _, script := range []string{
		`d=$(ls -d /opt/squad/objects/*); echo x > $d/x`,
		`d=$(ls -d /opt/squad/objects/*); rm -rf $d/pack $d/info`,
		`d=$(ls -d /opt/squad/objects/*); mount -o remount,rw $d && echo x > $d/x`,
	} {
		if out, code := h.inside(t, "root", "set -e\n"+script); code == 0 {
			t.Errorf("%s: it was done\n%s", script, out)
		}
	}
	entries, err := os.ReadDir(h.Data + "/mirrors")
	h.must(err)
	for _, e := range entries {
		if _, err := os.Stat(h.Data + "/mirrors/" + e.Name() + "/objects/x"); err == nil {
			t.Error("a sandbox wrote into the mirror")
		}
		if _, err := os.Stat(h.Data + "/mirrors/" + e.Name() + "/objects/info"); err != nil {
			t.Errorf("a sandbox removed from the mirror: %v", err)
		}
	}
}

func matching(text, form string) string { return regexp.MustCompile(form).FindString(text) }
