package gvisor

import (
	"context"
	"errors"
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

	mu      sync.Mutex
	rec     record
	session *tunnel.Session
	line    line               // of the session
	shut    context.CancelFunc // no other tunnel is taken up
	proc    *process
	changed chan struct{} // closed and replaced at each change of the fields above
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

// openDoor takes a tunnel up as soon as the daemon answers, and another whenever
// one ends, until the door is shut.
func (s *Sandbox) openDoor() {
	ctx, shut := context.WithCancel(context.Background())
	s.mu.Lock()
	s.shut = shut
	s.mu.Unlock()
	go func() {
		for ctx.Err() == nil {
			if l, err := s.box.knock(ctx); err == nil {
				s.serve(ctx, l)
			}
			pause(ctx, knockPause)
		}
	}()
}

// knockPause is the least time between two tunnels: a sandbox that drops them
// costs the host little.
const knockPause = 10 * time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// serve is one tunnel, from the daemon's answer to its end.
func (s *Sandbox) serve(ctx context.Context, l line) {
	s.mu.Lock()
	if ctx.Err() != nil {
		s.mu.Unlock()
		_ = errors.Join(l.Close(), l.hold.Close())
		return
	}
	session := tunnel.Server(l.Conn, func(h tunnel.Header, c net.Conn) { s.rt.accept(s.id, h, c) })
	s.session, s.line = session, l
	s.wake()
	s.mu.Unlock()
	<-session.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session { // else whoever shut the door has both
		s.session, s.line = nil, line{}
		_ = l.hold.Close()
		s.wake()
	}
}

// closeDoor ends the tunnel and takes up no other.
func (s *Sandbox) closeDoor() {
	s.mu.Lock()
	session, l := s.shutDoor()
	s.mu.Unlock()
	if session != nil {
		_ = errors.Join(session.Close(), l.hold.Close())
	}
}

// hangUpPatience is how long a sandbox that is to be saved has to let go of its
// tunnel.
const hangUpPatience = 20 * time.Second

// hangUp is closeDoor for a sandbox that is to be saved. It fails, with the door
// open, when the sandbox does not let go: gVisor cannot save one that holds a
// connection to the host.
func (s *Sandbox) hangUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hangUpPatience)
	defer cancel()
	session, l, err := s.takeTunnel(ctx)
	if err != nil {
		return err
	}
	defer l.hold.Close()
	session.HangUp(hangUpPatience) // it may also end because a stream could not be told
	if !l.gone(hangUpPatience) {
		s.openDoor()
		return squad.Errorf(squad.CodeUnavailable, "sandbox %s does not answer", s.id)
	}
	return nil
}

// takeTunnel shuts the door while a tunnel stands: the one that is just being handed
// in would be held by the sandbox without anybody's knowing.
func (s *Sandbox) takeTunnel(ctx context.Context) (*tunnel.Session, line, error) {
	for {
		if _, err := s.Tunnel(ctx); err != nil {
			return nil, line{}, err
		}
		s.mu.Lock()
		if s.session != nil {
			defer s.mu.Unlock()
			session, l := s.shutDoor()
			return session, l, nil
		}
		s.mu.Unlock()
	}
}

// shutDoor takes up no other tunnel and hands over the one that stands, or nil; mu is
// held.
func (s *Sandbox) shutDoor() (*tunnel.Session, line) {
	shut, session, l := s.shut, s.session, s.line
	s.shut, s.session, s.line = nil, nil, line{}
	s.wake()
	if shut != nil {
		shut()
	}
	return session, l
}

// now is the time as it is written down.
func now() time.Time { return time.Now().UTC() }
