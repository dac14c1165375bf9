package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	squad "agentsquad"
	"agentsquad/test/house"
)

// waitFor waits until something is true.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// memory is what the server uses now, in MiB.
func (s *server) memory() int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	house.Must(s.t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			house.Must(s.t, err)
			return kb >> 10
		}
	}
	return 0
}

// An agent that prints without end, huge lines, control codes and bytes that are no
// text harms nothing: it is stopped, the server's memory stays bounded, and what
// is stored is clean text.
func TestHostile_EndlessOutputIsStopped(t *testing.T) {
	t.Parallel()
	s := newServer(t, newModel(t, nil))
	c := s.crew()
	before := s.memory()
	for name, m := range map[string]squad.MemberConfig{
		"command": {Agent: squad.AgentCommand, Command: `printf '\377\376 bad \033]0;title\007 \033[31mred\033[0m \000nul\n'
echo '{"squad":"message","text":"one event"}'; echo '{"squad":"message","text":'; head -c 3000000 /dev/zero | tr '\0' x; echo; yes "$(head -c 4000 /dev/zero | tr '\0' y)"`},
		"acp": {Agent: squad.AgentACP, Command: `echo '{"jsonrpc":"2.0","method":"session/update","params":{"x":1}}'; head -c 100000 /dev/urandom; yes x | tr -d '\n'`},
	} {
		k := c.run("Print ("+name+")", c.member("Mal "+name, squad.NewMember{Config: m}))
		highest := 0
		var e squad.Execution
		waitFor(t, "the end of "+name, func() bool {
			e = c.execution(k)
			highest = max(highest, s.memory())
			return e.Status.Final()
		})
		if !strings.Contains(e.Error, "printed more than") && !strings.Contains(e.Error, "larger than 16 MiB") {
			t.Errorf("%s ended with %s: %s", name, e.Status, e.Error)
		}
		if highest > before+400 {
			t.Errorf("%s: the server grew from %d to %d MiB", name, before, highest)
		}
		t.Logf("%s: %s; the server grew from %d to at most %d MiB", name, e.Error, before, highest)
		c.checkLog(k, name == "command")
	}
}

// checkLog wants stored output to be clean and bounded.
func (c crew) checkLog(k squad.Task, command bool) {
	c.t.Helper()
	total, all := 0, strings.Builder{}
	for _, e := range c.events(k, squad.EventLog) {
		var p squad.LogChunk
		house.Must(c.t, json.Unmarshal(e.Payload, &p))
		if total += len(p.Text); total < 1<<20 {
			all.WriteString(p.Text)
		}
		if !utf8.ValidString(p.Text) || strings.ContainsAny(p.Text, "\x00\x07") || strings.Contains(p.Text, "\x1b]") || len(p.Text) > 256<<10 {
			c.t.Errorf("a log event of %d bytes is not clean: %.100q", len(p.Text), p.Text)
		}
	}
	if total > 20<<20 {
		c.t.Errorf("%d MiB of log are stored", total>>20)
	}
	if command && (!strings.Contains(all.String(), "\x1b[31mred") || texts(c.events(k, squad.EventMessage)) != "one event") {
		c.t.Errorf("what was worth keeping is gone: %.300q", all.String())
	}
}
