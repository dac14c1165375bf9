package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coder/acp-go-sdk"

	squad "agentsquad"
)

// answer replies to a request of the agent. Permission is given unless the squad's
// policy refuses the command: the sandbox is the boundary, and what leaves it passes
// the gateway.
func (s *acpSession) answer(m rpc) {
	if m.Method != acp.ClientMethodSessionRequestPermission {
		s.reply(rpc{ID: m.ID, Error: &rpcError{Code: -32601, Message: "not supported: " + m.Method}})
		return
	}
	var r acp.RequestPermissionRequest
	if err := json.Unmarshal(m.Params, &r); err != nil || len(r.Options) == 0 {
		s.reply(rpc{ID: m.ID, Error: &rpcError{Code: -32602, Message: "no options"}})
		return
	}
	choice := choose(r.Options, s.judge(r.ToolCall))
	raw, err := json.Marshal(acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(choice.OptionId)})
	if err != nil {
		s.err = fmt.Errorf("encode answer: %w", err)
		return
	}
	s.reply(rpc{ID: m.ID, Result: raw})
}

// judge says which kinds of answer fit a call, the best first.
func (s *acpSession) judge(c acp.ToolCallUpdate) []acp.PermissionOptionKind {
	if s.turn.May == nil {
		return []acp.PermissionOptionKind{acp.PermissionOptionKindAllowAlways, acp.PermissionOptionKindAllowOnce}
	}
	command := commandOf(c.RawInput)
	if command == "" {
		command = s.calls[string(c.ToolCallId)].Command
	}
	runs := c.Kind != nil && *c.Kind == acp.ToolKindExecute
	if command == "" && runs && c.Title != nil {
		command = *c.Title
	}
	if command != "" || runs { // one that cannot be read is judged as well
		if err := s.turn.May(s.ctx, command); err != nil {
			s.denied = tail(err.Error(), 1000)
			s.out.Emit(squad.EventLog, squad.LogChunk{Stream: "system", Text: s.denied + "\n"})
			return []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
		}
	}
	s.denied = ""
	return []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce} // the next command is judged anew
}

// choose finds the option of the first kind that is there, else the last option,
// which by custom is the most careful one.
func choose(options []acp.PermissionOption, kinds []acp.PermissionOptionKind) acp.PermissionOption {
	for _, kind := range kinds {
		if i := slices.IndexFunc(options, func(o acp.PermissionOption) bool { return o.Kind == kind }); i >= 0 {
			return options[i]
		}
	}
	return options[len(options)-1]
}
