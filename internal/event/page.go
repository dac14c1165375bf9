package event

import (
	"fmt"
	"strings"
	"sync"

	squad "agentsquad"
)

// Entry is an event shared by all its readers.
type Entry struct {
	squad.Event

	page     *page
	from, to int // of the page's wire form
}

// page is the events that came together. Their wire form is made once, when the
// first reader asks, and in one piece: a thousand readers then send the same
// bytes, and none of them copies any.
type page struct {
	once    sync.Once
	entries []*Entry
	wire    []byte
}

// paged makes entries of events that follow each other.
func paged(events []squad.Event) []*Entry {
	all := make([]Entry, len(events))
	p := &page{entries: make([]*Entry, len(events))}
	for i := range events {
		all[i] = Entry{Event: events[i], page: p}
		p.entries[i] = &all[i]
	}
	return p.entries
}

func (p *page) encode() {
	for _, e := range p.entries {
		kind := strings.NewReplacer("\n", "", "\r", "").Replace(string(e.Type))
		e.from = len(p.wire)
		// JSON has no line breaks of its own, so one data line is always enough.
		p.wire = fmt.Appendf(p.wire, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, kind, Payload(e.Event))
		e.to = len(p.wire)
	}
}

// Wire appends the batch as server-sent events to buffers, without those that
// see refuses, and says how many it took. Neighbours share one buffer. The bytes
// belong to all readers and must not be changed.
func Wire(buffers [][]byte, batch []*Entry, see func(*squad.Event) bool) (wire [][]byte, taken int) {
	var last *Entry
	from := 0
	for _, e := range batch {
		if !see(&e.Event) {
			continue
		}
		taken++
		e.page.once.Do(e.page.encode)
		if last != nil && last.page == e.page && last.to == e.from {
			buffers[len(buffers)-1] = e.page.wire[from:e.to]
		} else {
			from = e.from
			buffers = append(buffers, e.page.wire[from:e.to])
		}
		last = e
	}
	return buffers, taken
}
