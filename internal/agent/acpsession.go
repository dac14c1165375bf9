package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	squad "agentsquad"
)

// Numbers of our requests. They are the same in each turn, so that an answer is
// understood without having sent the question.
const (
	idInitialize = 1
	idSession    = 2
	idPrompt     = 3
	idAnew       = 4 // a new session in place of one that could not be loaded; prompts after the first follow
)

// maxMessage bounds one message of an agent.
const maxMessage = 16 << 20

// rpc is one message of the protocol.
type rpc struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// acpSession is the conversation of one turn. take is called by one goroutine at a
// time; mu guards what others look at.
type acpSession struct {
	ctx  context.Context // of the turn: answers go out while its output is read
	turn Turn
	out  *Stream
	told int64                   // output before this was made events by an earlier reader
	end  context.CancelCauseFunc // of ctx: the rest of the output is not worth reading

	mu      sync.Mutex
	partial []byte
	read    int64 // bytes of whole lines
	opened  bool  // the session was asked for
	ready   bool  // the prompt is out; what is told before is of earlier turns
	history history
	asked   bool   // the prompt was sent, by us or by an earlier reader
	number  int    // of the prompt that is answered next
	marker  string // a file that says that the prompt was sent
	cancels string // a file that says who cancelled a command
	done    bool
	result  Result
	err     error
	session string
	load    bool // the agent can load sessions
	http    bool // and reach tools over HTTP
	words   strings.Builder
	message int // counts runs of the agent's text
	last    squad.EventType
	calls   map[string]squad.ToolCall
	runs    []Evidence
	denied  string // why the last command was refused, until the agent goes on
}

func newACPSession(ctx context.Context, t Turn, dir string, out *Stream) *acpSession {
	return &acpSession{ctx: ctx, turn: t, out: out, told: out.Position(), number: idPrompt, marker: path.Join(dir, "prompted"), cancels: path.Join(dir, "cancelled"), calls: map[string]squad.ToolCall{}}
}

func (s *acpSession) taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read + int64(len(s.partial))
}

// rejoin prepares for reading a conversation that an earlier reader began. Whether
// it sent the prompt is told by a file: a prompt must not be sent twice.
func (s *acpSession) rejoin() error {
	f, err := s.turn.Box.Open(s.ctx, s.marker, 0)
	if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
		return err
	}
	var end int64
	if err == nil {
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, 20))
		if err != nil {
			return err
		}
		end, _ = strconv.ParseInt(string(text), 10, 64) // an older version left it empty
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.history.end, s.partial, s.read = err == nil, end, nil, 0
	return nil
}

func (s *acpSession) finished() (Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result, s.done
}

func (s *acpSession) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *acpSession) lastWords() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Redact(tail(strings.TrimSpace(s.words.String()), 2000))
}

// begin opens the conversation.
func (s *acpSession) begin() {
	s.send(idInitialize, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber, ClientInfo: &acp.Implementation{Name: "squad", Version: "1"},
	})
}

// take reads output and acts on each whole message.
func (s *acpSession) take(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = append(s.partial, b...)
	for {
		i := bytes.IndexByte(s.partial, '\n')
		if i < 0 {
			break
		}
		line := s.partial[:i+1]
		s.partial = s.partial[i+1:]
		s.read += int64(len(line))
		fresh := s.read > s.told
		s.handle(line, fresh)
		if fresh {
			s.out.Advance(len(line))
		}
	}
	switch {
	case len(s.partial) > maxMessage:
		s.breach("a message is larger than %d MiB", maxMessage>>20)
	case s.read > maxOutput:
		s.breach("it printed more than %d MiB", maxOutput>>20)
	}
}

// breach notes that the agent does not keep to the protocol and ends the turn. The
// caller holds mu.
func (s *acpSession) breach(format string, args ...any) {
	if s.err == nil {
		s.err = errProtocol(format, args...)
	}
	s.partial = nil
	s.end(s.err)
}

// handle acts on one message. What an earlier reader told is only remembered. The
// caller holds mu.
func (s *acpSession) handle(line []byte, fresh bool) {
	s.ready = s.ready || s.asked && s.session != "" && s.read > s.history.end
	var m rpc
	if json.Unmarshal(line, &m) != nil {
		if fresh && len(bytes.TrimSpace(line)) > 0 { // some programs greet on standard output
			s.out.Emit(squad.EventLog, squad.LogChunk{Stream: "stdout", Text: Redact(clean(tail(string(line), maxTextBytes)))})
		}
		return
	}
	switch {
	case m.Method == acp.ClientMethodSessionUpdate:
		s.update(m.Params, fresh)
	case m.Method != "" && m.ID != nil:
		if fresh {
			s.answer(m)
		}
	case m.ID != nil:
		s.response(m, fresh)
	}
}

