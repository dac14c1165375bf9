package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/store"
)

// Open returns a handle to a sandbox of the actor's, waking it where it is
// paused. The house's own work goes through it; commands of others go through
// [Service.Execute], which knows the policy.
func (s *Service) Open(ctx context.Context, actor squad.Actor, id string) (*e2b.Sandbox, error) {
	row, err := s.own(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, actor, row)
}

func (s *Service) open(ctx context.Context, actor squad.Actor, row squad.Sandbox) (*e2b.Sandbox, error) {
	p, err := s.of(ctx, row)
	if err != nil {
		return nil, err
	}
	switch {
	case row.Status.Final():
		return nil, squad.Wrap(squad.CodeConflict, ErrGone, "sandbox %s has ended (%s)", row.ID, row.Status)
	case row.Status == squad.SandboxCreated:
		return nil, squad.Errorf(squad.CodeConflict, "sandbox %s is still being made", row.ID)
	}
	if time.Since(row.LastUsedAt) > time.Minute {
		if err := s.Touch(ctx, row.ID); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	sb := s.handles[row.ID]
	s.mu.Unlock()
	if sb != nil && row.Status == squad.SandboxRunning && sb.Client() == p.Client {
		return sb, nil
	}
	defer s.lock(row.ID)()
	if _, err := s.wake(ctx, p, row, actor); err != nil {
		if errors.Is(err, ErrGone) {
			return nil, squad.Wrap(squad.CodeConflict, err, "sandbox %s is gone", row.ID)
		}
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handles[row.ID], nil
}

// Touch notes that a sandbox is in use, so that it is not called stale.
func (s *Service) Touch(ctx context.Context, id string) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.UseSandbox(ctx, id, 0) })
}

// Execute runs a command to its end; see the ports of package api. The command
// passes the squad's policy first unless the house itself asks.
func (s *Service) Execute(ctx context.Context, actor squad.Actor, id string, cmd squad.Command, out func(squad.LogChunk)) (squad.CommandResult, error) {
	var mu sync.Mutex // out hears one voice at a time
	stdout := &tee{stream: "stdout", max: s.cfg.MaxOutput, out: out, mu: &mu}
	stderr := &tee{stream: "stderr", max: s.cfg.MaxOutput, out: out, mu: &mu}
	res, err := s.Stream(ctx, actor, id, cmd, squad.Streams{Stdout: stdout, Stderr: stderr})
	res.Stdout, res.Stderr, res.Truncated = stdout.text(), stderr.text(), stdout.cut || stderr.cut
	return res, err
}

// Stream is Execute with the command's own streams, byte by byte; the result
// holds no output.
func (s *Service) Stream(ctx context.Context, actor squad.Actor, id string, cmd squad.Command, io squad.Streams) (squad.CommandResult, error) {
	row, err := s.own(ctx, actor, id)
	if err != nil {
		return squad.CommandResult{}, err
	}
	if err := s.CheckCommand(ctx, actor, row, cmd.Shell); err != nil {
		return squad.CommandResult{}, errors.Join(err, s.note(ctx, actor, row.ID, "sandbox.refuse", cmd, nil))
	}
	sb, err := s.open(ctx, actor, row)
	if err != nil {
		return squad.CommandResult{}, err
	}
	timeout := time.Duration(cmd.TimeoutSec) * time.Second
	if timeout <= 0 {
		timeout = s.cfg.CommandTimeout
	}
	start := time.Now()
	done, err := sb.Commands.Run(ctx, cmd.Shell, e2b.CommandOptions{
		Dir: cmd.Dir, User: cmd.User, Env: cmd.Env, Timeout: timeout, Stdin: io.Stdin, Stdout: io.Stdout, Stderr: io.Stderr,
	})
	res := squad.CommandResult{ExitCode: -1, DurationMS: time.Since(start).Milliseconds()}
	if done != nil {
		res.ExitCode = done.ExitCode
	}
	err = s.outcome(ctx, row, &res, timeout, err)
	s.metrics.commands.WithLabelValues(row.Provider, word(res, err)).Observe(time.Since(start).Seconds())
	return res, errors.Join(err, s.note(ctx, actor, row.ID, "sandbox.execute", cmd, &res))
}

// outcome sorts what Run returned: how the command ended is the result, that it
// could not be run is an error.
func (s *Service) outcome(ctx context.Context, row squad.Sandbox, res *squad.CommandResult, timeout time.Duration, err error) error {
	var exit *e2b.CommandExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		if exit.ExitCode < 0 {
			res.Error = exit.Reason
		}
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("execute command: %w", context.Cause(ctx))
	case errors.Is(err, e2b.ErrTimeout):
		res.Error = fmt.Sprintf("timeout after %s", timeout)
		return nil
	}
	s.suspect(ctx, row, err)
	return translate(err, row.Provider, "execute command")
}

func word(res squad.CommandResult, err error) string {
	switch {
	case err != nil:
		return "error"
	case res.Error != "":
		return "cut"
	case res.ExitCode != 0:
		return "failed"
	}
	return "succeeded"
}

// suspect looks after a sandbox that seemed gone, so that its row is right at
// once and not only after the next sweep.
func (s *Service) suspect(ctx context.Context, row squad.Sandbox, cause error) {
	if !errors.Is(cause, e2b.ErrSandboxGone) {
		return
	}
	p, err := s.of(ctx, row)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	s.mu.Lock()
	delete(s.handles, row.ID)
	s.mu.Unlock()
	info, err := p.Client.Get(ctx, row.E2BID)
	switch {
	case errors.Is(err, e2b.ErrSandboxGone):
		err = s.fail(ctx, row.ID, "was found gone when it was used")
	case err == nil && info.State == e2b.StatePaused:
		err = s.asleep(ctx, row.ID)
	}
	if err != nil {
		s.log.WarnContext(ctx, "look after sandbox", "sandbox_id", row.ID, "error", err)
	}
}

// note writes audit and use of a command.
func (s *Service) note(ctx context.Context, actor squad.Actor, id, action string, cmd squad.Command, res *squad.CommandResult) error {
	detail := map[string]any{"command": clip(redact(cmd.Shell), 500)}
	if res != nil {
		detail["exit_code"], detail["duration_ms"] = res.ExitCode, res.DurationMS
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if res != nil {
			if err := tx.UseSandbox(ctx, id, 1); err != nil {
				return err
			}
		}
		return s.audit(ctx, tx, actor, action, id, detail)
	})
}

func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
