package gvisor

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"agentsquad"
	"agentsquad/internal/tunnel"
)

// Sandbox is one sandbox of a [Runtime]. Its methods may be called from any
// goroutine; verbs that change it (Pause, Resume, Snapshot, Fork, Kill) run one
// after the other.
type Sandbox struct {
	rt   *Runtime
	id   string
	box  folder
	turn chan struct{} // held by the verb that runs
	done chan struct{} // closed when the sandbox has ended for good

	mu       sync.Mutex
	rec      record
	session  *tunnel.Session
	listener *net.UnixListener
	proc     *process
	changed  chan struct{} // closed and replaced at each change of the fields above
}

func (r *Runtime) newSandbox(rec record) *Sandbox {
	return &Sandbox{
		rt: r, id: rec.ID, box: r.folder(rec.ID), rec: rec,
		turn: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
	}
}

// ID returns its name.
func (s *Sandbox) ID() string { return s.id }

// Info returns what is known of it now.
func (s *Sandbox) Info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rec.Info
}

// Done is closed when the sandbox has ended: killed, died or lost. A paused one
// has not ended.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Tunnel returns the live tunnel, waiting for it while the sandbox starts,
// resumes or redials. A paused sandbox is a conflict, an ended one not found.
func (s *Sandbox) Tunnel(ctx context.Context) (*tunnel.Session, error) {
	for {
		s.mu.Lock()
		session, status, changed := s.session, s.rec.Status, s.changed
		s.mu.Unlock()
		switch {
		case session != nil:
			return session, nil
		case status.Final():
			return nil, squad.NotFound("sandbox", s.id)
		case status == squad.SandboxPaused:
			return nil, squad.Errorf(squad.CodeConflict, "sandbox %s is paused", s.id)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for sandbox %s: %w", s.id, context.Cause(ctx))
		}
	}
}

// change edits the record, writes it down and wakes those who wait.
func (s *Sandbox) change(edit func(*record)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(&s.rec)
	s.wake()
	return writeJSON(s.box.state(), s.rec)
}

// wake tells waiters that something changed; mu is held.
func (s *Sandbox) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// begin takes the turn of a verb; end gives it back.
func (s *Sandbox) begin(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for sandbox %s: %w", s.id, context.Cause(ctx))
	}
}

func (s *Sandbox) end() { <-s.turn }

// accept serves the tunnel's socket until the listener closes. One tunnel is
// live at a time: while it is, another dial from inside is turned away.
func (s *Sandbox) accept(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.session != nil || s.listener != l {
			s.mu.Unlock()
			_ = conn.Close()
			time.Sleep(dialPause)
			continue
		}
		session := tunnel.Server(conn, func(h tunnel.Header, c net.Conn) { s.rt.accept(s.id, h, c) })
		s.session = session
		s.wake()
		s.mu.Unlock()
		go s.release(session)
		time.Sleep(dialPause)
	}
}

// dialPause is the least time between two dials from inside that are answered: a
// program that dials in a loop costs the host nothing.
const dialPause = 10 * time.Millisecond

// release forgets a tunnel when it has ended.
func (s *Sandbox) release(session *tunnel.Session) {
	<-session.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.session = nil
		s.wake()
	}
}

// openDoor listens for envd's dial.
func (s *Sandbox) openDoor() error {
	l, err := listen(s.box)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	go s.accept(l)
	return nil
}

// hangUpPatience is how long a sandbox that is to be saved has to notice that
// its tunnel is closed.
const hangUpPatience = 2 * time.Second

// closeDoor ends the tunnel and refuses new ones.
func (s *Sandbox) closeDoor() {
	if session := s.shutDoor(); session != nil {
		_ = session.Close()
	}
}

// hangUp is closeDoor that lets the sandbox notice.
func (s *Sandbox) hangUp() {
	if session := s.shutDoor(); session != nil {
		session.HangUp(hangUpPatience)
	}
}

// shutDoor refuses new tunnels and returns the one that stands, or nil.
func (s *Sandbox) shutDoor() *tunnel.Session {
	s.mu.Lock()
	l, session := s.listener, s.session
	s.listener, s.session = nil, nil
	s.wake()
	s.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
	return session
}

// now is the time as it is written down.
func now() time.Time { return time.Now().UTC() }