// response goes on with the conversation. The caller holds mu.
func (s *acpSession) response(m rpc, fresh bool) {
	id, err := strconv.Atoi(string(m.ID))
	if err != nil {
		return // none of ours
	}
	if m.Error != nil {
		s.refused(id, m.Error.Message, fresh)
		return
	}
	switch id {
	case idInitialize:
		var r acp.InitializeResponse
		if err := json.Unmarshal(m.Result, &r); err != nil {
			s.breach("%v", err)
			return
		}
		s.load, s.http = r.AgentCapabilities.LoadSession, r.AgentCapabilities.McpCapabilities.Http
		if !s.opened && !s.asked {
			s.opened = true
			s.openSession()
		}
	case idSession, idAnew:
		var r acp.NewSessionResponse
		if s.session = s.turn.Session; s.session == "" || !s.load || id == idAnew {
			if err := json.Unmarshal(m.Result, &r); err != nil {
				s.breach("%v", err)
				return
			}
			s.session = string(r.SessionId)
		}
		switch {
		case s.asked: // by an earlier reader
		case id == idSession && s.turn.Session != "" && s.load:
			s.settle()
		default:
			s.prompt()
		}
	case s.number:
		s.finish(m.Result, fresh)
	}
}

func (s *acpSession) openSession() {
	if s.turn.Session != "" && s.load {
		s.post(idSession, acp.AgentMethodSessionLoad, acp.LoadSessionRequest{SessionId: acp.SessionId(s.turn.Session), Cwd: s.turn.Dir, McpServers: s.tools()})
		return
	}
	s.newSession(idSession)
}

func (s *acpSession) newSession(id int) {
	s.post(id, acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: s.turn.Dir, McpServers: s.tools()})
}

// tools are the squad's own, for the member's role. Inside a local sandbox the gateway
// knows who asks; a cloud one shows the token that it reaches the gateway with.
func (s *acpSession) tools() []acp.McpServer {
	base := s.turn.Env["SQUAD_GATEWAY"]
	if base == "" || !s.http {
		return []acp.McpServer{}
	}
	headers := []acp.HttpHeader{}
	if token := s.turn.Env["SQUAD_GATEWAY_TOKEN"]; token != "" {
		headers = append(headers, acp.HttpHeader{Name: "Authorization", Value: "Bearer " + token})
	}
	return []acp.McpServer{{Http: &acp.McpServerHttpInline{Type: "http", Name: "squad", Url: base + "/mcp", Headers: headers}}}
}

func (s *acpSession) prompt() {
	s.asked, s.ready = true, true
	if err := s.turn.Box.Write(s.ctx, s.marker, strconv.AppendInt(nil, s.read, 10)); err != nil {
		s.err = fmt.Errorf("note prompt: %w", err)
		return
	}
	text := s.turn.Prompt
	if s.turn.Member.SystemPrompt != "" && s.session != s.turn.Session {
		text = s.turn.Member.SystemPrompt + "\n\n" + text
	}
	s.ask(idPrompt, text)
}

func (s *acpSession) ask(id int, text string) {
	s.post(id, acp.AgentMethodSessionPrompt, acp.PromptRequest{SessionId: acp.SessionId(s.session), Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
}

// finish notes how the turn ended and lets the process go.
func (s *acpSession) finish(raw json.RawMessage, fresh bool) {
	var r acp.PromptResponse
	if err := json.Unmarshal(raw, &r); err != nil {
		s.breach("%v", err)
		return
	}
	if r.StopReason == acp.StopReasonCancelled && s.goOn(fresh) {
		return
	}
	s.result = Result{Outcome: Finished, Session: s.session, Summary: Redact(tail(strings.TrimSpace(s.words.String()), 2000)), Commands: s.runs}
	switch r.StopReason {
	case acp.StopReasonCancelled:
		s.result.Outcome = Stopped
	case acp.StopReasonRefusal, acp.StopReasonMaxTokens, acp.StopReasonMaxTurnRequests:
		s.result.Outcome = Failed
		s.result.Summary = "the agent stopped: " + string(r.StopReason)
	}
	if s.denied != "" {
		s.result.Outcome, s.result.ExitCode, s.result.Summary = Failed, -1, "it stopped at a refusal: "+s.denied
	}
	s.done = true
	go func() { _ = letGo(context.WithoutCancel(s.ctx), s.turn) }() // take must return for the stream to end
}

func (s *acpSession) refused(id int, why string, fresh bool) {
	if id == idSession && s.turn.Session != "" && s.load { // the sandbox is not the one of the turn before
		if !s.asked {
			s.newSession(idAnew)
		}
		return
	}
	what := "prompt"
	switch id {
	case idInitialize:
		what = "initialize"
	case idSession, idAnew:
		what = "session"
	default:
		if s.goOn(fresh) {
			return
		}
	}
	s.result = Result{Outcome: Failed, ExitCode: -1, Session: s.session, Commands: s.runs, Summary: Redact(tail(what+": "+why, 500))}
	s.done = true
	go func() { _ = letGo(context.WithoutCancel(s.ctx), s.turn) }()
}

// send and post write a request; post is for callers that hold mu.
func (s *acpSession) send(id int, method string, params any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post(id, method, params)
}

func (s *acpSession) post(id int, method string, params any) {
	raw, err := json.Marshal(params)
	if err != nil {
		s.err = fmt.Errorf("encode %s: %w", method, err)
		return
	}
	s.reply(rpc{ID: json.RawMessage(fmt.Sprint(id)), Method: method, Params: raw})
}

func (s *acpSession) reply(m rpc) {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err == nil {
		err = s.turn.Box.Input(s.ctx, tag(s.turn), append(line, '\n'))
	}
	if squad.CodeOf(err) == squad.CodeNotFound {
		return // it has ended: how is told by its exit code and its last words
	}
	if err != nil && s.err == nil && !s.done {
		s.err = fmt.Errorf("write to agent: %w", err)
	}
}
