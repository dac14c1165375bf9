package mcp_test

import (
	"strings"
	"testing"

	"agentsquad/internal/mcp"
)

func TestPolicy_ShippedRules(t *testing.T) {
	t.Parallel()
	p := mcp.DefaultPolicy()
	for _, c := range []struct {
		role, tool string
		may        bool
	}{
		{"people", "git_push", true},
		{"developer", "git_push", true},
		{"developer", "update_task", false},
		{"reviewer", "git_push", false},
		{"reviewer", "git_diff", true},
		{"project_manager", "create_task", true},
		{"project_manager", "run_command", false},
		{"something new", "run_command", true},
	} {
		if got := p.Allows(c.role, c.tool); got != c.may {
			t.Errorf("%s may use %s: %v, want %v", c.role, c.tool, got, c.may)
		}
	}
}

func TestParsePolicy_NamesMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"roles:\n  developer: [git_pushh]": "git_pushh",
		"roles: {}":                        "no roles",
		"roles: [":                         "read tools.yaml",
	} {
		if _, err := mcp.ParsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
