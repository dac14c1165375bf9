package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/internal/config"
)

func load(t *testing.T, flags, env map[string]string) (*config.Config, error) {
	t.Helper()
	if env["HOME"] == "" && env["SQUAD_DATA"] == "" {
		env = merge(env, map[string]string{"SQUAD_DATA": t.TempDir()})
	}
	return config.Load(config.Sources{Flags: flags, Getenv: func(k string) string { return env[k] }})
}

func merge(a, b map[string]string) map[string]string {
	m := map[string]string{}
	for k, v := range a {
		m[k] = v
	}
	for k, v := range b {
		m[k] = v
	}
	return m
}

func TestLoad_FlagOverEnvironmentOverFileOverDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := "listen: 1.1.1.1:1\nlog-level: debug\nmax-running: 7\negress: [a.example, b.example]\n"
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, map[string]string{"listen": "3.3.3.3:3"},
		map[string]string{"SQUAD_DATA": dir, "SQUAD_LISTEN": "2.2.2.2:2", "SQUAD_LOG_LEVEL": "warn"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "3.3.3.3:3" || c.LogLevel != "warn" || c.MaxRunning != 7 || c.LogFormat != "auto" || len(c.Egress) != 2 {
		t.Fatalf("listen %s, level %s, running %d, format %s, egress %v", c.Listen, c.LogLevel, c.MaxRunning, c.LogFormat, c.Egress)
	}
}

func TestLoad_PricesBudgetsAndTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := "budget-day-usd: 12.5\nbudget-task-tokens: 9000\nprices:\n  claude-x*: 3/15/0.3\n  own: 0/0\ntemplate-egress:\n  node: [a.example, \"b.example:8443\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, nil, map[string]string{"SQUAD_DATA": dir, "SQUAD_BUDGET_TASK_USD": "2"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Budget != (squad.Budget{TaskUSD: 2, DayUSD: 12.5, Tokens: 9000}) {
		t.Errorf("budget %+v", c.Budget)
	}
	if len(c.Prices) != 2 || c.Prices["claude-x*"] != (config.Price{In: 3, Out: 15, CacheRead: 0.3}) || c.UnknownPrices != "budget" {
		t.Errorf("prices %+v, unknown %s", c.Prices, c.UnknownPrices)
	}
	if hosts := strings.Join(c.TemplateEgress["node"], " "); hosts != "a.example b.example:8443" {
		t.Errorf("hosts %q", hosts)
	}
	var shown strings.Builder
	if err := c.Print(&shown); err != nil || !strings.Contains(shown.String(), "claude-x*=3/15/0.3,own=0/0") {
		t.Errorf("%v\n%s", err, shown.String())
	}
	for name, text := range map[string]string{
		"SQUAD_PRICES": "claude=cheap", "SQUAD_BUDGET_DAY_USD": "-1", "SQUAD_BUDGET_TASK_USD": "NaN", "SQUAD_TEMPLATE_EGRESS": "node", "SQUAD_UNKNOWN_PRICES": "free",
		"SQUAD_MODEL_BASE_URLS": "ftp://x",
	} {
		if _, err := load(t, nil, map[string]string{name: text}); err == nil {
			t.Errorf("%s=%s is taken", name, text)
		}
	}
}

func TestLoad_HonoursTheOwnersNames(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil, map[string]string{
		"E2B_API_KEY": "e2b_0123456789abcdef", "E2B_TEMPLATE_ID": "tpl", "E2B_TIMEOUT": "600", "GITHUB_TOKEN": "ghp_secretsecret",
		"GITHUB_REPO_OWNER": "me", "GITHUB_REPO_NAME": "it", "DATABASE_URL": "postgres://u:pw@h/db",
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.E2BTimeout != 10*time.Minute || c.E2BTemplateID != "tpl" || c.GitHubRepoOwner != "me" || c.GitHubRepoName != "it" {
		t.Fatalf("%+v", c)
	}
	if c.SandboxProvider() != "e2b" || c.DatabaseOrDefault() != "postgres://u:pw@h/db" {
		t.Fatalf("provider %s, database %s", c.SandboxProvider(), c.DatabaseOrDefault())
	}
	var out strings.Builder
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"0123456789", "secretsecret", ":pw@"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the print shows %q:\n%s", secret, out.String())
		}
	}
}

func TestLoad_ReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("lissen: x\npool-min: 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := load(t, map[string]string{"log-format": "xml"}, map[string]string{
		"SQUAD_DATA": dir, "SQUAD_LISTEN": "nowhere", "SQUAD_PPROF": "0.0.0.0:6060", "E2B_TIMEOUT": "soon", "SQUAD_PUBLIC_URL": "ftp://x", "SQUAD_DOMAIN": "http://x/y",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"lissen", "pool-min", "log-format", "listen:", "pprof", "e2b-timeout", "public-url", "domain:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word about %s in:\n%v", want, err)
		}
	}
}

func TestLoad_DataFolderFollowsTheDesktopRule(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil, map[string]string{"HOME": "/home/a", "XDG_DATA_HOME": "/x"})
	if err != nil || c.Data != "/x/squad" {
		t.Fatalf("%s, %v", c.Data, err)
	}
	c, err = load(t, nil, map[string]string{"HOME": "/home/a"})
	if err != nil || c.Data != "/home/a/.local/share/squad" {
		t.Fatalf("%s, %v", c.Data, err)
	}
}

func FuzzLoad_FileNeverPanics(f *testing.F) {
	f.Add([]byte("listen: 127.0.0.1:1\n"))
	f.Add([]byte("egress: [a, {b: c}]\ndemo: maybe\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		c, _ := config.Load(config.Sources{Getenv: func(k string) string { return map[string]string{"SQUAD_DATA": dir}[k] }})
		if err := c.Print(&strings.Builder{}); err != nil {
			t.Fatal(err)
		}
	})
}
