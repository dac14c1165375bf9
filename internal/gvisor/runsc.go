package gvisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agentsquad/internal/gvisor/words"
)

// runsc is how this runtime calls gVisor: a program of ours, under its name,
// with an environment that holds nothing of the server's.
type runsc struct {
	program  string // this one, or a smaller one that is runsc only
	root     string // where runsc keeps its own state
	rootless bool
	overlay  Overlay
	netns    *os.File // empty network for file processes; nil makes one for each
}

// invocation is one call of runsc.
type invocation struct {
	box     folder // the sandbox's files: log, overlay
	program string // empty means the runtime's
	cgroups []string
	diskMB  int64
	verb    string
	args    []string
	stdin   *os.File // of the sandbox; nil is /dev/null
	crowded bool     // its processes sleep while they wait, see [Runtime.crowded]
}

func (r *runsc) flags(in invocation) []string {
	f := []string{
		"--root=" + r.root,
		"--log=" + in.box.log(),
		"--log-format=json",
		"--network=none",
		"--ignore-cgroups",
		"--allow-suid",
		"--host-settings=ignore",
		"--restore-spec-validation=ignore",
		"--control-rpc-stop-timeout=1s",
	}
	if r.rootless {
		f = append(f, "--rootless")
	}
	if in.crowded {
		f = append(f, "--systrap-disable-fast-path")
	}
	if r.netns != nil {
		f = append(f, fmt.Sprintf("--gofer-network-namespace=/proc/%d/fd/%d", os.Getpid(), r.netns.Fd()))
	} else {
		f = append(f, "--gofer-network-namespace=new")
	}
	overlay := "all:dir=" + in.box.overlay()
	if r.overlay == OverlayMemory {
		overlay = "all:memory"
	}
	if in.diskMB > 0 {
		overlay += ",size=" + strconv.FormatInt(in.diskMB, 10) + "M"
	}
	return append(f, "--overlay2="+overlay)
}

// command prepares a call; its output goes to /dev/null, because a sandbox
// inherits it and outlives us.
func (r *runsc) command(ctx context.Context, in invocation) *exec.Cmd {
	args := append(append(r.flags(in), in.verb), in.args...)
	program := in.program
	if program == "" {
		program = r.program
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Args[0] = "runsc"
	cmd.Dir = "/"
	if in.stdin != nil {
		cmd.Stdin = in.stdin
	}
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "GOMAXPROCS=1"} // it does one thing after the other
	if len(in.cgroups) > 0 {
		cmd.Env = append(cmd.Env, words.CgroupEnv+"="+strings.Join(in.cgroups, ":"))
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// run calls runsc and waits for its end.
func (r *runsc) run(ctx context.Context, in invocation) ([]byte, error) {
	cmd := r.command(ctx, in)
	_ = os.Remove(in.box.log())
	var out bytes.Buffer
	if in.verb != "run" && in.verb != "restore" { // those would hand the pipe to the sandbox
		cmd.Stdout = &out
	}
	err := cmd.Run()
	return out.Bytes(), r.explain(ctx, in, err)
}

// explain turns the failure of a call into what runsc itself said about it.
func (r *runsc) explain(ctx context.Context, in invocation, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("runsc %s: %w", in.verb, context.Cause(ctx))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == words.ExitCgroup {
		return fmt.Errorf("runsc %s: enter cgroup: %w", in.verb, err)
	}
	if said := lastLog(in.box.log()); said != "" {
		return fmt.Errorf("runsc %s: %s", in.verb, said)
	}
	return fmt.Errorf("runsc %s: %w", in.verb, err)
}

// lastLog returns the last message of a runsc log. The messages of several
// processes follow each other without line ends.
func lastLog(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	said := ""
	for dec := json.NewDecoder(io.LimitReader(f, 1<<20)); ; {
		var entry struct {
			Msg string `json:"msg"`
		}
		if dec.Decode(&entry) != nil {
			return said
		}
		if msg := strings.TrimSpace(entry.Msg); msg != "" {
			said = msg
		}
	}
}

// forget removes what runsc itself keeps of a sandbox, whose processes are dead.
func (r *runsc) forget(id string) error {
	found, err := filepath.Glob(filepath.Join(r.root, id+"_sandbox:*"))
	if err != nil {
		return err
	}
	found = append(found, filepath.Join(r.root, "runsc-"+id+".sock"))
	for _, dir := range []string{"/var/run", "/run", "/tmp"} { // where runsc puts it when root is too long
		if len(r.root)+len(id) > 80 {
			found = append(found, filepath.Join(dir, "runsc-"+id+".sock"))
		}
	}
	var errs []error
	for _, f := range found {
		if err := os.RemoveAll(f); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// processes returns the sandbox and gofer process of a sandbox as runsc wrote
// them down, zero where unknown.
func (r *runsc) processes(id string) (sandbox, gofer int) {
	data, err := os.ReadFile(filepath.Join(r.root, id+"_sandbox:"+id+".state"))
	if err != nil {
		return 0, 0
	}
	var state struct {
		Sandbox struct {
			Pid int `json:"pid"`
		} `json:"sandbox"`
		GoferPid int `json:"goferPid"`
	}
	if json.Unmarshal(data, &state) != nil {
		return 0, 0
	}
	return state.Sandbox.Pid, state.GoferPid
}
