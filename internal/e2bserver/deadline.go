package e2bserver

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// deadlines is one timer for the ends of all sandboxes: a heap of times, woken
// at the earliest. Whoever is told that a time has come looks whether it still
// holds.
type deadlines struct {
	now  func() time.Time
	wake chan struct{}

	mu   sync.Mutex
	heap deadlineHeap
	byID map[string]*deadline
}

type deadline struct {
	at    time.Time
	id    string
	index int
}

func newDeadlines(now func() time.Time) *deadlines {
	return &deadlines{now: now, wake: make(chan struct{}, 1), byID: map[string]*deadline{}}
}

// set replaces the time at which a sandbox is to be looked at.
func (d *deadlines) set(id string, at time.Time) {
	d.mu.Lock()
	if e := d.byID[id]; e != nil {
		e.at = at
		heap.Fix(&d.heap, e.index)
	} else {
		e = &deadline{at: at, id: id}
		d.byID[id] = e
		heap.Push(&d.heap, e)
	}
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// drop forgets a sandbox.
func (d *deadlines) drop(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.byID[id]; e != nil {
		heap.Remove(&d.heap, e.index)
		delete(d.byID, id)
	}
}

// due takes out all that have come, and says how long until the next.
func (d *deadlines) due() (ids []string, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for len(d.heap) > 0 && !d.heap[0].at.After(now) {
		e := heap.Pop(&d.heap).(*deadline)
		delete(d.byID, e.id)
		ids = append(ids, e.id)
	}
	if len(d.heap) == 0 {
		return ids, time.Hour
	}
	return ids, d.heap[0].at.Sub(now)
}

// run tells of each sandbox whose time has come, until ctx ends.
func (d *deadlines) run(ctx context.Context, expired func(id string)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-d.wake:
		}
		ids, wait := d.due()
		for _, id := range ids {
			expired(id)
		}
		timer.Reset(wait)
	}
}

type deadlineHeap []*deadline

func (h deadlineHeap) Len() int           { return len(h) }
func (h deadlineHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *deadlineHeap) Push(x any) {
	e := x.(*deadline)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop implements [heap.Interface].
func (h *deadlineHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
