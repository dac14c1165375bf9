package interpreter

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// interruptWithin is how long a snippet whose caller left may take to stop
// before its interpreter is ended.
const (
	interruptWithin = 5 * time.Second
	interruptEvery  = 500 * time.Millisecond
	drainWithin     = time.Second
)

// interpreter is one context. Its process comes and goes; its id stays.
type interpreter struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Cwd      string `json:"cwd"`

	system System
	driver driver
	turn   chan struct{} // held while a snippet runs
	count  int           // snippets run; guarded by turn

	mu   sync.Mutex
	live *session
}

// session is one living interpreter process.
type session struct {
	child    Child
	commands *os.File
	events   chan event
	silent   chan struct{} // closed when all it said has been read
	quit     chan struct{} // closed by whoever ends it
	once     sync.Once

	mu      sync.Mutex
	current chan struct{} // closed when the snippet that runs has ended; nil between snippets
}

type snippet struct {
	Code string            `json:"code"`
	Env  map[string]string `json:"env,omitempty"`
}

var errDied = errors.New("the interpreter has ended")

// run runs one snippet and hands what it does to send.
func (i *interpreter) run(ctx context.Context, code snippet, send func(any) error) error {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s, err := i.session()
	if err != nil {
		return err
	}
	line, err := json.Marshal(code)
	if err != nil {
		return err
	}
	if i.driver.base64 {
		script, err := withExports(code)
		if err != nil {
			return err
		}
		line = []byte(base64.StdEncoding.EncodeToString([]byte(script)))
	}
	s.begin()
	defer s.finish()
	if err := s.write(ctx, append(line, '\n')); err != nil {
		i.stop()
		return fmt.Errorf("hand code to the interpreter: %w", err)
	}
	i.count++
	if err := send(map[string]any{"type": "number_of_executions", "execution_count": i.count}); err != nil {
		return i.abandon(s, err)
	}
	return i.follow(ctx, s, send)
}

// follow passes events on until the snippet has ended.
func (i *interpreter) follow(ctx context.Context, s *session, send func(any) error) error {
	for {
		select {
		case e := <-s.events:
			if e.last() {
				if e.kind == "bye" {
					i.stop() // the snippet ended its own interpreter
				}
				return send(map[string]any{"type": "end_of_execution"})
			}
			if err := send(e.message()); err != nil {
				return i.abandon(s, err)
			}
		case <-s.child.Done:
			if i.drain(s, send) {
				return send(map[string]any{"type": "end_of_execution"})
			}
			return errDied
		case <-ctx.Done():
			return i.abandon(s, ctx.Err())
		}
	}
}

// drain passes on what a dead interpreter said last, and tells whether the
// snippet had ended before it died.
func (i *interpreter) drain(s *session, send func(any) error) bool {
	defer i.stop()
	timer := time.NewTimer(drainWithin) // what it started may hold its output open
	defer timer.Stop()
	for {
		select {
		case e := <-s.events:
			if e.last() {
				return true
			}
			if send(e.message()) != nil {
				return false
			}
		case <-s.silent:
			return false
		case <-timer.C:
			return false
		}
	}
}

// abandon stops a snippet nobody waits for, gently first: the state of the
// interpreter is worth keeping.
func (i *interpreter) abandon(s *session, cause error) error {
	if !i.driver.interruptible {
		i.stop()
		return cause
	}
	timer := time.NewTimer(interruptWithin)
	defer timer.Stop()
	again := time.NewTicker(interruptEvery) // the first may come before the snippet has begun
	defer again.Stop()
	s.child.Interrupt()
	for {
		select {
		case e := <-s.events:
			if e.last() {
				return cause
			}
		case <-again.C:
			s.child.Interrupt()
		case <-s.child.Done:
			i.stop()
			return cause
		case <-timer.C:
			i.stop()
			return cause
		}
	}
}

// session returns the living process, started if there is none.
func (i *interpreter) session() (*session, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.live != nil {
		select {
		case <-i.live.child.Done:
			i.live.end()
		default:
			return i.live, nil
		}
	}
	s, err := i.start()
	if err != nil {
		return nil, err
	}
	i.live = s
	return s, nil
}

// stop ends the process; the context stays.
func (i *interpreter) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.live != nil {
		i.live.end()
		i.live = nil
	}
}

func (s *session) end() {
	s.once.Do(func() {
		close(s.quit)
		s.commands.Close()
		s.child.Kill()
	})
}

// start runs the driver: output on 1 and 2, its words on 3, code on 4.
func (i *interpreter) start() (*session, error) {
	info, err := os.Stat(i.Cwd)
	if err != nil || !info.IsDir() {
		return nil, &failure{400, fmt.Sprintf("cwd '%s' does not exist or is not a directory", i.Cwd)}
	}
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start interpreter: %w", err)
	}
	theirs := []int{null}
	defer func() {
		for _, fd := range theirs {
			syscall.Close(fd)
		}
	}()
	var ours []*os.File
	for fd := 1; fd <= 4; fd++ {
		var p [2]int
		if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
			closeAll(ours)
			return nil, fmt.Errorf("start interpreter: %w", err)
		}
		mine, their := p[0], p[1]
		if fd == 4 {
			mine, their = p[1], p[0]
		}
		_ = syscall.SetNonblock(mine, true) // fails on no pipe
		ours = append(ours, os.NewFile(uintptr(mine), "pipe"))
		theirs = append(theirs, their)
	}
	files := make([]uintptr, len(theirs))
	for n, fd := range theirs {
		files[n] = uintptr(fd)
	}
	child, err := i.system.Start(Command{Path: i.driver.path, Args: i.driver.args, Env: i.driver.env, Dir: i.Cwd, Files: files})
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start interpreter: %w", err)
	}
	s := &session{child: child, commands: ours[3], events: make(chan event), silent: make(chan struct{}), quit: make(chan struct{})}
	s.listen(ours[0], ours[1], ours[2])
	return s, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func (s *session) write(ctx context.Context, line []byte) error {
	stop := context.AfterFunc(ctx, func() { _ = s.commands.SetWriteDeadline(time.Unix(1, 0)) })
	_, err := s.commands.Write(line)
	if !stop() {
		_ = s.commands.SetWriteDeadline(time.Time{})
	}
	return err
}

// begin makes output count, finish makes it go nowhere: what is said between
// snippets belongs to no caller, and must not block the one who says it.
func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = make(chan struct{})
}

func (s *session) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.current)
	s.current = nil
}

// emit hands an event to the snippet's caller, or drops it when there is none.
// It returns false when the session has ended.
func (s *session) emit(e event) bool {
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	if current == nil {
		return true
	}
	select {
	case s.events <- e:
		return true
	case <-current:
		return true
	case <-s.quit:
		return false
	}
}
