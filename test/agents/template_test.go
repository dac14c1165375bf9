package agents

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	squad "agentsquad"
)

// A template that was built with commands takes no mounts: the repository is cloned
// into its sandboxes. An agent that is not in its template says how it gets there.
func TestTemplates_BuiltOnesWorkAndMissingAgentsNameTheRemedy(t *testing.T) {
	t.Parallel()
	s := newServer(t, newModel(t, nil))
	c := s.crew()
	cmd := exec.CommandContext(t.Context(), s.Bin, "templates", "build", "marked", "--run", "echo built > /etc/marked")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Data, "SQUAD_DATA=" + s.Data}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "template marked is ready") {
		t.Fatalf("templates build: %v\n%s", err, out)
	}
	ada := c.member("Ada", squad.NewMember{Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: "cp /etc/marked mark.txt", Template: "marked"}})
	k := c.until(c.run("Copy the mark", ada), "review", inReview)
	if got := c.file(k, "mark.txt"); got != "built" {
		t.Errorf("mark.txt is %q", got)
	}
	bo := c.member("Bo", squad.NewMember{Config: squad.MemberConfig{Preset: "codex"}})
	k = c.run("Cannot begin", bo)
	var e squad.Execution
	waitFor(t, "the refusal", func() bool { e = c.execution(k); return e.Status.Final() })
	for _, want := range []string{"codex-acp is not in the template", "npm install --prefix ./agents @zed-industries/codex-acp", "squad templates add agents"} {
		if !strings.Contains(e.Error, want) {
			t.Errorf("the cause does not say %q: %s", want, e.Error)
		}
	}
}
