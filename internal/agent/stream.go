package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	squad "agentsquad"
)

// Sink stores events and, in the same transaction, how far the agent's output
// was read.
type Sink interface {
	WriteTurn(ctx context.Context, events []squad.Event, position int64) error
}

// Bounds of what is kept of an agent's output.
const (
	flushDelay   = 150 * time.Millisecond // joins small pieces; a person does not notice it
	firstDelay   = 5 * time.Millisecond   // after a silence: it may be all there is; doubled at each flush
	flushBytes   = 16 << 10               // a log event is about this large at most
	maxLogBytes  = 16 << 20               // stored log of one turn; what comes after is counted and dropped
	maxTextBytes = 64 << 10               // one message, thought or tool output
	holdBytes    = 256                    // an unfinished word is held back so that no half of a secret is stored
)

// Stream turns an agent's output into events. All methods are safe for
// concurrent use. Errors of the sink stay and are returned by [Stream.Close];
// the agent is not stopped by them.
type Stream struct {
	ctx  context.Context // of the turn: a flush may come from a timer, which has no caller
	sink Sink
	keys squad.Event
	// Seen is told of each event before it is stored, for liveness. May be nil.
	Seen func(squad.Event)

	mu       sync.Mutex
	pending  []squad.Event
	log      []byte // not yet made an event
	kind     string // stream of log
	position int64  // read up to here, what is in log included
	stored   int64  // log bytes stored so far
	cut      bool   // said that the log was cut
	timer    *time.Timer
	flushed  time.Time     // the last time
	delay    time.Duration // before the next
	err      error
}

// NewStream makes a stream whose events carry the given keys. position is where
// an earlier reader of the same turn left off.
func NewStream(ctx context.Context, sink Sink, keys squad.Event, position int64) *Stream {
	return &Stream{ctx: ctx, sink: sink, keys: keys, position: position}
}

// Position is how far the output was read, whether stored yet or not.
func (s *Stream) Position() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position
}

// Log takes raw output of the turn and moves the reader's position past it.
func (s *Stream) Log(kind string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind != s.kind && len(s.log) > 0 {
		s.cutLog(true)
	}
	s.kind = kind
	s.position += int64(len(b))
	s.log = append(s.log, b...)
	if len(s.log) >= flushBytes {
		s.cutLog(false)
		s.flush(s.ctx)
		return
	}
	s.schedule()
}

// Advance moves the reader's position past output that became typed events.
func (s *Stream) Advance(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position += int64(n)
}

// Emit takes a typed event. Text in it is cleaned, bounded and redacted.
func (s *Stream) Emit(t squad.EventType, payload any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLog(true)
	s.add(t, payload)
	s.schedule()
}

// Close stores what is left. It returns the first error of the sink.
func (s *Stream) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.cutLog(true)
	s.flush(ctx)
	return s.err
}

// schedule makes sure that a flush comes. The caller holds mu.
func (s *Stream) schedule() {
	if s.timer != nil {
		return
	}
	s.delay = min(2*s.delay, flushDelay)
	if time.Since(s.flushed) > flushDelay {
		s.delay = firstDelay
	}
	s.timer = time.AfterFunc(s.delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cutLog(false)
		s.flush(s.ctx)
		s.timer = nil
		if len(s.log) > 0 { // a held-back word gets one more chance to be finished
			s.timer = time.AfterFunc(10*flushDelay, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.timer = nil
				s.cutLog(true)
				s.flush(s.ctx)
			})
		}
	})
}

