package app_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"agentsquad/internal/app"
	"agentsquad/internal/config"
)

var (
	described = regexp.MustCompile(`fqName: "([^"]+)"`)
	mentioned = regexp.MustCompile(`\b(?:squad|go|process)_[a-z0-9_]+`)
	suffixes  = []string{"_bucket", "_sum", "_count"}
)

// names are the metrics that a server registers, with or without samples.
func names(a *app.App) map[string]bool {
	ch := make(chan *prometheus.Desc)
	go func() {
		a.Registry().Describe(ch)
		close(ch)
	}()
	out := map[string]bool{}
	for d := range ch {
		if m := described.FindStringSubmatch(d.String()); m != nil {
			out[m[1]] = true
		}
	}
	return out
}

func deployed(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestDeploy_DashboardAndRulesNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := names(start(t, filepath.Join(t.TempDir(), "data")))
	for _, file := range []string{"grafana/dashboard.json", "prometheus/rules.yaml"} {
		text := deployed(t, file)
		found := mentioned.FindAllString(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range found {
			base := name
			for _, s := range suffixes {
				base = strings.TrimSuffix(base, s)
			}
			if !known[name] && !known[base] {
				t.Errorf("%s names %s, which the server does not have", file, name)
			}
		}
	}
}

func TestDeploy_FilesAreWellFormedAndNameRealSettings(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Title  string
		Panels []struct{ Title string }
	}
	if err := json.Unmarshal([]byte(deployed(t, "grafana/dashboard.json")), &dashboard); err != nil || len(dashboard.Panels) < 8 {
		t.Errorf("dashboard: %v, %d panels", err, len(dashboard.Panels))
	}
	var compose struct {
		Services map[string]struct {
			Healthcheck map[string]any
			Environment map[string]string
		}
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	for name, s := range compose.Services {
		if len(s.Healthcheck) == 0 {
			t.Errorf("service %s of compose.yaml has no health check", name)
		}
	}
	for _, file := range []string{"prometheus/rules.yaml", "prometheus/prometheus.yaml", "grafana/datasource.yaml", "grafana/provider.yaml"} {
		if err := yaml.Unmarshal([]byte(deployed(t, file)), &map[string]any{}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	var env []string
	for _, o := range config.Default().Options() {
		env = append(env, o.Env...)
	}
	for _, file := range []string{"Dockerfile", "compose.yaml", "squad.service", "squad.env"} {
		for _, name := range regexp.MustCompile(`\bSQUAD_[A-Z0-9_]+`).FindAllString(deployed(t, file), -1) {
			if !slices.Contains(env, name) {
				t.Errorf("%s sets %s, which is no setting", file, name)
			}
		}
	}
}

// The unit is judged by systemd itself, with a program that exists in the place of
// the installed one.
func TestDeploy_UnitIsTakenBySystemd(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED, the unit was not checked: systemd-analyze is not installed (apt-get install systemd)")
	}
	const installed = "/usr/local/bin/squad"
	text := deployed(t, "squad.service")
	if !strings.Contains(text, installed) {
		t.Fatalf("the unit does not start %s", installed)
	}
	file := filepath.Join(t.TempDir(), "squad.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, installed, "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), "squad.service") {
		t.Fatalf("%v: %s", err, out)
	}
}
