package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentsquad"
	"agentsquad/internal/config"
	"agentsquad/internal/gvisor"
)

// Examine is the doctor's report of this machine, for a server that need not
// run. loadErr is what [Load] returned.
func Examine(ctx context.Context, cfg *config.Config, loadErr error) []squad.Check {
	settings := squad.Check{Name: "settings", Status: checkOK, Detail: "all settings are right"}
	if loadErr != nil {
		settings.Status, settings.Detail = checkFailed, strings.ReplaceAll(loadErr.Error(), "\n", "; ")
		settings.Remedy = "`squad config` shows each setting and where it comes from"
	}
	checks := append([]squad.Check{settings}, machineChecks(cfg)...)
	checks = append(checks, checkGit(ctx), checkData(cfg))
	return append(checks, probe(ctx, cfg)...)
}

// machineChecks are those that the server makes too.
func machineChecks(cfg *config.Config) []squad.Check {
	return []squad.Check{checkDisk(cfg.Data), checkSync(), checkKeys(cfg)}
}

// minDisk is what a few sandboxes and mirrors want.
const minDisk = 5 << 30

func checkDisk(dir string) squad.Check {
	c := squad.Check{Name: "disk", Status: checkOK}
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			c.Status, c.Detail = checkFailed, err.Error()
			return c
		}
		free := int64(st.Bavail) * st.Bsize
		c.Detail = fmt.Sprintf("%.1f GiB free at %s", float64(free)/(1<<30), dir)
		if free < minDisk {
			c.Status, c.Remedy = checkWarning, "make room, or name another folder with --data: sandboxes and mirrors want at least 5 GiB"
		}
		return c
	}
}

// checkSync asks the kernel whether its clock is kept right.
func checkSync() squad.Check {
	c := squad.Check{Name: "clock", Status: checkOK, Detail: "kept right by a time service"}
	var tx unix.Timex
	state, err := unix.Adjtimex(&tx)
	switch {
	case err != nil:
		c.Status, c.Detail = checkSkipped, "the kernel does not tell: "+err.Error()
	case state == unix.TIME_ERROR:
		c.Status, c.Detail = checkWarning, "no time service keeps it right; it says "+time.Now().Format(time.RFC3339)
		c.Remedy = "run a time service, for example systemd-timesyncd or chrony: tokens and leases go by the clock"
	}
	return c
}

func checkKeys(cfg *config.Config) squad.Check {
	var have, lack []string
	for _, k := range []struct{ name, value string }{
		{"E2B_API_KEY", cfg.E2BAPIKey}, {"GITHUB_TOKEN", cfg.GitHubToken}, {"ANTHROPIC_API_KEY", cfg.AnthropicAPIKey}, {"OPENAI_API_KEY", cfg.OpenAIAPIKey},
		{"GEMINI_API_KEY", cfg.GeminiAPIKey},
	} {
		if k.value != "" {
			have = append(have, k.name)
		} else {
			lack = append(lack, k.name)
		}
	}
	c := squad.Check{Name: "keys", Status: checkOK, Detail: "set: " + strings.Join(have, ", ")}
	if len(have) == 0 {
		c.Detail = "none set; command agents, the local forge and local sandboxes need none"
	}
	if cfg.AnthropicAPIKey == "" && cfg.OpenAIAPIKey == "" && cfg.GeminiAPIKey == "" {
		c.Remedy = "for agents with a model set " + strings.Join(lack, " or ") + ", or store one with `squad credentials add`"
	}
	return c
}

// checkGit wants a git that merges in memory (merge-tree --write-tree).
func checkGit(ctx context.Context) squad.Check {
	c := squad.Check{Name: "git", Status: checkOK, Remedy: "install git 2.38 or newer, for example: apt install git"}
	out, err := exec.CommandContext(ctx, "git", "version").Output()
	if err != nil {
		c.Status, c.Detail = checkFailed, "the git program does not run: "+err.Error()
		return c
	}
	c.Detail = strings.TrimSpace(string(out))
	fields := strings.Fields(c.Detail)
	if len(fields) < 3 || !gitNewEnough(fields[2]) {
		c.Status = checkFailed
	}
	return c
}

func gitNewEnough(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	ma, err1 := strconv.Atoi(major)
	mi, err2 := strconv.Atoi(minor)
	return err1 == nil && err2 == nil && (ma > 2 || ma == 2 && mi >= 38)
}

// probe starts one real sandbox: nothing less proves that sandboxes run here.
func probe(ctx context.Context, cfg *config.Config) []squad.Check {
	if cfg.Provider == "e2b" {
		return []squad.Check{{Name: "isolation", Status: checkSkipped, Detail: "sandboxes run at E2B"}}
	}
	report := gvisor.Probe(ctx)
	var checks []squad.Check
	for _, f := range report.Findings {
		c := squad.Check{Name: "isolation: " + f.Name, Status: checkOK, Detail: f.Detail, Remedy: f.Remedy}
		if !f.OK {
			c.Status = checkWarning
			if !report.Usable {
				c.Status = checkFailed
			}
		}
		checks = append(checks, c)
	}
	return checks
}

func checkData(cfg *config.Config) squad.Check {
	c := squad.Check{Name: "data folder", Status: checkOK, Detail: cfg.Data}
	info, err := os.Stat(cfg.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Detail += " (made at the first start)"
	case err != nil:
		c.Status, c.Detail = checkFailed, err.Error()
	case info.Mode().Perm()&0o077 != 0:
		c.Status, c.Detail = checkWarning, fmt.Sprintf("%s is open to others (mode %04o)", cfg.Data, info.Mode().Perm())
		c.Remedy = "chmod 700 " + cfg.Data
	}
	return c
}
