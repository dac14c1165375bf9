package envd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"agentsquad/internal/envdpb/process"
)

const (
	defaultKeepalive = 90 * time.Second
	// endKept is how long the end of a command is kept for a late Connect.
	endKept = 30 * time.Second
)

// processes is the service process.Process.
type processes struct {
	server *Server

	mu    sync.Mutex
	byPID map[int]*running
}

func (s *processes) find(sel *process.ProcessSelector) (*running, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v := sel.GetSelector().(type) {
	case *process.ProcessSelector_Pid:
		if r := s.byPID[int(v.Pid)]; r != nil {
			return r, nil
		}
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("process with pid %d not found", v.Pid))
	case *process.ProcessSelector_Tag:
		var ended *running
		for _, r := range s.byPID {
			if r.tag == nil || *r.tag != v.Tag {
				continue
			}
			if !r.isOver() {
				return r, nil
			}
			ended = r
		}
		if ended != nil {
			return ended, nil
		}
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("process with tag %s not found", v.Tag))
	}
	return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the request names no process"))
}

// findLive is find without commands that are over.
func (s *processes) findLive(sel *process.ProcessSelector) (*running, error) {
	r, err := s.find(sel)
	if err == nil && r.isOver() {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("process with pid %d not found", r.pid))
	}
	return r, err
}

func (r *running) isOver() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// List names the commands that run.
func (s *processes) List(context.Context, *connect.Request[process.ListRequest]) (*connect.Response[process.ListResponse], error) {
	out := &process.ListResponse{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.byPID {
		if !r.isOver() {
			out.Processes = append(out.Processes, &process.ProcessInfo{Config: r.config, Pid: uint32(r.pid), Tag: r.tag})
		}
	}
	return connect.NewResponse(out), nil
}

// Start runs a command and follows it. The command outlives the caller, but not
// the caller's deadline.
func (s *processes) Start(ctx context.Context, req *connect.Request[process.StartRequest], out *connect.ServerStream[process.StartResponse]) error {
	c, err := s.command(req.Header(), req.Msg)
	if err != nil {
		return err
	}
	r, sub, err := s.server.spawn.launch(c, s.retire)
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("start process: %w", err))
	}
	defer r.detach(sub)
	s.mu.Lock()
	s.byPID[r.pid] = r
	s.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok {
		r.limitTo(deadline)
	}
	send := func(e *process.ProcessEvent) error { return out.Send(&process.StartResponse{Event: e}) }
	return s.serve(ctx, r, sub, req.Header(), send)
}

// Connect follows a command that was started earlier, or tells its end if that
// was less than 30 seconds ago.
func (s *processes) Connect(ctx context.Context, req *connect.Request[process.ConnectRequest], out *connect.ServerStream[process.ConnectResponse]) error {
	r, err := s.find(req.Msg.GetProcess())
	if err != nil {
		return err
	}
	sub := r.attach()
	defer r.detach(sub)
	send := func(e *process.ProcessEvent) error { return out.Send(&process.ConnectResponse{Event: e}) }
	return s.serve(ctx, r, sub, req.Header(), send)
}

func (s *processes) serve(ctx context.Context, r *running, sub *reader, h http.Header, send func(*process.ProcessEvent) error) error {
	hello := &process.ProcessEvent{Event: &process.ProcessEvent_Start{Start: &process.ProcessEvent_StartEvent{Pid: uint32(r.pid)}}}
	if err := send(hello); err != nil {
		return err
	}
	return streamError(r.follow(ctx, sub, keepalive(h), send))
}

// streamError gives the end of a caller's time its code.
func streamError(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the time given to this call is over"))
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	}
	return err
}

// retire keeps a command that is over for late callers, then forgets it.
func (s *processes) retire(r *running) {
	time.AfterFunc(endKept, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byPID[r.pid] == r {
			delete(s.byPID, r.pid)
		}
	})
}

func keepalive(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Keepalive-Ping-Interval"))
	if err != nil || n <= 0 || n > 3600 {
		return defaultKeepalive
	}
	return time.Duration(n) * time.Second
}

