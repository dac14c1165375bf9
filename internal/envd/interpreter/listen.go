package interpreter

import (
	"bufio"
	"encoding/json"
	"os"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

const maxEvent = 64 << 20 // one line of the driver; a picture, at most

// event is something an interpreter did.
type event struct {
	kind string // stdout, stderr, end, bye, or what the driver said
	text string
	raw  json.RawMessage
}

// last says whether the snippet is over.
func (e event) last() bool { return e.kind == "end" || e.kind == "bye" }

// message is the event as callers see it.
func (e event) message() any {
	if e.raw != nil {
		return e.raw
	}
	return map[string]any{"type": e.kind, "text": e.text, "timestamp": time.Now().UnixNano()}
}

// output is one of the code's own streams. It is read under a lock, so that
// the end of a snippet can be told after all that was written before it.
type output struct {
	session *session
	kind    string
	file    *os.File

	mu   sync.Mutex
	part []byte // an unfinished character
}

// listen starts the readers of a session.
func (s *session) listen(stdout, stderr, words *os.File) {
	outputs := []*output{{session: s, kind: "stdout", file: stdout}, {session: s, kind: "stderr", file: stderr}}
	var readers sync.WaitGroup
	for _, o := range outputs {
		readers.Go(o.read)
	}
	readers.Go(func() { s.readWords(words, outputs) })
	go func() {
		readers.Wait()
		close(s.silent)
	}()
}

func (o *output) read() {
	defer o.file.Close()
	raw, err := o.file.SyscallConn()
	if err != nil {
		return
	}
	for more := true; more; {
		err := raw.Read(func(fd uintptr) bool {
			var again bool
			again, more = o.take(int(fd))
			return !again
		})
		if err != nil {
			return
		}
	}
}

// take reads what is there and passes it on. again says that there was nothing,
// more that there may be something later.
func (o *output) take(fd int) (again, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	buf := make([]byte, 32<<10)
	n, err := syscall.Read(fd, buf)
	switch {
	case err == syscall.EAGAIN, err == syscall.EINTR:
		return true, true
	case err != nil || n <= 0:
		return false, false
	}
	text := append(o.part, buf[:n]...)
	cut := completeUTF8(text)
	o.part = append([]byte(nil), text[cut:]...)
	if cut > 0 && !o.session.emit(event{kind: o.kind, text: string(text[:cut])}) {
		return false, false
	}
	return false, true
}

// drain passes on all that was written so far.
func (o *output) drain() {
	raw, err := o.file.SyscallConn()
	if err != nil {
		return
	}
	for more := true; more; {
		err := raw.Control(func(fd uintptr) {
			again, later := o.take(int(fd))
			more = !again && later
		})
		if err != nil {
			return
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.part) > 0 {
		o.session.emit(event{kind: o.kind, text: string(o.part)})
		o.part = nil
	}
}

// completeUTF8 returns how much of b ends with a whole character.
func completeUTF8(b []byte) int {
	for back := 1; back <= utf8.UTFMax && back <= len(b); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}

// readWords reads what the driver says, one JSON object per line.
func (s *session) readWords(words *os.File, outputs []*output) {
	defer words.Close()
	lines := bufio.NewScanner(words)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	for lines.Scan() {
		var said struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(lines.Bytes(), &said) != nil || said.Type == "" {
			continue
		}
		for _, o := range outputs {
			o.drain()
		}
		e := event{kind: said.Type}
		if !e.last() {
			e.raw = append(json.RawMessage(nil), lines.Bytes()...)
		}
		if !s.emit(e) {
			return
		}
	}
}
