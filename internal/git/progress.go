package git

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
)

// Progress is one step of git's own progress report.
type Progress struct {
	Phase   string // for example "Receiving objects"
	Percent int
	Done    int64
	Total   int64
}

type progressKey struct{}

// WithProgress has what is fetched or forwarded upstream under a context tell how far
// it is. Who waits for another's fetch hears nothing.
func WithProgress(ctx context.Context, tell func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// ProgressOf is who listens under a context, nil for nobody.
func ProgressOf(ctx context.Context) func(Progress) {
	tell, _ := ctx.Value(progressKey{}).(func(Progress))
	return tell
}

var progressLine = regexp.MustCompile(`^(?:remote: )?([A-Z][A-Za-z ]{2,40}):\s+(\d{1,3})% \((\d+)/(\d+)\)`)

// ParseProgress reads one line of git's standard error.
func ParseProgress(line string) (Progress, bool) {
	m := progressLine.FindStringSubmatch(line)
	if m == nil {
		return Progress{}, false
	}
	percent, err := strconv.Atoi(m[2])
	done, errDone := strconv.ParseInt(m[3], 10, 64)
	total, errTotal := strconv.ParseInt(m[4], 10, 64)
	if err != nil || errDone != nil || errTotal != nil || percent > 100 {
		return Progress{}, false
	}
	return Progress{Phase: m[1], Percent: percent, Done: done, Total: total}, true
}

// progressFeed cuts standard error into lines and reports each change of phase or
// percent once.
type progressFeed struct {
	line []byte
	last Progress
	tell func(Progress)
}

func (f *progressFeed) write(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			if len(f.line) < 4096 {
				f.line = append(f.line, b...)
			}
			return
		}
		f.line = append(f.line, b[:i]...)
		if p, ok := ParseProgress(string(f.line)); ok && (p.Phase != f.last.Phase || p.Percent != f.last.Percent) {
			f.last = p
			f.tell(p)
		}
		f.line = f.line[:0]
		b = b[i+1:]
	}
}

// tail keeps the last bytes of a stream.
type tail struct {
	max   int
	bytes []byte
	cut   bool
}

func (t *tail) write(b []byte) {
	t.bytes = append(t.bytes, b...)
	if over := len(t.bytes) - t.max; over > 0 {
		t.cut = true
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
}

// String returns the kept text with progress lines that were overwritten on the
// terminal left out, and without the part of a line that the cut began in.
func (t *tail) String() string {
	b := t.bytes
	if t.cut {
		if i := bytes.IndexByte(b, '\n'); i >= 0 && i < len(b)-1 {
			b = b[i+1:]
		}
	}
	lines := bytes.Split(b, []byte{'\n'})
	for i, line := range lines {
		line = bytes.TrimRight(line, "\r ")
		if j := bytes.LastIndexByte(line, '\r'); j >= 0 {
			line = line[j+1:]
		}
		lines[i] = line
	}
	return string(bytes.ToValidUTF8(bytes.TrimSpace(bytes.Join(lines, []byte{'\n'})), []byte("?")))
}
