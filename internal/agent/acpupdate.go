package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coder/acp-go-sdk"

	squad "agentsquad"
)

// update makes an event of what the agent reports. The caller holds mu.
func (s *acpSession) update(raw json.RawMessage, fresh bool) {
	if !s.ready {
		s.history.more()
		return
	}
	var n acp.SessionNotification
	if json.Unmarshal(raw, &n) != nil {
		return // a kind of update that this version does not know
	}
	u := n.Update
	switch {
	case u.AgentMessageChunk != nil:
		s.say(squad.EventMessage, textOf(u.AgentMessageChunk.Content), fresh)
	case u.AgentThoughtChunk != nil:
		s.say(squad.EventThought, textOf(u.AgentThoughtChunk.Content), fresh)
	case u.ToolCall != nil:
		c := u.ToolCall
		s.call(squad.ToolCall{
			ID: string(c.ToolCallId), Title: c.Title, Kind: kindOf(c.Kind), Status: statusOf(c.Status), Input: rawOf(c.RawInput), Command: commandOf(c.RawInput),
			Paths: pathsOf(c.Locations), Output: outputOf(c.Content, c.RawOutput), ExitCode: exitOf(c.RawOutput),
		}, fresh)
	case u.ToolCallUpdate != nil:
		s.call(s.changed(u.ToolCallUpdate), fresh)
	case u.Plan != nil:
		var p squad.Plan
		for _, e := range u.Plan.Entries {
			p.Entries = append(p.Entries, squad.PlanEntry{Text: e.Content, Status: string(e.Status)})
		}
		s.plan(p, fresh)
	}
}

func (s *acpSession) plan(p squad.Plan, fresh bool) {
	if s.last = squad.EventPlan; fresh {
		s.out.Emit(squad.EventPlan, p)
	}
}

// say takes a piece of text. Pieces in a row are one message.
func (s *acpSession) say(t squad.EventType, text string, fresh bool) {
	if text == "" {
		return
	}
	if s.last != t {
		s.message++
		s.last = t
		if t == squad.EventMessage {
			s.words.Reset()
		}
	}
	if t == squad.EventMessage {
		s.denied = ""
	}
	if t == squad.EventMessage && s.words.Len() < maxTextBytes {
		s.words.WriteString(text)
	}
	if fresh {
		s.out.Emit(t, squad.Text{ID: fmt.Sprintf("%d.%d", s.turn.Number, s.message), Text: text})
	}
}

// changed is a known call with what an update says of it.
func (s *acpSession) changed(u *acp.SessionToolCallUpdate) squad.ToolCall {
	c, ok := s.calls[string(u.ToolCallId)]
	if !ok {
		c = squad.ToolCall{ID: string(u.ToolCallId), Kind: "other", Status: "running"}
	}
	if u.Title != nil {
		c.Title = *u.Title
	}
	if u.Kind != nil {
		c.Kind = kindOf(*u.Kind)
	}
	if u.Status != nil {
		c.Status = statusOf(*u.Status)
	}
	if u.RawInput != nil {
		c.Input = rawOf(u.RawInput)
		if cmd := commandOf(u.RawInput); cmd != "" {
			c.Command = cmd
		}
	}
	if len(u.Locations) > 0 {
		c.Paths = pathsOf(u.Locations)
	}
	if text := outputOf(u.Content, u.RawOutput); text != "" {
		c.Output = text
	}
	if code := exitOf(u.RawOutput); code != nil {
		c.ExitCode = code
	}
	return c
}

func (s *acpSession) call(c squad.ToolCall, fresh bool) {
	if c.Command == "" && c.Kind == "execute" && c.Input == nil && c.Status != "pending" {
		c.Command = c.Title // Gemini shows no input; its title is the command
	}
	over := c.Status == "completed" || c.Status == "failed"
	if !over {
		c.ExitCode = nil
	}
	if over && c.Command != "" && len(s.runs) < 500 {
		code := 0
		if c.ExitCode != nil {
			code = *c.ExitCode
		} else if c.Status == "failed" {
			code = 1
		}
		s.runs = append(s.runs, Evidence{Command: tail(c.Command, 2000), ExitCode: code})
	}
	if over {
		delete(s.calls, c.ID)
	} else if len(s.calls) < 1000 {
		s.calls[c.ID] = c
	}
	if s.last = squad.EventToolCall; fresh {
		s.out.Emit(squad.EventToolCall, c)
	}
	if p := todosOf(c.Input); over && len(p.Entries) > 0 {
		s.plan(p, fresh)
	}
}

// todosOf is the plan in the input of a tool: OpenCode tells of its plan in no other way.
func todosOf(input json.RawMessage) squad.Plan {
	var in struct {
		Todos []struct{ Content, Status string }
	}
	var p squad.Plan
	if json.Unmarshal(input, &in) == nil {
		for _, t := range in.Todos {
			p.Entries = append(p.Entries, squad.PlanEntry{Text: t.Content, Status: t.Status})
		}
	}
	return p
}

func textOf(b acp.ContentBlock) string {
	if b.Text != nil {
		return b.Text.Text
	}
	return ""
}

func kindOf(k acp.ToolKind) string {
	switch k {
	case acp.ToolKindRead, acp.ToolKindEdit, acp.ToolKindExecute, acp.ToolKindSearch, acp.ToolKindFetch, acp.ToolKindThink:
		return string(k)
	}
	return "other"
}

func statusOf(s acp.ToolCallStatus) string {
	switch s {
	case acp.ToolCallStatusCompleted, acp.ToolCallStatusFailed, acp.ToolCallStatusPending:
		return string(s)
	}
	return "running"
}

func pathsOf(list []acp.ToolCallLocation) []string {
	var out []string
	for _, l := range list {
		out = append(out, l.Path)
	}
	return out
}

func rawOf(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// commandOf finds the shell command in a tool's input; agents name it differently.
func commandOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	switch c := m["command"].(type) {
	case string:
		return c
	case []any:
		if len(c) == 3 && (c[1] == "-lc" || c[1] == "-c") { // a shell and its line
			return fmt.Sprint(c[2])
		}
		words := make([]string, 0, len(c))
		for _, w := range c {
			words = append(words, fmt.Sprint(w))
		}
		return strings.Join(words, " ")
	}
	text, _ := m["cmd"].(string)
	return text
}

// exitOf finds the exit code in a tool's output.
func exitOf(v any) *int {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range []string{"exit_code", "exitCode", "exit"} {
		switch n := m[key].(type) {
		case float64:
			code := int(n)
			return &code
		case nil:
			if _, said := m[key]; said { // OpenCode's, of what a signal or its time ended
				code := -1
				return &code
			}
		}
	}
	if meta, ok := m["metadata"].(map[string]any); ok {
		return exitOf(meta)
	}
	return nil
}

// outputOf joins what a tool printed.
func outputOf(content []acp.ToolCallContent, raw any) string {
	var b strings.Builder
	for _, c := range content {
		if c.Content != nil {
			b.WriteString(textOf(c.Content.Content))
		}
		if c.Diff != nil {
			fmt.Fprintf(&b, "%s changed\n", c.Diff.Path)
		}
	}
	if b.Len() > 0 {
		return b.String()
	}
	if m, ok := raw.(map[string]any); ok {
		for _, key := range []string{"output", "formatted_output", "aggregated_output", "stdout"} {
			if text, ok := m[key].(string); ok && text != "" {
				return text
			}
		}
	}
	if text, ok := raw.(string); ok {
		return text
	}
	return ""
}
