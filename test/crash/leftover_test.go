package crash

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agentsquad/internal/store"
)

// checkLeftovers stops the server and wants nothing to be left on the machine but the
// sandboxes that wait in the warm pool: no process, no mount, no lease.
func (s *server) checkLeftovers(ctx context.Context) {
	s.t.Helper()
	s.stop()
	var waiting []string // by the identifier that their processes and folders carry
	db, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(s.data, "squad.db")})
	must(s.t, err)
	defer db.Close()
	rows, err := db.Sandboxes(ctx, store.SandboxFilter{})
	must(s.t, err)
	for _, row := range rows {
		if !row.Status.Final() {
			waiting = append(waiting, row.E2BID)
		}
	}
	known := func(text string) bool {
		for _, id := range waiting {
			if id != "" && strings.Contains(text, id) {
				return true
			}
		}
		return false
	}
	for _, text := range s.processes() {
		if !known(text) {
			s.t.Errorf("a process is left: %s", text)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	must(s.t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, s.data) && !known(line) {
			s.t.Errorf("a mount is left: %s", line)
		}
	}
	leases, err := db.Leases(ctx, store.LeaseFilter{})
	must(s.t, err)
	for _, l := range leases {
		// Those of the server's own rounds run out by themselves soon after a kill.
		if l.ExpiresAt.After(time.Now().Add(time.Minute)) {
			s.t.Errorf("lease %s is left with %s until %s", l.Name, l.Owner, l.ExpiresAt)
		}
	}
}

// processes are the command lines that name the data folder.
func (s *server) processes() (lines []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		text := strings.ReplaceAll(string(raw), "\x00", " ")
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && strings.Contains(text, s.data) && pid != os.Getpid() {
			lines = append(lines, text)
		}
	}
	return lines
}
