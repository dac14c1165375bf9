package envd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"agentsquad/internal/envdpb/process"
)

// command is a validated request to start something.
type command struct {
	config *process.ProcessConfig
	tag    *string
	stdin  bool
	size   *process.PTY_Size // nil without a terminal
	who    *account
	cwd    string
	env    []string
}

// launch starts the command with one reader attached, so that no output is
// lost. over is called when the command has ended and been read.
func (s *spawner) launch(c command, over func(*running)) (*running, *reader, error) {
	r := &running{tag: c.tag, config: c.config, mark: rand.Text(), done: make(chan struct{})}
	r.over = func() { over(r) }
	env := append(c.env, markName+"="+r.mark)
	path, err := lookPath(c.config.GetCmd(), env)
	if err != nil {
		return nil, nil, err
	}
	fds := &wiring{}
	defer fds.closeChild()
	attr := &syscall.ProcAttr{Dir: c.cwd, Env: env, Sys: &syscall.SysProcAttr{Setsid: true, Credential: c.who.credential()}}
	if c.size != nil {
		err = fds.terminal(c.size, c.who)
		attr.Sys.Setctty = true
	} else {
		err = fds.pipes(c.stdin)
	}
	if err != nil {
		fds.closeOurs()
		return nil, nil, fmt.Errorf("prepare input and output: %w", err)
	}
	attr.Files = fds.child[:]
	r.pty, r.input = fds.pty, fds.input
	r.left.Store(int32(1 + len(fds.outputs())))
	sub := r.attach()
	argv := append([]string{c.config.GetCmd()}, c.config.GetArgs()...)
	started := make(chan struct{})
	r.pid, err = s.start(path, argv, attr, func(pid int, ws syscall.WaitStatus) {
		<-started
		r.exited(ws)
	})
	if err != nil {
		fds.closeOurs()
		return nil, nil, err
	}
	close(started)
	if r.pty != nil {
		go r.pump(r.pty, ptyChunk, ptyEvent)
	} else {
		go r.pump(fds.stdout, pipeChunk, stdoutEvent)
		go r.pump(fds.stderr, pipeChunk, stderrEvent)
	}
	return r, sub, nil
}

// wiring is the descriptors of a child: its own ends, closed here once it
// runs, and ours.
type wiring struct {
	child                      [3]uintptr
	close                      []int
	pty, input, stdout, stderr *os.File
}

func (w *wiring) outputs() []*os.File {
	if w.pty != nil {
		return []*os.File{w.pty}
	}
	return []*os.File{w.stdout, w.stderr}
}

func (w *wiring) pipes(stdin bool) (err error) {
	if stdin {
		w.input, err = w.pipe(0)
	} else {
		var fd int
		fd, err = syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		w.give(0, fd, err)
	}
	if err != nil {
		return err
	}
	if w.stdout, err = w.pipe(1); err != nil {
		return err
	}
	w.stderr, err = w.pipe(2)
	return err
}

func (w *wiring) give(at, fd int, err error) {
	if err == nil {
		w.child[at] = uintptr(fd)
		w.close = append(w.close, fd)
	}
}

// pipe makes the pipe for one of the child's descriptors and returns our end,
// which is polled: a blocked read or write holds no thread.
func (w *wiring) pipe(fd int) (*os.File, error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		return nil, err
	}
	theirs, ours := p[1], p[0]
	if fd == 0 {
		theirs, ours = p[0], p[1]
	}
	w.give(fd, theirs, nil)
	// A larger pipe means fewer turns between writer and reader; the usual one does too.
	_, _ = unix.FcntlInt(uintptr(ours), unix.F_SETPIPE_SZ, pipeSize)
	_ = syscall.SetNonblock(ours, true) // fails on no pipe
	return os.NewFile(uintptr(ours), "pipe"), nil
}

// terminal opens a pseudo terminal by hand: the master must stay polled, or a
// blocked read could never be ended.
func (w *wiring) terminal(size *process.PTY_Size, who *account) error {
	master, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open terminal: %w", err)
	}
	w.pty = os.NewFile(uintptr(master), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return fmt.Errorf("unlock terminal: %w", err)
	}
	number, err := unix.IoctlGetUint32(master, unix.TIOCGPTN)
	if err != nil {
		return fmt.Errorf("name terminal: %w", err)
	}
	name := "/dev/pts/" + strconv.FormatUint(uint64(number), 10)
	fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open terminal: %w", err)
	}
	w.close = append(w.close, fd)
	w.child = [3]uintptr{uintptr(fd), uintptr(fd), uintptr(fd)}
	_ = giveTo(name, who) // so that the user's programs may open it by name
	return resize(w.pty, size)
}

func resize(master *os.File, size *process.PTY_Size) error {
	cols, rows := size.GetCols(), size.GetRows()
	if cols > 65535 || rows > 65535 {
		return errors.New("the terminal size is out of range")
	}
	raw, err := master.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
	})
	return errors.Join(err, failed)
}

func (w *wiring) closeChild() {
	for _, fd := range w.close {
		syscall.Close(fd)
	}
}

func (w *wiring) closeOurs() {
	for _, f := range []*os.File{w.pty, w.input, w.stdout, w.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// environ lays variables over each other; the later map wins. Names that
// cannot be passed are refused.
func environ(layers ...map[string]string) ([]string, error) {
	all := map[string]string{}
	for _, layer := range layers {
		for k, v := range layer {
			if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
				return nil, fmt.Errorf("environment variable %q cannot be passed", k)
			}
			all[k] = v
		}
	}
	env := make([]string, 0, len(all)+1)
	for k, v := range all {
		env = append(env, k+"="+v)
	}
	return env, nil
}
