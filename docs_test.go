package squad_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPackages_HaveADoc wants a doc comment on each package: what it owns, what
// it promises, what it refuses.
func TestPackages_HaveADoc(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-e", "-f", `{{.ImportPath}}|{{len .GoFiles}}|{{.Doc}}`, "./...").Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		parts := strings.SplitN(strings.TrimSpace(line), "|", 3)
		if parts[1] != "0" && parts[2] == "" {
			t.Errorf("package %s has no doc comment", parts[0])
		}
	}
}
