package agent

import (
	"slices"
	"strings"
	"testing"
)

// What real agents look like from outside while they run a command: which processes
// are the command's, and that nobody else is touched.
func TestProcesses_CommandOfAnAgent(t *testing.T) {
	t.Parallel()
	const frame = `10 1 100 pipe:[1]	/bin/sh -c squad-acp
10 1 100 pipe:[1]	/bin/sh -c squad-acp
1 0 1 /dev/null	/envd
11 10 101 pipe:[1]	/bin/sh -c squad-acp
12 10 101 pipe:[2]	tee /home/user/.squad/x/1/out
`
	for name, c := range map[string]struct{ rows, words, want string }{
		"adapter with the agent below it": {`13 11 102 pipe:[1]	node /opt/claude-agent-acp
14 13 150 pipe:[3]	/opt/claude --input-format stream-json --tools
15 14 900 /dev/null	/bin/bash -c source /tmp/snap.sh && eval 'sleep 600 && echo "a b"' < /dev/null && pwd -P
16 15 901 /dev/null	sleep 600
17 14 800 pipe:[9]	rg --files
`, `sleep 600 && echo "a b"`, "15 16"},
		"short words hold no agent": {`13 11 102 pipe:[1]	node /opt/adapter
14 13 150 pipe:[3]	/opt/claude --tools
15 14 900 /dev/null	bash -lc ls
`, "ls", "15"},
		"shell in a shell": {`13 11 102 pipe:[1]	codex-acp
14 13 900 /dev/null	/bin/bash -lc make test
15 14 901 /dev/null	make test
16 15 902 /dev/null	/bin/sh -c go test ./...
`, "make test", "14 15 16"},
		"program without a shell": {`13 11 102 pipe:[1]	codex-acp
14 13 900 /dev/null	sleep 600
`, "sleep 600", "14"},
		"other words": {`13 11 102 pipe:[1]	gemini
14 13 150 pipe:[3]	node helper.js
15 13 900 pipe:[4]	bash -c shopt; { run_it; }
16 15 901 pipe:[4]	sleep 600
`, "wait ten minutes", "15 16"},
		"two at once":        {"13 11 102 pipe:[1]\tagent\n14 13 800 /dev/null\tbash -c sleep 1\n15 13 900 /dev/null\tbash -c sleep 2\n", "sleep 1", "14"},
		"nothing runs":       {"13 11 102 pipe:[1]\tnode agent\n14 13 150 pipe:[3]\tnode inner\n", "sleep 600", ""},
		"another's commands": {"13 11 102 pipe:[1]\tagent\n20 1 900 /dev/null\tbash -c sleep 600\n", "sleep 600", ""},
	} {
		got := parseProcesses(frame + c.rows).command(c.words)
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := parseProcesses("").command("x"); got != nil {
		t.Errorf("no processes: %v", got)
	}
}
