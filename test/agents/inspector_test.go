package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	squad "agentsquad"
	"agentsquad/test/house"
)

// inspector is the MCP project's own client.
type inspector struct {
	t      *testing.T
	dir    string
	target []string
}

// ask runs one method and returns what it printed and how it ended.
func (i inspector) ask(args ...string) (string, int) {
	i.t.Helper()
	bin := filepath.Join(i.dir, "node_modules", ".bin")
	line := append([]string{filepath.Join(bin, "mcp-inspector"), "--cli"}, i.target...)
	cmd := exec.CommandContext(i.t.Context(), filepath.Join(bin, "node"), append(line, args...)...)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + i.t.TempDir()}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		i.t.Fatal(err)
	}
	if len(out) == 0 {
		out = complaints.Bytes()
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// tools lists the tools that the server offers.
func (i inspector) tools() []string {
	i.t.Helper()
	out, code := i.ask("--method", "tools/list")
	var list struct {
		Tools []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 {
		i.t.Fatalf("tools/list ends with %d: %v\n%s", code, err, out)
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names
}

// call uses a tool and returns its text.
func (i inspector) call(tool string, args ...string) (string, int) {
	i.t.Helper()
	line := []string{"--method", "tools/call", "--tool-name", tool}
	for _, a := range args {
		line = append(line, "--tool-arg", a)
	}
	out, code := i.ask(line...)
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal([]byte(out), &result) == nil && len(result.Content) > 0 {
		return result.Content[0].Text, code
	}
	return out, code
}

// works wants a call to succeed and its answer to hold a text.
func (i inspector) works(want, tool string, args ...string) string {
	i.t.Helper()
	out, code := i.call(tool, args...)
	if code != 0 || !strings.Contains(out, want) {
		i.t.Errorf("%s %q ends with %d: %s", tool, args, code, out)
	}
	return out
}

// refused wants a call to fail with a message.
func (i inspector) refused(want, tool string, args ...string) {
	i.t.Helper()
	if out, code := i.call(tool, args...); code == 0 || !strings.Contains(out, want) {
		i.t.Errorf("%s %q ends with %d: %s", tool, args, code, out)
	}
}

// The MCP project's inspector works on a running task's sandbox, over standard input
// and output as a person and over HTTP with the tokens of members.
func TestMCP_InspectorUsesTheTools(t *testing.T) {
	t.Parallel()
	dir := installed(t, "inspector", true)
	s := newServer(t, newModel(t, nil))
	c := s.crew()
	ada := c.member("Ada", squad.NewMember{Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: gate}})
	boss := c.member("Pat", squad.NewMember{Role: squad.RoleProjectManager, Config: squad.MemberConfig{Agent: squad.AgentCommand, Command: "true"}})
	k := c.run("Wait", ada)
	waitFor(t, "the sandbox", func() bool {
		e := c.execution(k)
		return e.SandboxID != "" && e.Turn == 1
	})
	box := c.execution(k).SandboxID
	stdio := inspector{t: t, dir: dir, target: []string{"-e", "SQUAD_DATA=" + s.Data, s.Bin, "mcp"}}
	overHTTP := func(in squad.NewToken) inspector {
		in.Name = "inspector"
		token, err := c.CreateToken(t.Context(), in)
		house.Must(t, err)
		return inspector{t: t, dir: dir, target: []string{"http://" + s.Address + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + token.Secret}}
	}
	member := overHTTP(squad.NewToken{Kind: squad.TokenAgent, MemberID: ada.ID, TaskID: k.ID, SandboxID: box})
	manager := overHTTP(squad.NewToken{Kind: squad.TokenAgent, MemberID: boss.ID, TaskID: k.ID})

	if got := stdio.tools(); len(got) != 19 {
		t.Errorf("a person sees %q", got)
	}
	if got := member.tools(); !slices.Contains(got, "git_push") || slices.Contains(got, "create_task") {
		t.Errorf("a developer sees %q", got)
	}
	if got := manager.tools(); slices.Contains(got, "run_command") || !slices.Contains(got, "create_task") {
		t.Errorf("a project manager sees %q", got)
	}
	repo := "/home/user/hello"
	member.works("42", "run_python", "code=print(6*7)")
	member.works("wrote", "run_command", "command=echo wrote by command; exit 7")
	member.works("notes.txt", "write_file", "path="+repo+"/notes.txt", "text=some notes")
	member.works("some notes", "read_file", "path="+repo+"/notes.txt")
	member.works("notes.txt", "list_files", "path="+repo)
	member.works("notes.txt", "git_status")
	member.works("some notes", "git_diff")
	member.refused("rule", "git_commit", "message=no conventional message")
	member.works("succeeded", "git_commit", "message=docs: add notes")
	member.works("succeeded", "git_push")
	member.works("number", "create_pull_request")
	member.works("succeeded", "git_pull")
	member.works("Pat", "list_members")
	member.works("Wait", "list_tasks")
	member.works("message", "message_member", "to=Pat", "text=a message by MCP")
	member.works("escalation", "escalate", "reason=stuck", "tried=everything")
	member.refused("not_found", "message_member", "to=Nobody", "text=x")
	member.refused("create_task", "create_task", "title=not mine to make")
	member.refused("", "read_file", "path=/nowhere")
	manager.works("Made by MCP", "create_task", "title=Made by MCP")
	manager.works("urgent", "update_task", "number=2", "title=Made by MCP urgent")
	stdio.works("backlog", "update_task", "number=2", "status=backlog")
	stdio.works("42", "run_python", "sandbox_id="+box, "code=print(6*7)")
	stdio.refused("name a sandbox", "run_command", "command=echo")
	wrong := member
	wrong.target = append([]string{}, member.target...)
	wrong.target[len(wrong.target)-1] = "Authorization: Bearer agent_wrong"
	if out, code := wrong.ask("--method", "tools/list"); code == 0 {
		t.Errorf("a wrong token lists tools: %s", out)
	}
	if t.Failed() {
		c.story(k)
	}
	c.inside(k, "touch /tmp/gate")
}
