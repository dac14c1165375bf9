package app_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"agentsquad/internal/app"
)

// The program goes on after its pages were given back, with fewer of them.
func TestDropProgramPages(t *testing.T) {
	before := filePages(t)
	n, err := app.DropProgramPages()
	if err != nil || n == 0 {
		t.Fatalf("%d bytes: %v", n, err)
	}
	if after := filePages(t); after >= before {
		t.Errorf("%d kB of the program in memory, %d before", after, before)
	}
}

func filePages(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("SKIPPED: this system tells nothing of its processes: ", err)
	}
	found := regexp.MustCompile(`RssFile:\s*(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Skip("SKIPPED: this kernel does not tell which pages are of files")
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
