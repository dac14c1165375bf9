package e2bserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	squad "agentsquad"
)

// Bounds on a build.
const (
	buildTimeout = time.Hour
	readyTimeout = 5 * time.Minute
	readyPause   = 500 * time.Millisecond
	startPause   = 2 * time.Second
)

// construction is a build under way.
type construction struct {
	s        *Server
	owner    string
	template string
	build    build
	plan     buildPlan
	box      *box
	base     string // the image underneath, if it came from a registry
	step     string // as errors name it

	env     map[string]string
	workdir string
	user    string
}

// runBuild makes a template and writes down how it went.
func (s *Server) runBuild(ctx context.Context, owner, templateID string, work build, plan buildPlan) {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	c := &construction{s: s, owner: owner, template: templateID, build: work, plan: plan, env: map[string]string{}, step: "base"}
	err := c.run(ctx)
	if err != nil {
		c.say("error", "Build failed: "+buildMessage(err))
		s.log.WarnContext(ctx, "template build failed", "template_id", templateID, "build_id", work.ID, "error", err)
	} else {
		c.say("info", "Build finished")
	}
	ferr := s.library.withBuild(owner, templateID, work.ID, func(t *template, b *build) error {
		b.FinishedAt = s.cfg.Now().UTC()
		if err != nil {
			b.Status, b.Reason, b.FailedStep = buildError, buildMessage(err), c.step
			t.prune()
			return save(s.library.dir, t.ID, t)
		}
		b.Status, b.Env, b.Workdir, b.User, b.Base = buildReady, c.env, c.workdir, c.user, c.base
		for _, name := range b.Tags {
			t.Tags[name] = tag{Build: b.ID, CreatedAt: b.FinishedAt}
		}
		t.prune()
		return save(s.library.dir, t.ID, t)
	})
	if ferr != nil {
		s.log.ErrorContext(ctx, "template build not recorded", "template_id", templateID, "build_id", work.ID, "error", ferr)
	}
	s.sweep(context.WithoutCancel(ctx))
}

// buildMessage is what the builder of a template sees: all that happened inside
// is theirs to know.
func buildMessage(err error) string {
	var known *squad.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}

func (c *construction) run(ctx context.Context) error {
	image, err := c.from(ctx)
	if err != nil {
		return err
	}
	if err := c.open(ctx, image); err != nil {
		return err
	}
	defer func() {
		if err := c.s.kill(ctx, c.box, "its build is over"); err != nil && squad.CodeOf(err) != squad.CodeNotFound {
			c.s.log.ErrorContext(ctx, "sandbox of a build not killed", "sandbox_id", c.box.id, "error", err)
		}
	}()
	if c.plan.FromImage != "" && !isBaseImage(c.plan.FromImage) {
		if err := c.shell(ctx, "root", "/", ensureUser); err != nil {
			return fmt.Errorf("prepare image: %w", err)
		}
	}
	for i, t := range c.plan.Steps {
		c.step = strconv.Itoa(i + 1)
		c.say("info", fmt.Sprintf("[builder %d/%d] %s", i+1, len(c.plan.Steps), t))
		if err := c.do(ctx, t); err != nil {
			return err
		}
	}
	c.step = "finalize"
	if err := c.startUp(ctx); err != nil {
		return err
	}
	c.say("info", "[finalize] Saving the template")
	if err := c.box.machine.Snapshot(ctx, c.build.Image); err != nil {
		return fmt.Errorf("save template: %w", err)
	}
	return nil
}

// ensureUser gives an image the user that SDKs expect.
const ensureUser = `grep -q '^user:' /etc/passwd || {
  echo 'user:x:1000:1000::/home/user:/bin/sh' >>/etc/passwd
  grep -q '^user:' /etc/group || echo 'user:x:1000:' >>/etc/group
}
mkdir -p /home/user && chown 1000:1000 /home/user`

// from returns the host's name of what the build starts from.
func (c *construction) from(ctx context.Context) (string, error) {
	c.workdir, c.user = "/home/user", "user"
	if c.plan.FromTemplate != "" {
		t, err := c.s.library.resolve(c.owner, c.plan.FromTemplate)
		if err != nil {
			return "", err
		}
		maps.Copy(c.env, t.Env)
		c.base = t.Base
		c.workdir, c.user = orDefault(t.Workdir, c.workdir), orDefault(t.User, c.user)
		c.say("info", "[base] FROM template "+c.plan.FromTemplate)
		return t.Image, nil
	}
	c.say("info", "[base] FROM "+c.plan.FromImage)
	if isBaseImage(c.plan.FromImage) {
		return baseTemplate, nil
	}
	source := ImageSource{Reference: c.plan.FromImage, Dial: c.s.dialRegistry}
	if c.plan.Registry != nil {
		source.Username, source.Password = c.plan.Registry.Username, c.plan.Registry.Password
	}
	name, env, err := c.s.host.ImportImage(ctx, source)
	if err != nil {
		return "", err
	}
	maps.Copy(c.env, env)
	c.base = name
	return name, nil
}

