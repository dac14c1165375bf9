package e2b

import (
	"context"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"

	pb "agentsquad/internal/envdpb/process"
)

// Process is a running command whose output this program reads. A goroutine
// copies the output until the process ends, ctx ends or [Process.Close] is
// called.
type Process struct {
	pid    uint32
	sb     *Sandbox
	ctx    context.Context // bounds the stream, which outlives the call that began it
	cancel context.CancelCauseFunc
	out    sink
	err    sink
	next   func() (*pb.ProcessEvent, error)
	begun  time.Time
	done   chan struct{}

	// set before done is closed
	result  *Result
	failure error
}

var errClosed = errors.New("stream closed by this program")

func (s *Sandbox) start(ctx context.Context, req *pb.StartRequest, opts CommandOptions) (*Process, error) {
	p := s.newProcess(ctx, opts)
	stream, err := s.process.Start(withLifetime(p.ctx, opts.Timeout), asUser(s, connect.NewRequest(req), opts.User))
	if err != nil {
		p.cancel(errClosed)
		return nil, s.refused("start process", err)
	}
	return p.begin("start process", opts, func() (*pb.ProcessEvent, error) {
		if !stream.Receive() {
			return nil, stream.Err()
		}
		return stream.Msg().GetEvent(), nil
	})
}

func (s *Sandbox) join(ctx context.Context, sel *pb.ProcessSelector, opts CommandOptions) (*Process, error) {
	p := s.newProcess(ctx, opts)
	req := asUser(s, connect.NewRequest(&pb.ConnectRequest{Process: sel}), opts.User)
	stream, err := s.process.Connect(withLifetime(p.ctx, 0), req)
	if err != nil {
		p.cancel(errClosed)
		return nil, s.refused("connect to process", err)
	}
	opts.Stdin = nil
	return p.begin("connect to process", opts, func() (*pb.ProcessEvent, error) {
		if !stream.Receive() {
			return nil, stream.Err()
		}
		return stream.Msg().GetEvent(), nil
	})
}

// newProcess detaches the stream from ctx's deadline, which Connect would send
// as the process's lifetime, but not from its end.
func (s *Sandbox) newProcess(ctx context.Context, opts CommandOptions) *Process {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	p := &Process{
		sb: s, ctx: inner, begun: time.Now(), done: make(chan struct{}),
		out: sink{w: opts.Stdout, max: opts.MaxOutput}, err: sink{w: opts.Stderr, max: opts.MaxOutput},
	}
	p.cancel = func(cause error) { stop(); cancel(cause) }
	return p
}

// begin waits for the first message, which must name the process.
func (p *Process) begin(op string, opts CommandOptions, next func() (*pb.ProcessEvent, error)) (*Process, error) {
	p.next = next
	bound := p.sb.client.cfg.RequestTimeout
	if bound > 0 {
		timer := time.AfterFunc(bound, func() { p.cancel(context.DeadlineExceeded) })
		defer timer.Stop()
	}
	event, err := next()
	if err == nil && event.GetStart() == nil {
		err = &Error{Op: op, Message: "the stream did not begin with a start event"}
	}
	if err != nil {
		cause := context.Cause(p.ctx)
		p.cancel(errClosed)
		if cause != nil {
			return nil, netError(op, cause)
		}
		return nil, p.sb.refused(op, err)
	}
	p.pid = event.GetStart().Pid
	if opts.Stdin != nil {
		go p.feed(opts.Stdin)
	}
	go p.read(op, opts.Timeout)
	return p, nil
}

// refused explains a stream that never began: the proxy's silence about a
// sandbox means that it is gone.
func (s *Sandbox) refused(op string, err error) error {
	return s.cutShort(context.Background(), rpcError(op, err))
}

// feed copies input to the process, then closes it. Errors end the copying
// only: a process that ended no longer reads, and that is no failure.
func (p *Process) feed(r io.Reader) {
	if _, err := io.CopyBuffer(struct{ io.Writer }{p}, struct{ io.Reader }{r}, make([]byte, 32<<10)); err == nil {
		_ = p.CloseStdin(p.ctx)
	}
}

// timeoutGrace is how long the sandbox may take to tell that it ended a process
// whose time was over, before we stop waiting for it.
const timeoutGrace = 10 * time.Second

