package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite golden files")

func testEnv(out, err *bytes.Buffer) *env {
	return &env{in: strings.NewReader(""), out: out, err: err, getenv: func(string) string { return "" }}
}

// walk calls f with each command that users see.
func walk(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" && sub.Name() != "help" {
			walk(sub, f)
		}
	}
}

func TestHelp_TeachesEveryCommand(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	var out, errs bytes.Buffer
	walk(newRoot(testEnv(&out, &errs)), func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s says nothing about itself", c.CommandPath())
		}
		out.Reset()
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if code := run(testEnv(&out, &errs), args); code != exitOK {
			t.Errorf("%s --help ends with %d", c.CommandPath(), code)
		}
		all.WriteString("## " + c.CommandPath() + "\n" + machineless(out.String()) + "\n")
	})
	path := filepath.Join("testdata", "help.golden")
	if *update {
		if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != string(want) {
		t.Fatalf("the help changed; look at it and run: go test ./cmd/squad -update")
	}
}

// machineless drops lines whose defaults depend on the machine.
func machineless(help string) string {
	var kept []string
	for line := range strings.Lines(help) {
		if strings.Contains(line, "--node ") || strings.Contains(line, "--max-running ") && strings.Contains(line, "default") {
			continue
		}
		kept = append(kept, strings.TrimRight(line, " \n")+"\n")
	}
	return strings.Join(kept, "")
}

func TestRun_MistakesOfUsageAreCode2(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"nonsense"}, {"task", "add"}, {"task", "nonsense"}, {"up", "--log-level", "loud"}, {"task", "list", "--nonsense"}, {"sandbox", "cp", "a", "b"},
	} {
		var out, errs bytes.Buffer
		e := testEnv(&out, &errs)
		code := run(e, append(args, "--data", t.TempDir()))
		noServer := args[0] == "sandbox" && code == exitUnavailable // it asks for the server first
		if code != exitUsage && !noServer {
			t.Errorf("%v ends with %d: %s", args, code, errs.String())
		}
		if errs.Len() == 0 {
			t.Errorf("%v says nothing", args)
		}
	}
}

func TestRun_NoServerIsCode7WithARemedy(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(testEnv(&out, &errs), []string{"task", "list", "--data", t.TempDir()}); code != exitUnavailable {
		t.Fatalf("ends with %d", code)
	}
	if !strings.Contains(errs.String(), "squad up") {
		t.Fatal(errs.String())
	}
}

func TestClient_TokenOfTheFolderGoesToItsServerOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"server.json": `{"url":"http://127.0.0.1:1"}`, "admin.token": "squad_x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	e := testEnv(&out, &errs)
	e.data, e.url = dir, "https://elsewhere.example"
	if _, err := e.client(); err == nil {
		t.Fatal("the administrator's token would have been sent elsewhere")
	}
	e.url = "http://127.0.0.1:1/"
	if _, err := e.client(); err != nil {
		t.Fatal(err)
	}
}

func TestPlain_TakesControlCharactersAway(t *testing.T) {
	t.Parallel()
	got := plain("a\x1b[31mred\x07\r\n\x00 b\u202e c\u009b")
	if strings.ContainsAny(got, "\x1b\x07\r\n\x00") || strings.ContainsRune(got, 0x202e) || strings.ContainsRune(got, 0x9b) {
		t.Fatalf("%q", got)
	}
}

func TestQuoted_EachArgumentStaysOne(t *testing.T) {
	t.Parallel()
	if got := quoted([]string{"echo", "it's", "$(rm -rf /)"}); got != `'echo' 'it'\''s' '$(rm -rf /)'` {
		t.Fatal(got)
	}
}