// open starts the sandbox in which the build runs. It counts as one of the
// owner's but is in no list.
func (c *construction) open(ctx context.Context, image string) error {
	release, err := c.s.reserve(c.owner, 1)
	if err != nil {
		return err
	}
	defer release()
	rec := record{
		ID: newSandboxID(), Owner: c.owner, Template: c.template, Image: image, Timeout: buildTimeout, Build: true,
		CPU: c.s.cfg.CPU, MemoryMB: c.s.cfg.MemoryMB, DiskMB: c.s.cfg.DiskMB, Workdir: c.workdir, User: "root", Env: c.env,
	}
	if c.build.CPU > 0 {
		rec.CPU = c.build.CPU
	}
	if c.build.MemoryMB > 0 {
		rec.MemoryMB = c.build.MemoryMB
	}
	c.box, err = c.s.start(ctx, rec)
	return err
}

// startUp runs the start command and waits until the ready command succeeds.
func (c *construction) startUp(ctx context.Context) error {
	if c.plan.StartCmd != "" {
		c.say("info", "[finalize] Starting: "+c.plan.StartCmd)
		start := command{user: c.user, cwd: c.workdir, env: c.env, line: c.plan.StartCmd, keep: true}
		if _, err := c.s.exec(ctx, c.box, start, func(bool, []byte) {}); err != nil {
			return fmt.Errorf("start command: %w", err)
		}
		if c.plan.ReadyCmd == "" {
			return pauseFor(ctx, startPause)
		}
	}
	if c.plan.ReadyCmd == "" {
		return nil
	}
	c.say("info", "[finalize] Waiting for: "+c.plan.ReadyCmd)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		ready := command{user: c.user, cwd: c.workdir, env: c.env, line: c.plan.ReadyCmd}
		exit, err := c.s.exec(ctx, c.box, ready, func(bool, []byte) {})
		if err == nil && exit == 0 {
			return nil
		}
		if err := pauseFor(ctx, readyPause); err != nil {
			return squad.Errorf(squad.CodeTimeout, "The ready command did not succeed within %s", readyTimeout)
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shell runs a command of the build and logs its output by line.
func (c *construction) shell(ctx context.Context, user, cwd, line string) error {
	partial := map[bool][]byte{}
	exit, err := c.s.exec(ctx, c.box, command{user: user, cwd: cwd, env: c.env, line: line}, func(stderr bool, data []byte) {
		buf := append(partial[stderr], data...)
		for {
			i := bytes.IndexByte(buf, '\n')
			if i < 0 && len(buf) < maxLogLine {
				break
			}
			if i < 0 {
				i = len(buf) - 1
			}
			c.output(stderr, string(buf[:i+1]))
			buf = buf[i+1:]
		}
		partial[stderr] = slices.Clone(buf)
	})
	for _, stderr := range []bool{false, true} {
		if len(partial[stderr]) > 0 {
			c.output(stderr, string(partial[stderr]))
		}
	}
	if err != nil {
		return err
	}
	if exit != 0 {
		return fmt.Errorf("failed to run command '%.200s': exit status %d", line, exit)
	}
	return nil
}

func (c *construction) output(stderr bool, line string) {
	level, stream := "info", "stdout"
	if stderr {
		level, stream = "warn", "stderr"
	}
	c.say(level, fmt.Sprintf("[builder %s] [%s]: %s", c.step, stream, strings.TrimRight(line, "\r\n")))
}

// say adds a line to the log of the build.
func (c *construction) say(level, message string) {
	if len(message) > maxLogLine {
		message = message[:maxLogLine]
	}
	entry := buildLog{Timestamp: c.s.cfg.Now().UTC(), Level: level, Message: strings.ToValidUTF8(message, "?"), Step: c.step}
	_ = c.s.library.withBuild(c.owner, c.template, c.build.ID, func(_ *template, b *build) error {
		if len(b.Logs) < maxBuildLogs || level == "error" {
			b.Logs = append(b.Logs, entry)
		}
		return nil
	})
}
