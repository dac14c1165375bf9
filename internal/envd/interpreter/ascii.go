package interpreter

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped is JSON with all but ASCII escaped. E2B's SDK decodes each piece of a
// response by itself, and a character cut in two would be lost.
func escaped(data []byte) []byte {
	plain := 0
	for plain < len(data) && data[plain] < utf8.RuneSelf {
		plain++
	}
	if plain == len(data) {
		return data
	}
	out := append(make([]byte, 0, len(data)+len(data)/2), data[:plain]...)
	for i := plain; i < len(data); {
		if data[i] < utf8.RuneSelf {
			out = append(out, data[i])
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		i += size
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		} else {
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
