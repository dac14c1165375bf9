package envd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentsquad/internal/envdpb/process"
)

const (
	pipeChunk = 32 << 10
	ptyChunk  = 16 << 10
	pipeSize  = 256 << 10
	// queueChunks is how far a process may run ahead of one reader.
	queueChunks = 8
	// ptyLinger is how long a terminal is read after its shell has gone: what
	// the shell left in the background may hold it open for ever.
	ptyLinger = 200 * time.Millisecond
)

// running is one started command. It is over when its leader has exited and its
// output has been read to the end, by whichever of these comes last.
type running struct {
	pid    int
	tag    *string
	config *process.ProcessConfig
	mark   string
	pty    *os.File // master side, nil without a terminal

	input   *os.File   // nil when stdin is /dev/null
	inputMu sync.Mutex // one writer at a time, whole chunks
	closed  bool       // no more input

	mu      sync.Mutex
	readers []*reader
	limit   *time.Timer // ends the command when its time is up

	gone atomic.Bool  // the leader has exited
	left atomic.Int32 // output streams still open, plus the leader
	ws   syscall.WaitStatus
	done chan struct{} // closed when over
	over func()        // called once, before done is closed
}

// reader is one caller that follows a command.
type reader struct {
	events chan *process.ProcessEvent
	left   chan struct{}
}

// attach adds a reader; from now on output waits for it.
func (r *running) attach() *reader {
	sub := &reader{events: make(chan *process.ProcessEvent, queueChunks), left: make(chan struct{})}
	r.mu.Lock()
	r.readers = append(r.readers, sub)
	r.mu.Unlock()
	return sub
}

// detach removes a reader and frees whoever waits for it.
func (r *running) detach(sub *reader) {
	close(sub.left)
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make([]*reader, 0, len(r.readers))
	for _, other := range r.readers {
		if other != sub {
			kept = append(kept, other)
		}
	}
	r.readers = kept
}

// publish hands an event to all readers and waits for the slow ones; with no
// reader the event is dropped.
func (r *running) publish(event *process.ProcessEvent) {
	r.mu.Lock()
	readers := r.readers
	r.mu.Unlock()
	for _, sub := range readers {
		select {
		case sub.events <- event:
		case <-sub.left:
		}
	}
}

// exited is the reaper's word that the leader is gone.
func (r *running) exited(ws syscall.WaitStatus) {
	r.ws = ws
	r.gone.Store(true)
	if r.pty != nil {
		_ = r.pty.SetReadDeadline(time.Now().Add(ptyLinger))
	}
	r.part()
}

func (r *running) part() {
	if r.left.Add(-1) > 0 {
		return
	}
	if r.input != nil {
		_ = r.input.SetWriteDeadline(time.Unix(1, 0)) // frees a writer: nobody reads any more
	}
	r.closeInput()
	r.over()
	close(r.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit != nil {
		r.limit.Stop()
	}
}

// limitTo ends the command with all it started at the given time, unless it is
// over by then. A leader that has gone does not make it over: what it started
// still writes to the caller.
func (r *running) limitTo(deadline time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = time.AfterFunc(time.Until(deadline), r.kill)
	if r.isOver() {
		r.limit.Stop()
	}
}

// kill ends the command with all it started.
func (r *running) kill() {
	leader := r.pid
	if r.gone.Load() {
		leader = 0
	}
	killTree(leader, r.mark)
}

// closeInput ends the command's input and says whether there was any.
func (r *running) closeInput() bool {
	r.inputMu.Lock()
	defer r.inputMu.Unlock()
	if r.input == nil || r.closed {
		return false
	}
	r.input.Close()
	r.closed = true
	return true
}

var (
	errNoStdin = errors.New("stdin is closed or was not enabled for this process")
	errIsPty   = errors.New("stdin of a terminal cannot be closed, send the end-of-transmission byte (4) instead")
	errNoPty   = errors.New("the process has no terminal")
)

// write feeds the process. It blocks while the pipe is full, as long as ctx allows.
func (r *running) write(ctx context.Context, in *process.ProcessInput) error {
	var to *os.File
	var data []byte
	r.inputMu.Lock()
	defer r.inputMu.Unlock()
	switch v := in.GetInput().(type) {
	case *process.ProcessInput_Stdin:
		if r.input == nil || r.closed {
			return errNoStdin
		}
		to, data = r.input, v.Stdin
	case *process.ProcessInput_Pty:
		if r.pty == nil {
			return errNoPty
		}
		to, data = r.pty, v.Pty
	default:
		return errors.New("the input holds neither stdin nor pty")
	}
	stop := context.AfterFunc(ctx, func() { _ = to.SetWriteDeadline(time.Unix(1, 0)) })
	_, err := to.Write(data)
	if !stop() {
		_ = to.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		return fmt.Errorf("write input: %w", err)
	}
	return nil
}

// endEvent describes how the leader ended, in the words of os/exec.
func (r *running) endEvent() *process.ProcessEvent {
	end := &process.ProcessEvent_EndEvent{ExitCode: -1, Exited: r.ws.Exited()}
	switch {
	case r.ws.Exited():
		end.ExitCode = int32(r.ws.ExitStatus())
		end.Status = fmt.Sprintf("exit status %d", r.ws.ExitStatus())
	case r.ws.Signaled():
		end.Status = "signal: " + r.ws.Signal().String()
		if r.ws.CoreDump() {
			end.Status += " (core dumped)"
		}
	default:
		end.Status = "ended"
	}
	if end.ExitCode != 0 {
		end.Error = &end.Status
	}
	return &process.ProcessEvent{Event: &process.ProcessEvent_End{End: end}}
}

func stdoutEvent(data []byte) *process.ProcessEvent {
	return dataEvent(&process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stdout{Stdout: data}})
}

func stderrEvent(data []byte) *process.ProcessEvent {
	return dataEvent(&process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Stderr{Stderr: data}})
}

func ptyEvent(data []byte) *process.ProcessEvent {
	return dataEvent(&process.ProcessEvent_DataEvent{Output: &process.ProcessEvent_DataEvent_Pty{Pty: data}})
}

func dataEvent(d *process.ProcessEvent_DataEvent) *process.ProcessEvent {
	return &process.ProcessEvent{Event: &process.ProcessEvent_Data{Data: d}}
}

// follow sends a command's events until it is over, the caller leaves or its
// time is up. The caller gets what was queued before the end.
func (r *running) follow(ctx context.Context, sub *reader, keepalive time.Duration, send func(*process.ProcessEvent) error) error {
	idle := time.NewTimer(keepalive)
	defer idle.Stop()
	for {
		select {
		case event := <-sub.events:
			hold(ctx, len(sub.events) > 0)
			if err := send(event); err != nil {
				return err
			}
			idle.Reset(keepalive)
		case <-idle.C:
			if err := send(&process.ProcessEvent{Event: &process.ProcessEvent_Keepalive{Keepalive: &process.ProcessEvent_KeepAlive{}}}); err != nil {
				return err
			}
			idle.Reset(keepalive)
		case <-r.done:
			return r.finish(ctx, sub, send)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *running) finish(ctx context.Context, sub *reader, send func(*process.ProcessEvent) error) error {
	hold(ctx, true) // the end of the response sends it all
	for {
		select {
		case event := <-sub.events:
			if err := send(event); err != nil {
				return err
			}
			continue
		default:
		}
		// It ended because its time was up. The context itself may notice a moment later.
		if deadline, limited := ctx.Deadline(); limited && !time.Now().Before(deadline) {
			return context.DeadlineExceeded
		}
		return send(r.endEvent())
	}
}
