package event_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// Readers that see different events of one burst share its bytes: each gets its
// own events, whole and in order, and none twice.
func TestWire_EachReaderGetsWhatItMaySee(t *testing.T) {
	t.Parallel()
	l := newLog(t, open(t, freshURL(t, store.SQLite)))
	var events []squad.Event
	for i := range 20 {
		events = append(events, squad.Event{Type: squad.EventLog, Payload: event.Payload(i)})
	}
	if err := l.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []*event.Entry
	for batch, err := range l.Batches(ctx, store.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, batch...); len(got) == 20 {
			break
		}
	}
	for name, see := range map[string]func(*squad.Event) bool{
		"all":    func(*squad.Event) bool { return true },
		"none":   func(*squad.Event) bool { return false },
		"second": func(e *squad.Event) bool { return e.Seq%2 == 0 },
		"middle": func(e *squad.Event) bool { return e.Seq > 5 && e.Seq < 12 },
	} {
		buffers, n := event.Wire(nil, got, see)
		var want []byte
		count := 0
		for _, e := range got {
			if see(&e.Event) {
				count++
				want = fmt.Appendf(want, "id: %d\nevent: log\ndata: %s\n\n", e.Seq, event.Payload(e.Event))
			}
		}
		if wire := bytes.Join(buffers, nil); n != count || !bytes.Equal(wire, want) {
			t.Errorf("%s: %d events, want %d:\n%s\nwant\n%s", name, n, count, wire, want)
		}
		if name == "all" && len(buffers) != 1 {
			t.Errorf("neighbours are in %d buffers", len(buffers))
		}
	}
}
