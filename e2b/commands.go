package e2b

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"

	pb "agentsquad/internal/envdpb/process"
)

// Commands runs programs in a sandbox.
type Commands struct{ sb *Sandbox }

// CommandOptions say how a command runs. The zero value runs it as the
// sandbox's default user in its home, without input, collecting its output.
type CommandOptions struct {
	// Args, if not nil, makes the command a program that is run as it is with
	// these arguments. Without Args the command is a line for bash.
	Args []string
	// Env is added to the environment of the sandbox.
	Env map[string]string
	// Dir is the working directory.
	Dir string
	// User that runs it.
	User string
	// Timeout ends the command after this time, on the sandbox's side, with
	// [ErrTimeout]. 0 is no limit (the official SDKs limit to 60 s).
	Timeout time.Duration
	// Stdin is copied to the command, then its input is closed.
	Stdin io.Reader
	// OpenStdin leaves the input open for [Process.Write], where Stdin is nil.
	OpenStdin bool
	// Stdout and Stderr get the output as it comes; nil collects it. A writer
	// that blocks holds up the stream, not the memory.
	Stdout, Stderr io.Writer
	// MaxOutput bounds what is collected of each stream to its last bytes. 0 is
	// all of it.
	MaxOutput int
	// Tag is a name by which the process can be found in [Commands.List].
	Tag string
}

// Result is how a command ended.
type Result struct {
	ExitCode int
	// Stdout and Stderr are what was collected, where no writer got it.
	Stdout, Stderr string
	// Truncated says that the beginning of the output was dropped (MaxOutput).
	Truncated bool
}

// Run runs a command to its end. An exit code other than 0 gives the result and
// a [*CommandExitError]. When ctx ends first, the command is killed.
func (c *Commands) Run(ctx context.Context, cmd string, opts CommandOptions) (*Result, error) {
	p, err := c.Start(ctx, cmd, opts)
	if err != nil {
		return nil, err
	}
	res, err := p.Wait()
	if ctx.Err() != nil && !errors.As(err, new(*CommandExitError)) && err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = p.Kill(end)
	}
	return res, err
}

// Start begins a command and returns when it runs. ctx bounds the stream of its
// output: when ctx ends, the stream is cut and the command goes on, to be found
// again by [Commands.Connect].
func (c *Commands) Start(ctx context.Context, cmd string, opts CommandOptions) (*Process, error) {
	stdin := opts.Stdin != nil || opts.OpenStdin
	req := &pb.StartRequest{Process: config(cmd, opts), Stdin: &stdin}
	if opts.Tag != "" {
		req.Tag = &opts.Tag
	}
	return c.sb.start(ctx, req, opts)
}

func config(cmd string, opts CommandOptions) *pb.ProcessConfig {
	conf := &pb.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", cmd}, Envs: opts.Env}
	if opts.Args != nil {
		conf.Cmd, conf.Args = cmd, opts.Args
	}
	if opts.Dir != "" {
		conf.Cwd = &opts.Dir
	}
	return conf
}

// Connect joins a process that runs, or that ended in the last 30 seconds.
// Output from before is not repeated. Only Stdout, Stderr, MaxOutput and User
// of the options count.
func (c *Commands) Connect(ctx context.Context, pid uint32, opts CommandOptions) (*Process, error) {
	return c.sb.join(ctx, selectPID(pid), opts)
}

// ConnectTag is [Commands.Connect] by the tag the process was started with.
func (c *Commands) ConnectTag(ctx context.Context, tag string, opts CommandOptions) (*Process, error) {
	return c.sb.join(ctx, &pb.ProcessSelector{Selector: &pb.ProcessSelector_Tag{Tag: tag}}, opts)
}

// ProcessInfo describes a running process.
type ProcessInfo struct {
	PID  uint32
	Tag  string
	Cmd  string
	Args []string
	Env  map[string]string
	Dir  string
}

// List returns the processes that were started through the daemon and run.
func (c *Commands) List(ctx context.Context) ([]ProcessInfo, error) {
	ctx, cancel := c.sb.bounded(ctx)
	defer cancel()
	resp, err := c.sb.process.List(ctx, connect.NewRequest(&pb.ListRequest{}))
	if err != nil {
		return nil, rpcError("list processes", err)
	}
	infos := make([]ProcessInfo, 0, len(resp.Msg.Processes))
	for _, p := range resp.Msg.Processes {
		infos = append(infos, ProcessInfo{
			PID: p.Pid, Tag: p.GetTag(), Cmd: p.Config.GetCmd(), Args: p.Config.GetArgs(),
			Env: p.Config.GetEnvs(), Dir: p.Config.GetCwd(),
		})
	}
	return infos, nil
}

// Signal that the daemon can send.
type Signal int

// The signals of the protocol.
const (
	SIGTERM Signal = 15
	SIGKILL Signal = 9
)

// Signal sends a signal to a process. [ErrNotFound] says there is none.
func (c *Commands) Signal(ctx context.Context, pid uint32, sig Signal) error {
	ctx, cancel := c.sb.bounded(ctx)
	defer cancel()
	_, err := c.sb.process.SendSignal(ctx, connect.NewRequest(&pb.SendSignalRequest{Process: selectPID(pid), Signal: pb.Signal(sig)}))
	return rpcError("signal process", err)
}

// Kill ends a process and reports whether there was one.
func (c *Commands) Kill(ctx context.Context, pid uint32) (bool, error) {
	err := c.Signal(ctx, pid, SIGKILL)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// SendStdin writes to the input of a process that was started with it open.
func (c *Commands) SendStdin(ctx context.Context, pid uint32, data []byte) error {
	return c.sb.input(ctx, pid, &pb.ProcessInput{Input: &pb.ProcessInput_Stdin{Stdin: data}})
}

// CloseStdin lets the process see the end of its input.
func (c *Commands) CloseStdin(ctx context.Context, pid uint32) error {
	if !c.sb.atLeast("0.5.2") {
		return &Error{Op: "close stdin", Kind: ErrInvalid, Message: "the template's daemon is older than 0.5.2: rebuild the template"}
	}
	ctx, cancel := c.sb.bounded(ctx)
	defer cancel()
	_, err := c.sb.process.CloseStdin(ctx, connect.NewRequest(&pb.CloseStdinRequest{Process: selectPID(pid)}))
	return rpcError("close stdin", err)
}

func (s *Sandbox) input(ctx context.Context, pid uint32, in *pb.ProcessInput) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	_, err := s.process.SendInput(ctx, connect.NewRequest(&pb.SendInputRequest{Process: selectPID(pid), Input: in}))
	return rpcError("send input", err)
}

func selectPID(pid uint32) *pb.ProcessSelector {
	return &pb.ProcessSelector{Selector: &pb.ProcessSelector_Pid{Pid: pid}}
}

// asUser names the user to the daemon. Daemons before 0.4.0 have no default.
func asUser[T any](s *Sandbox, req *connect.Request[T], user string) *connect.Request[T] {
	if user == "" && !s.atLeast("0.4.0") {
		user = "user"
	}
	if user != "" {
		req.Header().Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":")))
	}
	return req
}
