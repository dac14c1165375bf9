package sandbox

import (
	"context"
	"errors"
	"time"

	"agentsquad/e2b"
)

// shell is a terminal whose Close ends the shell, which e2b's leaves running.
type shell struct{ *e2b.Terminal }

// shellEnd bounds the last words to a shell.
const shellEnd = 5 * time.Second

func (t shell) Resize(cols, rows int) error {
	ctx, cancel := context.WithTimeout(context.Background(), shellEnd)
	defer cancel()
	return t.Terminal.Resize(ctx, e2b.Size{Cols: cols, Rows: rows})
}

func (t shell) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shellEnd)
	defer cancel()
	err := t.Kill(ctx)
	if errors.Is(err, e2b.ErrSandboxGone) {
		err = nil
	}
	return errors.Join(err, t.Terminal.Close())
}