func (p *Process) read(op string, timeout time.Duration) {
	defer close(p.done)
	defer p.cancel(errClosed)
	if timeout > 0 {
		guard := time.AfterFunc(timeout+timeoutGrace, func() { p.cancel(context.DeadlineExceeded) })
		defer guard.Stop()
	}
	p.result = &Result{ExitCode: -1}
	end, err := p.copyOutput()
	p.result.Stdout, p.result.Stderr = p.out.String(), p.err.String()
	p.result.Truncated = p.out.cut || p.err.cut
	switch cause := context.Cause(p.ctx); {
	case end != nil && !end.Exited && timeout > 0 && time.Since(p.begun) >= timeout:
		// The sandbox tells of the kill or of its reason, whichever comes first.
		p.failure = &Error{Op: "read output", Kind: ErrTimeout, Message: "the command's time was over", Code: end.Status}
	case end != nil:
		p.result.ExitCode = int(end.ExitCode)
		if end.ExitCode != 0 || !end.Exited {
			p.failure = &CommandExitError{
				ExitCode: int(end.ExitCode), Reason: reason(end), Stdout: p.result.Stdout, Stderr: p.result.Stderr,
			}
		}
	case cause != nil:
		p.failure = netError("read output", cause)
	case err == nil:
		p.failure = p.sb.cutShort(p.ctx, &Error{Op: op, Message: "the stream ended before the process did", Err: io.ErrUnexpectedEOF})
	default:
		p.failure = p.sb.cutShort(p.ctx, rpcError("read output", err))
	}
}

func reason(end *pb.ProcessEvent_EndEvent) string {
	if !end.Exited && end.Status != "" {
		return end.Status
	}
	if end.GetError() != "" {
		return end.GetError()
	}
	return end.Status
}

func (p *Process) copyOutput() (*pb.ProcessEvent_EndEvent, error) {
	for {
		event, err := p.next()
		if err != nil || event == nil {
			return nil, err
		}
		if end := event.GetEnd(); end != nil {
			return end, nil
		}
		data := event.GetData()
		if data == nil {
			continue
		}
		if err := p.write(data); err != nil {
			p.cancel(err)
			return nil, err
		}
	}
}

func (p *Process) write(data *pb.ProcessEvent_DataEvent) error {
	var err error
	switch out := data.Output.(type) {
	case *pb.ProcessEvent_DataEvent_Stdout:
		err = p.out.write(out.Stdout)
	case *pb.ProcessEvent_DataEvent_Stderr:
		err = p.err.write(out.Stderr)
	case *pb.ProcessEvent_DataEvent_Pty:
		err = p.out.write(out.Pty)
	}
	return err
}

// PID of the process inside the sandbox.
func (p *Process) PID() uint32 { return p.pid }

// Wait waits for the end of the process and returns what [Commands.Run] would.
// It may be called many times.
func (p *Process) Wait() (*Result, error) {
	<-p.done
	return p.result, p.failure
}

// Done is closed when the process ended or its stream was cut.
func (p *Process) Done() <-chan struct{} { return p.done }

// Write sends to the input of the process, in order. It is an io.Writer so that
// programs that speak over a pipe can speak over it.
func (p *Process) Write(data []byte) (int, error) {
	if err := p.sb.Commands.SendStdin(p.ctx, p.pid, data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// CloseStdin lets the process see the end of its input.
func (p *Process) CloseStdin(ctx context.Context) error {
	return p.sb.Commands.CloseStdin(ctx, p.pid)
}

// Signal sends a signal to the process.
func (p *Process) Signal(ctx context.Context, sig Signal) error {
	return p.sb.Commands.Signal(ctx, p.pid, sig)
}

// Kill ends the process; nil also where it has ended.
func (p *Process) Kill(ctx context.Context) error {
	_, err := p.sb.Commands.Kill(ctx, p.pid)
	return err
}

// Close stops reading and leaves the process running.
func (p *Process) Close() error {
	p.cancel(errClosed)
	<-p.done
	return nil
}

// sink passes output on, or keeps it, or keeps the end of it.
type sink struct {
	w   io.Writer
	max int
	buf []byte
	cut bool
}

func (s *sink) write(data []byte) error {
	if s.w != nil {
		_, err := s.w.Write(data)
		return err
	}
	s.buf = append(s.buf, data...)
	if s.max > 0 && len(s.buf) > 2*s.max { // twice, so that each byte is moved once
		s.buf = append(s.buf[:0], s.buf[len(s.buf)-s.max:]...)
		s.cut = true
	}
	return nil
}

func (s *sink) String() string {
	if s.max > 0 && len(s.buf) > s.max {
		s.buf, s.cut = s.buf[len(s.buf)-s.max:], true
	}
	return string(s.buf)
}
