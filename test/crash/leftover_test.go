package crash

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agentsquad/internal/store"
	"agentsquad/test/house"
)

// reaped is how long the reaper may take with a sandbox that is older than the server
// and has no row: it looks at the start, and twice a minute.
const reaped = 45 * time.Second

// checkLeftovers wants nothing to be left on the machine but the sandboxes that the
// server knows, which wait in the warm pool: no process, no mount, no lease.
func (s *server) checkLeftovers(ctx context.Context) {
	s.t.Helper()
	left := s.leftovers(ctx)
	for deadline := time.Now().Add(reaped); len(left) > 0; left = s.leftovers(ctx) {
		if time.Now().After(deadline) {
			s.t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	s.Stop()
	db, err := store.Open(ctx, store.Config{URL: "sqlite:" + filepath.Join(s.Data, "squad.db")})
	house.Must(s.t, err)
	defer db.Close()
	leases, err := db.Leases(ctx, store.LeaseFilter{})
	house.Must(s.t, err)
	for _, l := range leases {
		// Those of the server's own rounds run out by themselves soon after a kill.
		if l.ExpiresAt.After(time.Now().Add(time.Minute)) {
			s.t.Errorf("lease %s is left with %s until %s", l.Name, l.Owner, l.ExpiresAt)
		}
	}
}

// leftovers are processes and mounts that name the data folder and belong neither to
// the server nor to a sandbox that it knows.
func (s *server) leftovers(ctx context.Context) (left []string) {
	var known []string
	for sb, err := range s.Sandboxes(ctx, nil) {
		house.Must(s.t, err)
		if !sb.Status.Final() && sb.E2BID != "" {
			known = append(known, sb.E2BID)
		}
	}
	check := func(kind, text string) {
		if !strings.Contains(text, s.Data) {
			return
		}
		for _, id := range known {
			if strings.Contains(text, id) {
				return
			}
		}
		left = append(left, kind+" "+text)
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if raw, err := os.ReadFile(name); err == nil && pid != os.Getpid() && pid != s.Cmd.Process.Pid {
			check("process", strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	house.Must(s.t, err)
	for line := range strings.Lines(string(mounts)) {
		check("mount", strings.TrimSpace(line))
	}
	return left
}
