package e2b

import (
	"context"
	"io"
	"maps"
	"time"

	"connectrpc.com/connect"

	pb "agentsquad/internal/envdpb/process"
)

// Pty runs programs on a terminal.
type Pty struct{ sb *Sandbox }

// Size of a terminal in characters.
type Size struct{ Cols, Rows int }

// PtyOptions say what runs on the terminal. The zero value is an interactive
// login shell of 80 by 24.
type PtyOptions struct {
	Size Size
	// Cmd and Args, where set, run instead of the shell.
	Cmd  string
	Args []string
	Env  map[string]string
	Dir  string
	User string
	// Timeout ends the program after this time; 0 is no limit.
	Timeout time.Duration
	// Tag is a name by which the process can be found in [Commands.List].
	Tag string
}

// Terminal is a running terminal: reads are what the screen gets, writes are
// what is typed. Reads end with io.EOF when the program ends.
type Terminal struct {
	*Process
	screen *io.PipeReader
}

// Start opens a terminal. ctx bounds its stream as in [Commands.Start].
func (p *Pty) Start(ctx context.Context, opts PtyOptions) (*Terminal, error) {
	env := map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
	maps.Copy(env, opts.Env)
	if opts.Cmd == "" {
		opts.Cmd, opts.Args = "/bin/bash", []string{"-i", "-l"}
	}
	if opts.Args == nil {
		opts.Args = []string{}
	}
	common := CommandOptions{Args: opts.Args, Env: env, Dir: opts.Dir, User: opts.User, Timeout: opts.Timeout}
	req := &pb.StartRequest{Process: config(opts.Cmd, common), Pty: size(opts.Size)}
	if opts.Tag != "" {
		req.Tag = &opts.Tag
	}
	return terminal(func(w io.Writer) (*Process, error) {
		common.Stdout = w
		return p.sb.start(ctx, req, common)
	})
}

// Connect joins a terminal that is open.
func (p *Pty) Connect(ctx context.Context, pid uint32) (*Terminal, error) {
	return terminal(func(w io.Writer) (*Process, error) {
		return p.sb.join(ctx, selectPID(pid), CommandOptions{Stdout: w})
	})
}

func terminal(open func(io.Writer) (*Process, error)) (*Terminal, error) {
	r, w := io.Pipe()
	proc, err := open(w)
	if err != nil {
		return nil, err
	}
	go func() {
		<-proc.done
		if proc.failure == nil || proc.result.ExitCode >= 0 {
			w.Close()
			return
		}
		w.CloseWithError(proc.failure)
	}()
	return &Terminal{Process: proc, screen: r}, nil
}

// Read reads what the program wrote to the screen.
func (t *Terminal) Read(b []byte) (int, error) { return t.screen.Read(b) }

// Write types into the terminal.
func (t *Terminal) Write(b []byte) (int, error) {
	if err := t.sb.input(t.ctx, t.pid, &pb.ProcessInput{Input: &pb.ProcessInput_Pty{Pty: b}}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Resize tells the program the new size.
func (t *Terminal) Resize(ctx context.Context, to Size) error {
	ctx, cancel := t.sb.bounded(ctx)
	defer cancel()
	_, err := t.sb.process.Update(ctx, connect.NewRequest(&pb.UpdateRequest{Process: selectPID(t.pid), Pty: size(to)}))
	return rpcError("resize terminal", err)
}

// Close leaves the terminal; the program goes on until it is killed or its
// sandbox ends. Use Kill to end it.
func (t *Terminal) Close() error {
	t.screen.Close()
	return t.Process.Close()
}

func size(s Size) *pb.PTY {
	if s.Cols <= 0 || s.Rows <= 0 {
		s = Size{Cols: 80, Rows: 24}
	}
	return &pb.PTY{Size: &pb.PTY_Size{Cols: uint32(s.Cols), Rows: uint32(s.Rows)}}
}
