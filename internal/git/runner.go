package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Config describes a [Runner]. All fields have defaults.
type Config struct {
	Exec    Exec          // where git runs; default [Host]
	Program string        // default "git"
	Timeout time.Duration // bound of a call that sets none; default 2 minutes
	Retry   Retry         // of calls over the network
	// AllowFile lets git read repositories by path. It is for the host's own
	// bookkeeping, never for addresses from outside.
	AllowFile bool
	Log       *slog.Logger
}

// Runner runs git. It is safe for concurrent use and holds no state of a
// repository.
type Runner struct{ cfg Config }

// New makes a runner.
func New(cfg Config) *Runner {
	if cfg.Exec == nil {
		cfg.Exec = Host{}
	}
	if cfg.Program == "" {
		cfg.Program = "git"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Minute
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Retry = cfg.Retry.withDefaults()
	return &Runner{cfg: cfg}
}

// Call is one git command. Args begin with the subcommand; whatever comes from
// outside stands behind "--" or was validated.
type Call struct {
	Dir      string
	Args     []string
	Config   []string // further "key=value" settings, never secrets
	Env      []string
	Stdin    io.Reader
	Auth     Auth
	Progress func(Progress)
	Timeout  time.Duration
	// Stdout receives standard output as it comes; where nil it is collected, up
	// to MaxOutput bytes (default 16 MiB), beyond which the call fails.
	Stdout    io.Writer
	MaxOutput int
	// Accept lists exit codes besides 0 that are no failure.
	Accept []int
}

// Result is what a command answered.
type Result struct {
	Stdout   []byte
	Stderr   string // bounded tail without credentials
	ExitCode int
	Duration time.Duration
}

const maxStderr = 8 << 10

var errTooMuch = errors.New("output is larger than allowed")

// settings hold for every call: nothing of the repository or the machine may
// start a program, ask a question or change the form of the output.
func settings(dir string) []string {
	list := []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "credential.helper=", "core.askPass=",
		"core.quotePath=false", "core.pager=cat", "color.ui=false", "advice.detachedHead=false", "gc.auto=0", "maintenance.auto=false",
		"protocol.version=2", "submodule.recurse=false", "commit.gpgSign=false", "tag.gpgSign=false", "init.defaultBranch=main",
		"core.untrackedCache=false", "fetch.writeCommitGraph=false", "rerere.enabled=false", "core.editor=true",
	}
	if dir != "" {
		list = append(list, "safe.directory="+dir)
	}
	return list
}

func (r *Runner) argv(c Call) []string {
	argv := []string{r.cfg.Program}
	for _, s := range settings(c.Dir) {
		argv = append(argv, "-c", s)
	}
	for _, s := range c.Config {
		argv = append(argv, "-c", s)
	}
	return append(argv, c.Args...)
}

func (r *Runner) env(c Call) []string {
	protocols := "http:https"
	if r.cfg.AllowFile {
		protocols += ":file"
	}
	env := []string{
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=true", "LC_ALL=C.UTF-8", "GIT_ALLOW_PROTOCOL=" + protocols,
		"GIT_LFS_SKIP_SMUDGE=1",
	}
	return append(append(env, c.Auth.env()...), c.Env...)
}

// Run runs one git command. A failure is an [*Error].
func (r *Runner) Run(ctx context.Context, c Call) (Result, error) {
	if len(c.Args) == 0 {
		return Result{}, errors.New("run git: no subcommand")
	}
	if !c.Auth.Helper || c.Auth.Secret == "" {
		return r.run(ctx, c.Args[0], r.argv(c), c)
	}
	if c.Stdin != nil || strings.ContainsAny(c.Auth.user()+c.Auth.Secret, "\n\x00") {
		return Result{}, errors.New("run git: a credential helper needs the input for itself, and a secret of one line")
	}
	c.Stdin = strings.NewReader(c.Auth.user() + "\n" + c.Auth.Secret + "\n")
	c.Config = append(slices.Clone(c.Config), c.Auth.config()...)
	return r.run(ctx, c.Args[0], append([]string{"/bin/sh", "-c", helperScript, "squad-git"}, r.argv(c)...), c)
}

func (r *Runner) run(ctx context.Context, op string, argv []string, c Call) (Result, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = r.cfg.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	out := &collector{call: c, max: c.MaxOutput, stderr: tail{max: maxStderr}, overflow: func() { stop(errTooMuch) }}
	if out.max == 0 {
		out.max = 16 << 20
	}
	if c.Progress != nil {
		out.progress = &progressFeed{tell: c.Progress}
	}
	start := time.Now()
	code, err := r.cfg.Exec.Run(ctx, Command{Argv: argv, Env: r.env(c), Dir: c.Dir, Stdin: c.Stdin, Output: out.write})
	res := Result{
		Stdout: out.stdout.Bytes(), Stderr: Redact(out.stderr.String(), c.Auth.secrets()...),
		ExitCode: code, Duration: time.Since(start),
	}
	r.cfg.Log.DebugContext(ctx, "git ran", "op", op, "dir", c.Dir, "exit_code", code, "duration_ms", res.Duration.Milliseconds())
	return res, failure(op, c, res, err)
}

func failure(op string, c Call, res Result, err error) error {
	if err != nil {
		kind := KindOther
		if errors.Is(err, context.DeadlineExceeded) {
			kind = KindTimeout
		}
		return &Error{Op: op, Kind: kind, ExitCode: res.ExitCode, Stderr: res.Stderr, Err: err}
	}
	if res.ExitCode == 0 {
		return nil
	}
	for _, code := range c.Accept {
		if code == res.ExitCode {
			return nil
		}
	}
	return &Error{Op: op, Kind: classify(res.Stderr), ExitCode: res.ExitCode, Stderr: res.Stderr}
}

// Line runs a command and returns its standard output without the last newline.
func (r *Runner) Line(ctx context.Context, dir string, args ...string) (string, error) {
	res, err := r.Run(ctx, Call{Dir: dir, Args: args})
	return string(bytes.TrimRight(res.Stdout, "\n")), err
}

// Resolve returns the commit that a revision names; an unknown one is an [*Error]
// of [KindNotFound].
func (r *Runner) Resolve(ctx context.Context, dir, revision string) (string, error) {
	if err := checkRevision("revision", revision); err != nil {
		return "", err
	}
	res, err := r.Run(ctx, Call{Dir: dir, Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"}, Accept: []int{1, 128}})
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", revision, err)
	}
	if res.ExitCode != 0 {
		return "", &Error{Op: "rev-parse", Kind: KindNotFound, ExitCode: res.ExitCode, Stderr: fmt.Sprintf("%s does not exist", revision)}
	}
	return string(bytes.TrimSpace(res.Stdout)), nil
}

// collector takes a command's output apart.
type collector struct {
	call     Call
	max      int
	stdout   bytes.Buffer
	stderr   tail
	progress *progressFeed
	overflow func()
}

func (o *collector) write(s Stream, b []byte) {
	switch {
	case s == Stderr:
		o.stderr.write(b)
		if o.progress != nil {
			o.progress.write(b)
		}
	case o.call.Stdout != nil:
		if _, err := o.call.Stdout.Write(b); err != nil {
			o.overflow()
		}
	case o.stdout.Len()+len(b) > o.max:
		o.overflow()
	default:
		o.stdout.Write(b)
	}
}