// cutLog makes events of the collected log: of all of it, or of all but an
// unfinished last word. The caller holds mu.
func (s *Stream) cutLog(all bool) {
	whole, rest := s.log, []byte(nil)
	if !all {
		whole, rest = wholeRunes(whole)
		if i := lastSpace(whole); i < len(whole) && len(whole)-i <= holdBytes {
			rest = append(append([]byte(nil), whole[i:]...), rest...)
			whole = whole[:i]
		}
	}
	if len(whole) == 0 {
		return
	}
	s.log = append([]byte(nil), rest...)
	if s.stored+int64(len(whole)) > maxLogBytes {
		if !s.cut {
			s.cut = true
			s.add(squad.EventLog, squad.LogChunk{Stream: "system", Text: fmt.Sprintf("\n[output beyond %d MiB is not kept]\n", maxLogBytes>>20)})
		}
		return
	}
	text := Redact(clean(string(whole)))
	s.stored += int64(len(whole))
	for len(text) > 0 { // one Log call may bring more than an event should hold
		part := text
		if len(part) > 2*flushBytes {
			w, _ := wholeRunes([]byte(part[:2*flushBytes]))
			part = string(w)
		}
		text = text[len(part):]
		s.add(squad.EventLog, squad.LogChunk{Stream: s.kind, Text: part})
	}
}

// joinText adds a piece of a text to the last event, if that is the same text and
// not stored yet: models speak in very small pieces. The caller holds mu.
func (s *Stream) joinText(t squad.EventType, p squad.Text) bool {
	if len(s.pending) == 0 || p.ID == "" {
		return false
	}
	last := &s.pending[len(s.pending)-1]
	var old squad.Text
	if last.Type != t || json.Unmarshal(last.Payload, &old) != nil || old.ID != p.ID || len(old.Text)+len(p.Text) > maxTextBytes/4 {
		return false
	}
	old.Text += p.Text
	raw, err := json.Marshal(tidy(old))
	if err != nil {
		return false
	}
	last.Payload = raw
	return true
}

// add appends an event. The caller holds mu.
func (s *Stream) add(t squad.EventType, payload any) {
	if text, ok := payload.(squad.Text); ok && s.joinText(t, text) {
		return
	}
	e := s.keys
	e.Type = t
	raw, err := json.Marshal(tidy(payload))
	if err != nil {
		s.err = fmt.Errorf("encode %s event: %w", t, err)
		return
	}
	e.Payload = raw
	s.pending = append(s.pending, e)
	if s.Seen != nil {
		s.Seen(e)
	}
}

// flush stores what is pending. Events that could not be stored are kept for the
// next try, bounded. The caller holds mu, so a slow database slows the reader,
// and through it the sandbox's output, instead of filling memory.
func (s *Stream) flush(ctx context.Context) {
	if len(s.pending) == 0 {
		return
	}
	s.flushed = time.Now()
	// What is held back was not stored: a reader that joins later must see it.
	position := s.position - int64(len(s.log))
	if err := s.sink.WriteTurn(ctx, s.pending, position); err != nil {
		if s.err == nil && ctx.Err() == nil {
			s.err = fmt.Errorf("store agent output: %w", err)
		}
		if len(s.pending) > 10_000 {
			s.pending = s.pending[len(s.pending)-10_000:]
		}
		return
	}
	s.pending = nil
}

// tidy cleans the texts of a payload.
func tidy(payload any) any {
	text := func(t string) string { return Redact(clean(tail(t, maxTextBytes))) }
	switch p := payload.(type) {
	case squad.Text:
		p.Text = text(p.Text)
		return p
	case squad.ToolCall:
		p.Title, p.Command, p.Output = text(tail(p.Title, 500)), text(tail(p.Command, 8<<10)), text(tail(p.Output, 16<<10))
		if len(p.Input) > maxTextBytes || !json.Valid(p.Input) {
			p.Input = nil
		} else {
			p.Input = json.RawMessage(Redact(string(p.Input)))
		}
		return p
	case squad.Plan:
		if len(p.Entries) > 200 {
			p.Entries = p.Entries[:200]
		}
		out := squad.Plan{Entries: make([]squad.PlanEntry, len(p.Entries))}
		for i, e := range p.Entries {
			out.Entries[i] = squad.PlanEntry{Text: text(tail(e.Text, 1000)), Status: e.Status}
		}
		return out
	}
	return payload
}

func lastSpace(b []byte) int {
	i := strings.LastIndexAny(string(b), " \t\r\n")
	return i + 1
}
