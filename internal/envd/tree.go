package envd

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markName is the environment variable that every process started by a command
// inherits. It finds those that left the command's session and whose parents are gone.
const markName = "SQUAD_PROCESS"

// killTree ends a command with everything it started: its session, its process
// group, its descendants, and whoever carries its mark. It looks again until
// nothing is left, because what is being killed may still be forking. A leader
// that has been reaped is given as 0: its number may be another's by now.
func killTree(leader int, mark string) {
	if leader > 0 {
		_ = syscall.Kill(leader, syscall.SIGKILL) // gone already is fine, here and below
		_ = syscall.Kill(-leader, syscall.SIGKILL)
	}
	for round := range 50 {
		found := family(leader, mark)
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if round > 0 {
			time.Sleep(time.Duration(round) * time.Millisecond) // the killed need time to go
		}
	}
}

type procStat struct {
	pid, parent, group, session int
	zombie                      bool
}

// family returns the living processes that belong to a command.
func family(leader int, mark string) []int {
	all := processTable()
	in := map[int]bool{}
	if leader > 0 {
		in[leader] = true
	}
	self := os.Getpid()
	needle := []byte(markName + "=" + mark + "\x00")
	for _, p := range all {
		if p.pid == 1 || p.pid == self || p.zombie {
			continue
		}
		if leader > 0 && (p.group == leader || p.session == leader) || marked(p.pid, needle) {
			in[p.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && in[p.parent] && p.pid != 1 && p.pid != self {
				in[p.pid], grown = true, true
			}
		}
	}
	var found []int
	for _, p := range all {
		if in[p.pid] && !p.zombie {
			found = append(found, p.pid)
		}
	}
	return found
}

func marked(pid int, needle []byte) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(env, needle)
}

func processTable() []procStat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []procStat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readStat(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// readStat parses /proc/PID/stat. The name in parentheses may hold anything, so
// fields are counted from the last parenthesis.
func readStat(pid int) (procStat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 4 {
		return procStat{}, false
	}
	p := procStat{pid: pid, zombie: fields[0] == "Z" || fields[0] == "X"}
	p.parent, _ = strconv.Atoi(fields[1])
	p.group, _ = strconv.Atoi(fields[2])
	p.session, _ = strconv.Atoi(fields[3])
	return p, true
}
