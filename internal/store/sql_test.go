package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"agentsquad/internal/store"
)

// Some SQLite drivers bind $n by place instead of by number, and silently wrong:
// so that the driver can be changed, parameters stand in order, each once.
func TestSQL_ParametersStandInOrder(t *testing.T) {
	t.Parallel()
	number := regexp.MustCompile(`\$(\d+)`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			for i, m := range number.FindAllStringSubmatch(lit.Value, -1) {
				found++
				if m[1] != strconv.Itoa(i+1) {
					t.Errorf("%s: parameter %s at place %d in %s", file, m[0], i+1, lit.Value)
				}
			}
			return true
		})
	}
	if found < 50 {
		t.Fatalf("looked at %d parameters only", found)
	}
}

func TestSQLite_IsSetUpToKeepWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	url := freshURL(t, store.SQLite)
	s := open(t, url)
	for name, want := range map[string][2]string{
		"journal_mode": {"wal", "wal"}, "synchronous": {"2", "2"}, "foreign_keys": {"1", "1"},
		"busy_timeout": {"10000", "10000"}, "query_only": {"0", "1"},
	} {
		write, read, err := s.Pragmas(t.Context(), name)
		if err != nil || write != want[0] || read != want[1] {
			t.Errorf("%s: %s and %s, want %v, %v", name, write, read, want, err)
		}
	}
	path := strings.TrimPrefix(url, "sqlite:")
	for _, p := range []string{path, path + "-wal"} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
}

func TestOpen_BadAddressSaysSoWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "mysql://root:hunter2@host/db", "sqlite:", "postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=1", "postgres://u:hunter2@%zz"} {
		_, err := store.Open(t.Context(), store.Config{URL: url})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
