package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/coder/acp-go-sdk"

	squad "agentsquad"
)

// patience is how long an agent may take to notice that its command has ended.
const patience = 5 * time.Second

// Cancel implements [Driver]. Agents run their commands themselves and the protocol
// can only end a whole prompt, so that the command's processes are found below the
// agent's and ended; the agent sees a command that was killed and goes on. Not all see
// it: OpenCode waits on for a command that a signal ended. The prompt of such a one is
// cancelled, and who reads the conversation sends the next; see goOn.
func (a ACP) Cancel(ctx context.Context, t Turn, by string) (bool, error) {
	live := t.Execution.Liveness
	if live.State != "command" && live.State != "looping" {
		return false, nil
	}
	pids, err := a.command(ctx, t)
	if err != nil || len(pids) == 0 {
		return false, err
	}
	seen := glance{box: t.Box, file: path.Join(runDir(a.Dir, t), "out"), open: map[string]string{}}
	if err := seen.read(ctx); err != nil {
		return false, err
	}
	calls := seen.running(live.Detail)
	if _, err = t.Box.Run(ctx, Command{
		Argv: append([]string{"/bin/sh", "-c", `kill -KILL "$@" 2>/dev/null; true`, "squad-cancel"}, pids...), Timeout: 20 * time.Second,
	}); err != nil {
		return false, err
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // begun is begun, whoever hangs up
	defer end()
	if seen.ended(ctx, calls, cmp.Or(a.Patience, patience)) {
		return true, nil
	}
	if err = interrupt(ctx, a.Dir, t, seen.session, by); err != nil && seen.ended(ctx, calls, 0) {
		err = nil // it noticed at the last moment, and there is nobody left to tell
	}
	return true, err
}

// command finds the processes of the command that the agent runs.
func (a ACP) command(ctx context.Context, t Turn) ([]string, error) {
	var out bytes.Buffer
	_, err := t.Box.Run(ctx, Command{
		Argv: []string{"/bin/sh", "-c", processScript, "squad-processes", path.Join(runDir(a.Dir, t), "pid")}, Timeout: 20 * time.Second,
		Output: func(stderr bool, b []byte) {
			if !stderr && out.Len() < 4<<20 {
				out.Write(b)
			}
		},
	})
	return parseProcesses(out.String()).command(t.Execution.Liveness.Detail), err
}

// interrupt asks the agent to leave its prompt. The note comes first: who reads the
// answer finds there in whose name.
func interrupt(ctx context.Context, base string, t Turn, session, by string) error {
	if err := t.Box.Write(ctx, cancelFile(base, t), []byte(by)); err != nil {
		return err
	}
	params, err := json.Marshal(acp.CancelNotification{SessionId: acp.SessionId(session)})
	if err != nil {
		return fmt.Errorf("encode cancel: %w", err)
	}
	line, err := json.Marshal(rpc{Version: "2.0", Method: acp.AgentMethodSessionCancel, Params: params})
	if err != nil {
		return fmt.Errorf("encode cancel: %w", err)
	}
	return t.Box.Input(ctx, tag(t), append(line, '\n'))
}

// glance reads a conversation from its file, next to the one who conducts it.
type glance struct {
	box     Box
	file    string
	offset  int64
	session string
	open    map[string]string // calls that run, and their commands
	answers int               // answers of the agent to our requests
}

// read takes the whole lines that came since it was called last.
func (g *glance) read(ctx context.Context) error {
	f, err := g.box.Open(ctx, g.file, g.offset)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := bufio.NewReader(io.LimitReader(f, maxOutput)); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest of a line comes again with its end
		}
		if err != nil {
			return fmt.Errorf("read conversation: %w", err)
		}
		g.offset += int64(len(line))
		g.take(line)
	}
}

func (g *glance) take(line []byte) {
	var m rpc
	if json.Unmarshal(line, &m) != nil {
		return
	}
	if m.Method == "" && m.ID != nil {
		g.answers++
	}
	var n acp.SessionNotification
	if m.Method != acp.ClientMethodSessionUpdate || json.Unmarshal(m.Params, &n) != nil {
		return
	}
	g.session = string(n.SessionId)
	switch c, u := n.Update.ToolCall, n.Update.ToolCallUpdate; {
	case c != nil:
		g.call(c.ToolCallId, c.Status, commandOf(c.RawInput))
	case u != nil && u.Status != nil:
		g.call(u.ToolCallId, *u.Status, commandOf(u.RawInput))
	case u != nil:
		g.call(u.ToolCallId, acp.ToolCallStatusInProgress, commandOf(u.RawInput))
	}
}

func (g *glance) call(id acp.ToolCallId, status acp.ToolCallStatus, command string) {
	if status == acp.ToolCallStatusCompleted || status == acp.ToolCallStatusFailed {
		delete(g.open, string(id))
	} else if command != "" || g.open[string(id)] == "" {
		g.open[string(id)] = command
	}
}

// running are the calls that run a command; all that run where none is known by it.
func (g *glance) running(command string) []string {
	var same, all []string
	for id, c := range g.open {
		if all = append(all, id); c == command {
			same = append(same, id)
		}
	}
	if len(same) > 0 {
		return same
	}
	return all
}

// ended waits until the agent ends one of the calls, or its prompt, and says whether
// it did in time. A sandbox that cannot be read any more has nothing left to tell.
func (g *glance) ended(ctx context.Context, calls []string, within time.Duration) bool {
	answers := g.answers
	for late := time.After(within); ; {
		if g.read(ctx) != nil || g.answers > answers || len(calls) == 0 {
			return true
		}
		for _, id := range calls {
			if _, runs := g.open[id]; !runs {
				return true
			}
		}
		select {
		case <-late:
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// goOn sends the next prompt in the same session where the one that ended was
// cancelled only because the agent had not noticed the end of its command; it says
// whether that is so. A file tells whether an earlier reader sent it. The caller holds
// mu.
func (s *acpSession) goOn(fresh bool) bool {
	next := max(s.number, idAnew) + 1
	marker := fmt.Sprintf("%s-%d", s.marker, next)
	by, err := note(s.ctx, s.turn.Box, marker)
	sent := by != ""
	if err == nil && !sent {
		if by, err = note(s.ctx, s.turn.Box, s.cancels); err == nil && by == "" {
			return false
		}
	}
	if err == nil && !sent {
		err = errors.Join(s.turn.Box.Write(s.ctx, marker, []byte(by)), s.turn.Box.Write(s.ctx, s.cancels, nil))
	}
	if err != nil {
		s.err = fmt.Errorf("note prompt: %w", err)
		s.end(s.err)
		return true
	}
	for _, c := range s.calls {
		c.Status, c.Output = "failed", tail(c.Output+"\ncancelled by "+by+" while it ran", maxTextBytes)
		s.call(c, fresh)
	}
	if s.number, s.denied = next, ""; sent {
		return true
	}
	s.out.Emit(squad.EventLog, squad.LogChunk{Stream: "system", Text: "the agent did not notice the end of its command: it is told, and asked to go on\n"})
	s.ask(next, "The command that you ran was cancelled by "+by+" while it ran. Do not run it again as it was. Go on with the task without it.")
	return true
}
