package mcp

import (
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed tools.yaml
var defaultTools []byte

// Policy says which role may use which tool.
type Policy struct {
	Roles map[string][]string `yaml:"roles"`
}

// people is the role of callers who are not agents.
const people = "people"

// DefaultPolicy is the one that ships.
func DefaultPolicy() Policy {
	p, err := ParsePolicy(defaultTools)
	if err != nil {
		panic("tools.yaml in the binary: " + err.Error()) // cannot be: a test reads it
	}
	return p
}

// ParsePolicy reads tools.yaml and names every mistake in it.
func ParsePolicy(text []byte) (Policy, error) {
	var p Policy
	if err := yaml.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read tools.yaml: %w", err)
	}
	var wrong []string
	for role, patterns := range p.Roles {
		for _, pattern := range patterns {
			if !matchesAny(pattern) {
				wrong = append(wrong, fmt.Sprintf("%s: %q fits no tool", role, pattern))
			}
		}
	}
	if len(p.Roles) == 0 {
		wrong = append(wrong, "no roles")
	}
	if len(wrong) > 0 {
		return p, fmt.Errorf("tools.yaml: %s", strings.Join(wrong, "; "))
	}
	return p, nil
}

func matchesAny(pattern string) bool {
	for _, t := range tools {
		if fits(pattern, t.name) {
			return true
		}
	}
	return false
}

// Allows says whether a role may use a tool. A role that is not named gets the
// rule of "*"; where there is none, nothing.
func (p Policy) Allows(role, tool string) bool {
	patterns, ok := p.Roles[role]
	if !ok {
		patterns = p.Roles["*"]
	}
	for _, pattern := range patterns {
		if fits(pattern, tool) {
			return true
		}
	}
	return false
}

func fits(pattern, tool string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(tool, prefix)
	}
	return pattern == tool
}
