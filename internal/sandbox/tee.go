package sandbox

import (
	"strings"
	"sync"
	"unicode/utf8"

	squad "agentsquad"
)

// tee hands output on as it comes, in whole characters, and keeps the end of it.
type tee struct {
	stream string
	max    int
	out    func(squad.LogChunk)
	mu     *sync.Mutex

	tail []byte
	rest []byte // the beginning of a character whose end has not come yet
	cut  bool
}

func (t *tee) Write(data []byte) (int, error) {
	t.tail = append(t.tail, data...)
	if len(t.tail) > 2*t.max { // twice, so that each byte is moved once
		t.tail = append(t.tail[:0], t.tail[len(t.tail)-t.max:]...)
		t.cut = true
	}
	if t.out == nil {
		return len(data), nil
	}
	text := append(t.rest, data...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if i := len(text) - back; utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				whole = i
			}
			break
		}
	}
	t.rest = append([]byte(nil), text[whole:]...)
	if whole > 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.out(squad.LogChunk{Stream: t.stream, Text: strings.ToValidUTF8(string(text[:whole]), "\uFFFD")})
	}
	return len(data), nil
}

func (t *tee) text() string {
	if len(t.tail) > t.max {
		t.tail, t.cut = t.tail[len(t.tail)-t.max:], true
	}
	return strings.ToValidUTF8(string(t.tail), "\uFFFD")
}
