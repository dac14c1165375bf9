package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/client"
)

func newSandboxCopy(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "cp FROM TO", Short: "Copy a file into or out of a sandbox", Args: exactly(2),
		Example: `  squad sandbox cp notes.txt 0192…:/home/user/
  squad sandbox cp 0192…:/home/user/out.tar .`,
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			fromID, from := splitPlace(args[0])
			toID, to := splitPlace(args[1])
			switch {
			case fromID == "" && toID != "":
				return copyIn(ctx, e, c, from, toID, to)
			case fromID != "" && toID == "":
				return copyOut(ctx, e, c, fromID, from, to)
			default:
				return usageError{errors.New("one of the two is SANDBOX:PATH, the other a file of this machine")}
			}
		}),
	}
}

// splitPlace tells SANDBOX:PATH from a plain path, which may be written ./a:b.
func splitPlace(s string) (id, name string) {
	before, after, found := strings.Cut(s, ":")
	if !found || strings.ContainsAny(before, "/.\\") || before == "" {
		return "", s
	}
	return before, after
}

func copyIn(ctx context.Context, e *env, c *client.Client, from, id, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return squad.Invalid("", "%s is a directory; pack it first, for example with tar", from)
	}
	if to == "" || strings.HasSuffix(to, "/") {
		to = path.Join(to, filepath.Base(from))
	}
	bar := newBar(e, filepath.Base(from), info.Size())
	file, err := c.Upload(ctx, id, to, io.TeeReader(f, bar))
	bar.end()
	if err != nil {
		return err
	}
	return e.done(file, "%s (%s)", file.Path, bytesText(file.Size))
}

func copyOut(ctx context.Context, e *env, c *client.Client, id, from, to string) error {
	if info, err := os.Stat(to); err == nil && info.IsDir() || strings.HasSuffix(to, "/") {
		to = filepath.Join(to, path.Base(from))
	}
	r, size, err := c.Download(ctx, id, from)
	if err != nil {
		return err
	}
	defer r.Close()
	tmp, err := os.CreateTemp(filepath.Dir(to), ".squad-cp-*")
	if err != nil {
		return err
	}
	bar := newBar(e, path.Base(from), size)
	n, err := io.Copy(io.MultiWriter(tmp, bar), r)
	bar.end()
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), to)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return err
	}
	return e.done(map[string]any{"path": to, "size": n}, "%s (%s)", to, bytesText(n))
}

// bar shows progress on a terminal, for files that take a moment.
type bar struct {
	e           *env
	name        string
	done, total int64
	shown       time.Time
	visible     bool
}

const barFrom = 4 << 20

func newBar(e *env, name string, total int64) *bar {
	return &bar{e: e, name: name, total: total, visible: e.live() && (total < 0 || total >= barFrom)}
}

// Write counts what passes.
func (b *bar) Write(p []byte) (int, error) {
	b.done += int64(len(p))
	if b.visible && time.Since(b.shown) > 100*time.Millisecond {
		b.shown = time.Now()
		b.draw()
	}
	return len(p), nil
}

func (b *bar) draw() {
	if b.total <= 0 {
		fmt.Fprintf(b.e.err, "\r\x1b[K%s  %s", b.name, bytesText(b.done))
		return
	}
	const width = 30
	full := int(width * min(b.done, b.total) / b.total)
	fmt.Fprintf(b.e.err, "\r\x1b[K%s  [%s%s] %d%%  %s of %s", b.name, strings.Repeat("█", full), strings.Repeat("░", width-full),
		100*b.done/b.total, bytesText(b.done), bytesText(b.total))
}

func (b *bar) end() {
	if b.visible {
		fmt.Fprint(b.e.err, "\r\x1b[K")
	}
}
