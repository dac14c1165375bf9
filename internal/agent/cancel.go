package agent

import (
	"cmp"
	"context"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	squad "agentsquad"
)

// cancelFile is where a turn finds who cancelled its command. It is inside the sandbox,
// so that any node can cancel, and a server that comes back still knows.
func cancelFile(base string, t Turn) string { return path.Join(runDir(base, t), "cancelled") }

// cancelTagged ends the process that has the turn's tag, in somebody's name.
func cancelTagged(ctx context.Context, base string, t Turn, by string) (bool, error) {
	file := cancelFile(base, t)
	if err := t.Box.Write(ctx, file, []byte(by)); err != nil {
		return false, err
	}
	found, err := t.Box.Signal(ctx, tag(t), "KILL")
	if err == nil && !found {
		err = t.Box.Write(ctx, file, nil)
	}
	return found, err
}

// cancelledBy is who cancelled the command that just ended, "" where it ended by
// itself. It says so once.
func cancelledBy(ctx context.Context, base string, t Turn) (string, error) {
	file := cancelFile(base, t)
	by, err := note(ctx, t.Box, file)
	if err != nil || by == "" {
		return "", err
	}
	return by, t.Box.Write(ctx, file, nil)
}

// note is a name in a file of the turn, "" where there is none.
func note(ctx context.Context, b Box, file string) (string, error) {
	r, err := b.Open(ctx, file, 0)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	by, err := io.ReadAll(io.LimitReader(r, 300))
	return clean(string(by)), err
}

// Cancel implements [Driver]: the command is the agent, and its turn ends with it.
func (s Shell) Cancel(ctx context.Context, t Turn, by string) (bool, error) {
	return cancelTagged(ctx, s.Dir, t, by)
}

// Cancel implements [Driver]: the tool that runs ends, the model is told by whom, and
// the loop goes on.
func (l LLM) Cancel(ctx context.Context, t Turn, by string) (bool, error) {
	return cancelTagged(ctx, l.Dir, t, by)
}

// processScript lists processes, one line each: number, parent, start, standard input,
// and the command line behind a tab. The first line is that of the turn's own process.
const processScript = `show() {
  read -r stat 2>/dev/null < "/proc/$1/stat" || return
  line=$(tr '\0\n\t' '   ' 2>/dev/null < "/proc/$1/cmdline" | cut -c1-8000)
  input=$(readlink "/proc/$1/fd/0" 2>/dev/null)
  pid=$1; set -- ${stat##*) }
  printf '%s %s %s %s\t%s\n' "$pid" "$2" "${20}" "${input:--}" "$line"
}
show "$(cat "$1")"
for d in /proc/[0-9]*; do show "${d#/proc/}"; done`

// process is one line of processScript.
type process struct {
	pid, parent, input, line string
	start                    int64
}

// processes are those of a sandbox, that of the turn first.
type processes []process

func parseProcesses(text string) processes {
	var out processes
	for row := range strings.Lines(text) {
		head, line, _ := strings.Cut(strings.TrimRight(row, "\n"), "\t")
		f := strings.Fields(head)
		if len(f) < 4 {
			continue
		}
		start, _ := strconv.ParseInt(f[2], 10, 64) // 0 counts as old
		out = append(out, process{pid: f[0], parent: f[1], start: start, input: f[3], line: strings.TrimSpace(line)})
	}
	return out
}

// command finds the processes of the command that an agent runs: the newest below the
// agent that is it by its words, else the newest that a shell below the agent started.
// Who reads what we write is the agent, or what started it, and is never among them.
func (all processes) command(words string) []string {
	if len(all) == 0 {
		return nil
	}
	root := all[0]
	under := all.below(root.pid)
	under = slices.DeleteFunc(under, func(p process) bool { return p.input == root.input || p.input == "-" || p.parent == root.pid })
	slices.SortStableFunc(under, func(a, b process) int { return cmp.Compare(b.start, a.start) })
	top := slices.IndexFunc(under, func(p process) bool { return p.runs(words) })
	if top < 0 {
		top = slices.IndexFunc(under, process.shell)
	}
	if top < 0 {
		return nil
	}
	for { // a shell may have started another one for it
		up := slices.IndexFunc(under, func(p process) bool { return p.pid == under[top].parent && p.shell() })
		if up < 0 {
			break
		}
		top = up
	}
	pids := []string{under[top].pid}
	for _, p := range all.below(under[top].pid) {
		pids = append(pids, p.pid)
	}
	return pids
}

// below are the descendants of a process.
func (all processes) below(pid string) processes {
	var out processes
	seen := map[string]bool{pid: true}
	for next := []string{pid}; len(next) > 0; next = next[1:] {
		for _, p := range all {
			if p.parent == next[0] && !seen[p.pid] {
				seen[p.pid] = true
				out, next = append(out, p), append(next, p.pid)
			}
		}
	}
	return out
}

// shell says whether the process is a shell with a line to run.
func (p process) shell() bool {
	name, _, _ := strings.Cut(p.line, " ")
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "fish"}, strings.TrimPrefix(path.Base(name), "-"))
}

// runs says whether the process is a command by its words: a shell whose line holds
// them, or the program itself. Agents quote them in ways of their own.
func (p process) runs(words string) bool {
	bare := strings.NewReplacer("'", "", `"`, "", `\`, "", " ", "", "\t", "", "\n", "").Replace
	want := bare(words)
	if want == "" {
		return false
	}
	if p.shell() {
		return strings.Contains(bare(p.line), want)
	}
	return bare(p.line) == want
}
