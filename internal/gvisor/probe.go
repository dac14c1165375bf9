package gvisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentsquad/internal/gvisor/words"
)

// Finding is one thing that [Probe] looked at.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Report says which isolation sandboxes get on this machine, and why.
type Report struct {
	// Usable says whether local sandboxes work at all, Isolation what holds
	// them: "gvisor" or "gvisor rootless", "" when none.
	Usable    bool      `json:"usable"`
	Isolation string    `json:"isolation"`
	Findings  []Finding `json:"findings"`
}

func (r *Report) add(name string, ok bool, detail, remedy string) {
	if ok {
		remedy = ""
	}
	r.Findings = append(r.Findings, Finding{name, ok, detail, remedy})
}

// Probe looks at this machine and starts one real sandbox in a temporary folder,
// which is removed again. It takes about a second.
func Probe(ctx context.Context) Report {
	var r Report
	rootless := os.Geteuid() != 0
	r.Isolation = "gvisor"
	if rootless {
		r.Isolation = "gvisor rootless"
	}
	r.platform()
	if rootless {
		r.namespaces()
	}
	c := findCgroups("squad-probe")
	c.prune()
	r.add("limits", len(c.missing) == 0, limitsDetail(c), "run as root, or in a cgroup of its own (systemd-run --user --scope -p Delegate=yes squad up); until then gVisor's own limits and a watchdog hold")
	r.template()
	if err := checkStatic(words.SelfExe); err != nil {
		r.add("program", false, err.Error(), "build with CGO_ENABLED=0")
	}
	took, err := trySandbox(ctx)
	if err != nil {
		r.Isolation = ""
		r.add("sandbox", false, err.Error(), "see the findings above; another provider can be used meanwhile: set E2B_API_KEY")
		return r
	}
	r.Usable = true
	r.add("sandbox", true, fmt.Sprintf("one was started and removed in %v", took.Round(time.Millisecond)), "")
	return r
}

func (r *Report) platform() {
	var u unix.Utsname
	_ = unix.Uname(&u)
	release := unix.ByteSliceToString(u.Release[:])
	ok := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
	r.add("platform", ok, "Linux "+release+" on "+runtime.GOARCH+", gVisor with systrap (needs no KVM)", "gVisor runs on Linux on amd64 and arm64 only")
}

func (r *Report) namespaces() {
	for path, bad := range map[string]string{
		"/proc/sys/kernel/unprivileged_userns_clone":             "0",
		"/proc/sys/user/max_user_namespaces":                     "0",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if strings.TrimSpace(string(data)) == bad {
			r.add("user namespaces", false, path+" is "+bad, fmt.Sprintf("sysctl -w %s=%s, or run as root",
				strings.ReplaceAll(strings.TrimPrefix(path, "/proc/sys/"), "/", "."), map[string]string{"0": "1", "1": "0"}[bad]))
			return
		}
	}
	r.add("user namespaces", true, "an ordinary user may make them", "")
}

func limitsDetail(c *cgroups) string {
	if len(c.missing) > 0 {
		return strings.Join(c.missing, "; ")
	}
	if c.v2 {
		return "cpu, memory and processes by cgroup v2; disk by the overlay"
	}
	return "cpu, memory and processes by cgroup v1; disk by the overlay"
}

func (r *Report) template() {
	var lacks []string
	for _, tool := range []string{"bash", "git", "curl", "python3", "node"} {
		found := false
		for _, dir := range strings.Split(insidePath, ":") {
			if _, err := os.Stat(filepath.Join(dir, tool)); err == nil {
				found = true
			}
		}
		if !found {
			lacks = append(lacks, tool)
		}
	}
	detail := "bash, git, curl, python3 and node of this machine are in it"
	if len(lacks) > 0 {
		detail = "this machine has no " + strings.Join(lacks, ", ") + " under /usr"
	}
	r.add("base template", len(lacks) == 0, detail, "install them, or import an image: squad template import")
}

// trySandbox makes one sandbox and says how long it took.
func trySandbox(ctx context.Context) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "squad-probe-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	r, err := New(Config{Dir: dir, StartTimeout: 20 * time.Second})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	began := time.Now()
	s, err := r.Create(ctx, Spec{ID: "probe"})
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, s.Kill(ctx)
}
