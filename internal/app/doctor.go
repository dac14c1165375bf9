package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentsquad"
	"agentsquad/internal/store"
)

// The words of a check's status.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
	checkSkipped = "skipped"
)

// MergeChecks joins two reports; of the same check the second one counts, for
// it was made by the server itself.
func MergeChecks(a, b []squad.Check) []squad.Check {
	out := slices.DeleteFunc(slices.Clone(a), func(c squad.Check) bool {
		return slices.ContainsFunc(b, func(d squad.Check) bool { return d.Name == c.Name })
	})
	return append(out, b...)
}

// Examine is the doctor's report of the running server: what only it can know.
func (a *App) Examine(ctx context.Context) []squad.Check {
	checks := machineChecks(a.cfg)
	checks = append(checks, a.checkDatabase(ctx), a.checkVault())
	checks = append(checks, a.checkClock(ctx)...)
	checks = append(checks, a.checkIsolation()...)
	if s := a.rooms.sandboxes; s != nil {
		checks = append(checks, s.Check(ctx)...)
	}
	return append(checks, a.checkForges(ctx)...)
}

func (a *App) checkDatabase(ctx context.Context) squad.Check {
	c := squad.Check{Name: "database", Status: checkOK}
	began := time.Now()
	version, err := a.store.SchemaVersion(ctx)
	if err != nil {
		c.Status, c.Detail = checkFailed, err.Error()
		c.Remedy = "see that the database runs and that database-url is right"
		return c
	}
	c.Detail = fmt.Sprintf("%s, schema %d, answers in %s", a.store.Dialect(), version, time.Since(began).Round(10*time.Microsecond))
	return c
}

func (a *App) checkVault() squad.Check {
	return squad.Check{Name: "vault", Status: checkOK, Detail: "secrets are sealed with " + a.folder.path("key")}
}

// checkClock compares this machine's clock with the database's: leases and
// tokens go by both.
func (a *App) checkClock(ctx context.Context) []squad.Check {
	if a.store.Dialect() == store.SQLite {
		return nil
	}
	c := squad.Check{Name: "clock against the database", Status: checkOK}
	before := time.Now()
	now, err := a.store.Now(ctx)
	off := now.Sub(before.Add(time.Since(before) / 2)).Abs()
	switch {
	case err != nil:
		c.Status, c.Detail = checkFailed, err.Error()
	case off > 2*time.Second:
		c.Status, c.Detail = checkWarning, fmt.Sprintf("they differ by %s", off.Round(time.Millisecond))
		c.Remedy = "run a time service (for example systemd-timesyncd or chrony) on both machines"
	default:
		c.Detail = fmt.Sprintf("they differ by %s", off.Round(time.Millisecond))
	}
	return []squad.Check{c}
}

func (a *App) checkIsolation() []squad.Check {
	l := &a.rooms.local
	c := squad.Check{Name: "isolation", Status: checkOK, Detail: "gVisor runs in this program"}
	switch {
	case a.cfg.Provider == "e2b":
		c.Status, c.Detail = checkSkipped, "sandboxes run at E2B"
		return []squad.Check{c}
	case l.runtime == nil:
		c.Status, c.Detail = checkFailed, fmt.Sprint(l.why)
		c.Remedy = "run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1); or set E2B_API_KEY to use E2B"
		return []squad.Check{c}
	}
	limits := squad.Check{Name: "cgroups", Status: checkOK, Detail: "CPU, memory and process limits are enforced"}
	if missing := l.runtime.Warnings(); len(missing) > 0 {
		limits.Status, limits.Detail = checkWarning, fmt.Sprintf("not enforced here: %v", missing)
		limits.Remedy = "run as root, or in a cgroup of its own: systemd-run --user --scope -p Delegate=yes squad up"
	}
	return []squad.Check{c, limits}
}

// checkForges asks each forge what a repository's credential may do.
func (a *App) checkForges(ctx context.Context) []squad.Check {
	repos, err := a.store.Repositories(ctx, store.RepositoryFilter{Limit: 50})
	if err != nil {
		return []squad.Check{{Name: "forges", Status: checkFailed, Detail: err.Error()}}
	}
	var checks []squad.Check
	for _, r := range repos {
		checks = append(checks, a.rooms.forges.Check(ctx, r.ID)...)
	}
	return checks
}
