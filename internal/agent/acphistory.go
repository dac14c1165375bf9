package agent

import "time"

const (
	// quiet is how long an agent that has loaded a session must say nothing before
	// its past counts as told.
	quiet = 300 * time.Millisecond
	// maxHistory bounds the wait for that.
	maxHistory = 15 * time.Second
)

// history is the past of a loaded session, which agents tell anew and nobody wants to
// hear. It ought to come before the answer to the loading; Gemini CLI 0.61 answers
// first, and what came then was taken for the new turn.
type history struct {
	end   int64       // where it ends in the output, known to those who read it again
	since time.Time   // the session was loaded
	pause *time.Timer // nil while nobody waits
}

// more is called for each piece of it.
func (h *history) more() {
	if h.pause != nil && time.Since(h.since) < maxHistory {
		h.pause.Reset(quiet)
	}
}

// settle sends the prompt once the agent has told the past. The caller holds mu.
func (s *acpSession) settle() {
	s.history.since = time.Now()
	s.history.pause = time.AfterFunc(quiet, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.asked && !s.done && s.ctx.Err() == nil {
			s.prompt()
		}
	})
}
