package squad_test

import (
	"os/exec"
	"strings"
	"testing"
)

// imports is the floor plan: which rooms of ours a room may import. Moving a
// wall means moving it here and in docs/ARCHITECTURE.md in the same commit.
var imports = map[string][]string{
	"":                   {},
	"e2b":                {"internal/envdpb/..."},
	"client":             {""},
	"web":                {},
	"internal/envdpb":    {"internal/envdpb/..."},
	"internal/tunnel":    {},
	"internal/pgtest":    {},
	"internal/envd":      {"internal/envdpb/...", "internal/tunnel", "internal/envd/..."},
	"internal/git":       {""},
	"internal/gvisor":    {"", "internal/tunnel", "internal/envd", "internal/gvisor/..."},
	"internal/e2bserver": {"", "internal/gvisor", "internal/tunnel", "internal/envdpb/...", "e2b"},
	"internal/store":     {""},
	"internal/event":     {"", "internal/store"},
	"internal/task":      {"", "internal/store", "internal/event"},
	"internal/flow":      {"", "internal/store"},
	"internal/sandbox":   {"", "e2b", "internal/store", "internal/event"},
	"internal/forge":     {"", "internal/git", "internal/store", "internal/event"},
	"internal/gateway":   {"", "internal/git", "internal/store", "internal/event"},
	"internal/agent":     {"", "e2b", "internal/store", "internal/event", "internal/sandbox"},
	"internal/mcp":       {"", "client"},
	"internal/demo":      {"", "client"},
	"internal/api":       {"", "internal/store", "internal/event", "internal/task", "internal/git", "web"},
	"internal/runner": {
		"", "e2b", "internal/store", "internal/event", "internal/task", "internal/flow", "internal/sandbox",
		"internal/agent", "internal/git", "internal/gateway", "internal/forge",
	},
	"internal/config": {""},
	"internal/app":    {"..."},
	"cmd/squad":       {"...", "!internal/store"},
	"cmd/envd":        {"internal/envd"},
}

// TestImports_PointDownTheFloorPlan reads the real import graph and names every
// import that the table does not allow.
func TestImports_PointDownTheFloorPlan(t *testing.T) {
	t.Parallel()
	const module = "agentsquad"
	out, err := exec.Command("go", "list", "-e", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		room := short(module, words[0])
		if strings.HasPrefix(room, "test/") || strings.HasPrefix(room, "tools") {
			continue
		}
		allowed, known := rule(room)
		if !known {
			t.Errorf("%s is a room that the floor plan does not know: add it to deps_test.go and docs/ARCHITECTURE.md", room)
			continue
		}
		for _, path := range words[1:] {
			if path != module && !strings.HasPrefix(path, module+"/") {
				continue
			}
			if target := short(module, path); !permits(allowed, target) {
				t.Errorf("%q may not import %q: the floor plan in deps_test.go allows it only %q", room, target, allowed)
			}
		}
	}
}

func short(module, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// rule finds the entry of the room itself or of the room it is a part of.
func rule(room string) ([]string, bool) {
	for name := room; ; {
		if allowed, ok := imports[name]; ok {
			return allowed, true
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return nil, false
		}
		name = name[:i]
	}
}

func permits(allowed []string, target string) bool {
	ok := false
	for _, pattern := range allowed {
		deny := strings.HasPrefix(pattern, "!")
		if matches(strings.TrimPrefix(pattern, "!"), target) {
			ok = !deny
		}
	}
	return ok
}

func matches(pattern, target string) bool {
	if prefix, found := strings.CutSuffix(pattern, "..."); found {
		return strings.HasPrefix(target, prefix) || target == strings.TrimSuffix(prefix, "/")
	}
	return pattern == target
}
