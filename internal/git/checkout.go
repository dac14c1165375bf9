package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	squad "agentsquad"
)

// Checkouts hands out checkouts and holds their queues: operations on one checkout
// run one after the other, in the order in which they were asked for, whoever
// asks; different checkouts run side by side. The zero value is ready.
type Checkouts struct {
	mu     sync.Mutex
	queues map[string]*queue
}

type queue struct {
	turn  chan struct{} // holds one token while an operation runs
	users int
}

// Checkout is one working tree, in a sandbox or on the host.
type Checkout struct {
	set *Checkouts
	key string
	r   *Runner
	dir string
	// Observe, where set, is told of the start, progress and end of each
	// operation that is worth a row. It must not block.
	Observe func(squad.GitProgress)
	// Remote, where set, tells where a branch of the remote is, "" where it is not:
	// a prepared checkout knows its base only, and would have to fetch to know.
	Remote func(ctx context.Context, branch string) (string, error)
}

// Open returns the checkout in dir of the place that r runs in. Key names that
// place (the sandbox); dir is absolute and comes from configuration. Nothing is
// touched yet.
func (s *Checkouts) Open(r *Runner, key, dir string) (*Checkout, error) {
	if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || strings.ContainsAny(dir, "\x00\n") {
		return nil, squad.Invalid("path", "%q is not a clean absolute path for a checkout", dir)
	}
	return &Checkout{set: s, key: key + "\x00" + dir, r: r, dir: dir}, nil
}

// Dir is the checkout's folder.
func (c *Checkout) Dir() string { return c.dir }

// lock waits for the checkout's turn.
func (c *Checkout) lock(ctx context.Context) (unlock func(), err error) {
	c.set.mu.Lock()
	if c.set.queues == nil {
		c.set.queues = map[string]*queue{}
	}
	q := c.set.queues[c.key]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		c.set.queues[c.key] = q
	}
	q.users++
	c.set.mu.Unlock()
	leave := func() {
		c.set.mu.Lock()
		if q.users--; q.users == 0 {
			delete(c.set.queues, c.key)
		}
		c.set.mu.Unlock()
	}
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("wait for checkout: %w", context.Cause(ctx))
	}
}

// operation is one entry for Observe while it runs.
type operation struct {
	c     *Checkout
	entry squad.GitProgress
	start time.Time

	mu   sync.Mutex
	over bool // what a remote tells after the end is left out
}

// do runs one operation in the checkout's turn and tells the observer. A kind of
// "" is not worth a row.
func (c *Checkout) do(ctx context.Context, kind string, step func(*operation) error) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	op := &operation{c: c, start: time.Now()}
	op.entry.GitOperation = squad.GitOperation{ID: squad.NewID(), Kind: kind, Status: "running", Attempts: 1, CreatedAt: op.start.UTC()}
	op.tell()
	err = step(op)
	op.mu.Lock()
	op.over = true
	op.mu.Unlock()
	op.entry.DurationMS = time.Since(op.start).Milliseconds()
	op.entry.Status = "succeeded"
	if err != nil {
		op.entry.Status = "failed"
		op.entry.OutputTail = Redact(err.Error())
		var g *Error
		if errors.As(err, &g) {
			op.entry.ExitCode = g.ExitCode
			op.entry.OutputTail = g.Stderr
		}
	}
	op.tell()
	return err
}

func (op *operation) tell() {
	if op.c.Observe != nil && op.entry.Kind != "" {
		op.c.Observe(op.entry)
	}
}

func (op *operation) progress(p Progress) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.over {
		return
	}
	op.entry.Phase, op.entry.Percent = p.Phase, p.Percent
	op.entry.DurationMS = time.Since(op.start).Milliseconds()
	op.tell()
}

// net runs a command over the network, with retries and progress.
func (op *operation) net(ctx context.Context, call Call) (Result, error) {
	call.Progress = op.progress
	if call.Timeout == 0 {
		call.Timeout = 15 * time.Minute
	}
	res, attempts, err := op.c.r.RunRetry(ctx, call)
	op.entry.Attempts = max(op.entry.Attempts, attempts)
	op.entry.OutputTail = res.Stderr
	return res, err
}

// git runs a command in the checkout.
func (c *Checkout) git(ctx context.Context, args ...string) (string, error) {
	return c.r.Line(ctx, c.dir, args...)
}

// ok runs a command whose exit code 1 means no.
func (c *Checkout) ok(ctx context.Context, args ...string) (bool, error) {
	res, err := c.r.Run(ctx, Call{Dir: c.dir, Args: args, Accept: []int{1}})
	return err == nil && res.ExitCode == 0, err
}

// program runs another program than git in the same place.
func (c *Checkout) program(ctx context.Context, argv ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.r.cfg.Timeout)
	defer cancel()
	var out bytes.Buffer
	var problem tail
	problem.max = maxStderr
	code, err := c.r.cfg.Exec.Run(ctx, Command{Argv: argv, Dir: "/", Output: func(s Stream, b []byte) {
		if s == Stderr {
			problem.write(b)
		} else if out.Len() < 4<<20 {
			out.Write(b)
		}
	}})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit %d: %s", code, problem.String())
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", argv[0], err)
	}
	return out.Bytes(), nil
}

// Exists says whether the folder holds a checkout of its own.
func (c *Checkout) Exists(ctx context.Context) (bool, error) {
	res, err := c.r.Run(ctx, Call{Args: []string{"rev-parse", "--resolve-git-dir", c.dir + "/.git"}, Config: []string{"safe.directory=" + c.dir}, Accept: []int{1, 128}})
	return err == nil && res.ExitCode == 0, err
}

// Head returns the current commit, "" where there is none yet.
func (c *Checkout) Head(ctx context.Context) (string, error) {
	sha, err := c.r.Resolve(ctx, c.dir, "HEAD")
	if KindOf(err) == KindNotFound {
		return "", nil
	}
	return sha, err
}
