package gateway

import (
	"bytes"
	"errors"
	"strings"

	"agentsquad/internal/git"
)

// ReadPushForTest reads the commands of a push and returns them again as text, and
// how many bytes are left for the pack.
func ReadPushForTest(b []byte) (string, int, error) {
	r := bytes.NewReader(b)
	q, err := readPush(r)
	var out []string
	for _, u := range q.updates {
		out = append(out, u.old+" "+u.sha+" "+u.ref)
	}
	return strings.Join(out, "\n"), r.Len(), err
}

// PacketForTest makes one packet.
func PacketForTest(s string) string { return git.Packet(s) }

// MeterForTest runs a stream through the meter in pieces of n bytes.
func MeterForTest(stream string, n int, drop bool) (sent string, in, out int64) {
	m := &meter{}
	e := &events{meter: m, drop: drop}
	var b strings.Builder
	for len(stream) > 0 {
		k := min(max(1, n), len(stream))
		b.Write(e.write([]byte(stream[:k])))
		stream = stream[k:]
	}
	b.Write(e.rest())
	return b.String(), m.tokens.in, m.tokens.out
}

// GuardPackForTest runs a pack through the guard.
func GuardPackForTest(pack []byte, out *bytes.Buffer, most int64) error {
	out.Reset()
	return guardPack(bytes.NewReader(pack), out, 20, most)
}

// IsTooMuchForTest says whether the guard found too much in a pack.
func IsTooMuchForTest(err error) bool { return errors.Is(err, errUnpacks) }

// CostForTest is what an answer of a model costs by the default prices.
func CostForTest(model, answer string) (usd float64, known bool) {
	m := newMeter(model)
	m.read([]byte(answer))
	p, known := priceOf(model, DefaultPrices)
	return p.cost(m.tokens, m.tokens), known
}
