package event

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	squad "agentsquad"
	"agentsquad/internal/store"
)

// Archive keeps the events of executions that the database no longer has, as
// compressed JSON lines. Each pass writes a file of its own, named by execution and
// first number, whole or not at all; what a crash made it write twice is read once.
type Archive struct{ dir string }

// NewArchive keeps its files in a folder, which is made with the first of them.
func NewArchive(dir string) *Archive { return &Archive{dir: dir} }

var archiveName = regexp.MustCompile(`^[0-9a-zA-Z-]{1,64}$`)

const archiveForm = ".jsonl.gz"

// Keep adds events to the files of their executions; those of none are left out.
func (a *Archive) Keep(events []squad.Event) error {
	byExecution := map[string][]squad.Event{}
	for _, e := range events {
		if archiveName.MatchString(e.ExecutionID) {
			byExecution[e.ExecutionID] = append(byExecution[e.ExecutionID], e)
		}
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fmt.Errorf("make archive: %w", err)
	}
	for id, list := range byExecution {
		if err := a.write(fmt.Sprintf("%s.%020d%s", id, list[0].Seq, archiveForm), list); err != nil {
			return fmt.Errorf("archive events of %s: %w", id, err)
		}
	}
	return nil
}

func (a *Archive) write(name string, events []squad.Event) error {
	f, err := os.CreateTemp(a.dir, ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after a success it has another name
	z := gzip.NewWriter(f)
	lines := json.NewEncoder(z)
	for _, e := range events {
		err = errors.Join(err, lines.Encode(e))
	}
	if err = errors.Join(err, z.Close(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(a.dir, name))
}

// Events reads what is kept of an execution and passes the filter, in order.
func (a *Archive) Events(ctx context.Context, f store.EventFilter) (out []squad.Event, err error) {
	if !archiveName.MatchString(f.ExecutionID) {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(a.dir, f.ExecutionID+".*"+archiveForm)) // sorted
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if out, err = appendFile(ctx, out, name, &f); err != nil {
			return nil, fmt.Errorf("read archive %s: %w", filepath.Base(name), err)
		}
		if f.Limit > 0 && len(out) >= f.Limit {
			return out[:f.Limit], nil
		}
	}
	return out, nil
}

// appendFile adds what passes of one file, and moves the filter's After on.
func appendFile(ctx context.Context, out []squad.Event, name string, f *store.EventFilter) ([]squad.Event, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	for lines := json.NewDecoder(z); ; {
		var e squad.Event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if e.Seq > f.After && f.Match(&e) {
			out = append(out, e)
		}
		f.After = max(f.After, e.Seq)
	}
}

// Stored reads stored events, archived ones of an execution included.
func (l *Log) Stored(ctx context.Context, f store.EventFilter) ([]squad.Event, error) {
	if l.archive == nil || f.ExecutionID == "" {
		return l.store.Events(ctx, f)
	}
	if f.Limit <= 0 {
		f.Limit = 1000
	}
	old, err := l.archive.Events(ctx, f)
	if err != nil || len(old) == f.Limit {
		return old, err
	}
	f.Limit -= len(old)
	if len(old) > 0 {
		f.After = old[len(old)-1].Seq
	}
	fresh, err := l.store.Events(ctx, f)
	return append(old, fresh...), err
}

// pruneBatch is how many events go to the archive at a time.
const pruneBatch = 5000

// Prune drops the events that are older than before and not among the newest keep,
// after those of executions went to the archive.
func (l *Log) Prune(ctx context.Context, before time.Time, keep int64) error {
	last, err := l.store.LastSeqBefore(ctx, before, keep)
	if err != nil || last == 0 {
		return err
	}
	for after := int64(0); l.archive != nil && after < last; {
		events, err := l.store.Events(ctx, store.EventFilter{After: after, Limit: pruneBatch})
		if err != nil {
			return err
		}
		for len(events) > 0 && events[len(events)-1].Seq > last {
			events = events[:len(events)-1]
		}
		if len(events) == 0 {
			break
		}
		if err := l.archive.Keep(events); err != nil {
			return err
		}
		after = events[len(events)-1].Seq
	}
	return l.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteEventsTo(ctx, last) })
}