// command checks a request and lays out the environment of the child.
func (s *processes) command(h http.Header, req *process.StartRequest) (command, error) {
	who, err := s.server.rpcUser(h)
	if err != nil {
		return command{}, err
	}
	c := command{config: req.GetProcess(), tag: req.Tag, who: who, stdin: req.Stdin == nil || req.GetStdin()}
	if c.config.GetCmd() == "" {
		return command{}, connect.NewError(connect.CodeInvalidArgument, errors.New("the request names no command"))
	}
	if req.Pty != nil {
		c.size = req.Pty.GetSize()
		if c.size == nil {
			c.size = &process.PTY_Size{Cols: 80, Rows: 24}
		}
	}
	_, workdir := s.server.state.defaults()
	if c.cwd, err = resolvePath(c.config.GetCwd(), who, workdir); err != nil {
		return command{}, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := checkDir(c.cwd); err != nil {
		return command{}, connect.NewError(connect.CodeInvalidArgument, err)
	}
	c.env, err = s.server.childEnv(who, c.config.GetEnvs())
	if err != nil {
		return command{}, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return c, nil
}

// childEnv is the environment of a child: its user, then what holds for all
// commands, then its own.
func (s *Server) childEnv(who *account, own map[string]string) ([]string, error) {
	user := map[string]string{"PATH": s.path, "HOME": who.home, "USER": who.name, "LOGNAME": who.name}
	return environ(user, s.config.Env, s.state.environment(), own)
}

// SendInput writes to a command's stdin or terminal.
func (s *processes) SendInput(ctx context.Context, req *connect.Request[process.SendInputRequest]) (*connect.Response[process.SendInputResponse], error) {
	r, err := s.findLive(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if err := r.write(ctx, req.Msg.GetInput()); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	return connect.NewResponse(&process.SendInputResponse{}), nil
}

// StreamInput writes a stream of chunks, in order, to the command its first message names.
func (s *processes) StreamInput(ctx context.Context, in *connect.ClientStream[process.StreamInputRequest]) (*connect.Response[process.StreamInputResponse], error) {
	var r *running
	for in.Receive() {
		switch v := in.Msg().GetEvent().(type) {
		case *process.StreamInputRequest_Start:
			found, err := s.findLive(v.Start.GetProcess())
			if err != nil {
				return nil, err
			}
			r = found
		case *process.StreamInputRequest_Data:
			if r == nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("data came before the process was named"))
			}
			if err := r.write(ctx, v.Data.GetInput()); err != nil {
				return nil, connect.NewError(connect.CodeInternal, err)
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&process.StreamInputResponse{}), nil
}

// SendSignal signals a command. SIGTERM goes to its process group; SIGKILL ends
// everything it started.
func (s *processes) SendSignal(_ context.Context, req *connect.Request[process.SendSignalRequest]) (*connect.Response[process.SendSignalResponse], error) {
	r, err := s.findLive(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	switch req.Msg.GetSignal() {
	case process.Signal_SIGNAL_SIGKILL:
		r.kill()
	case process.Signal_SIGNAL_SIGTERM:
		if r.gone.Load() {
			break // only what it left behind holds its output
		}
		if err := syscall.Kill(-r.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("signal process %d: %w", r.pid, err))
		}
	default:
		return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("invalid signal: %s", req.Msg.GetSignal()))
	}
	return connect.NewResponse(&process.SendSignalResponse{}), nil
}

// CloseStdin ends a command's input.
func (s *processes) CloseStdin(_ context.Context, req *connect.Request[process.CloseStdinRequest]) (*connect.Response[process.CloseStdinResponse], error) {
	r, err := s.findLive(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if r.pty != nil {
		return nil, connect.NewError(connect.CodeUnknown, errIsPty)
	}
	if !r.closeInput() {
		return nil, connect.NewError(connect.CodeInternal, errNoStdin)
	}
	return connect.NewResponse(&process.CloseStdinResponse{}), nil
}

// Update changes the size of a command's terminal.
func (s *processes) Update(_ context.Context, req *connect.Request[process.UpdateRequest]) (*connect.Response[process.UpdateResponse], error) {
	r, err := s.findLive(req.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if req.Msg.Pty != nil {
		if r.pty == nil {
			return nil, connect.NewError(connect.CodeInternal, errNoPty)
		}
		if err := resize(r.pty, req.Msg.Pty.GetSize()); err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("resize terminal: %w", err))
		}
	}
	return connect.NewResponse(&process.UpdateResponse{}), nil
}
