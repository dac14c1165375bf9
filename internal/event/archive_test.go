package event_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// Pruned events of an execution are read as before, by list and by stream; those of no
// execution are gone, and a second pass after a crash repeats nothing.
func TestPrune_ExecutionsStayReadableAtTheSamePlace(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "squad.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	log := event.NewLog(s, nil)
	t.Cleanup(log.Close)
	dir := filepath.Join(t.TempDir(), "archive")
	archive := event.NewArchive(dir)
	log.UseArchive(archive)
	for i := range 40 {
		e := squad.Event{Type: squad.EventLog, ExecutionID: fmt.Sprintf("run-%d", i%2), Payload: event.Payload(squad.Text{Text: fmt.Sprint("line ", i)})}
		if i%10 == 9 {
			e = squad.Event{Type: squad.EventMemberChanged}
		}
		if err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	of := store.EventFilter{ExecutionID: "run-1"}
	before, err := log.Stored(t.Context(), of)
	if err != nil || len(before) != 16 {
		t.Fatalf("%d events before, %v", len(before), err)
	}
	// A pass that was cut off after the files were written.
	all, err := s.Events(t.Context(), store.EventFilter{Limit: 7})
	if err == nil {
		err = archive.Keep(all)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Prune(t.Context(), time.Now().Add(time.Hour), 10); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Events(t.Context(), store.EventFilter{}); err != nil || len(left) != 10 || left[0].Seq != 31 {
		t.Fatalf("the database has %d events, %v", len(left), err)
	}
	if files, _ := os.ReadDir(dir); len(files) < 2 {
		t.Errorf("the archive has %d files", len(files))
	}
	after, err := log.Stored(t.Context(), of)
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d events after, %v", len(after), err)
	}
	next := 0
	for e, err := range log.Subscribe(t.Context(), store.EventFilter{ExecutionID: "run-1", Limit: len(before)}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq != before[next].Seq || string(e.Payload) != string(before[next].Payload) || after[next].Seq != e.Seq {
			t.Errorf("event %d: %d %s, before %d %s", next, e.Seq, e.Payload, before[next].Seq, before[next].Payload)
		}
		next++
	}
	of.After, of.Limit = before[3].Seq, 5
	if page, err := log.Stored(t.Context(), of); err != nil || len(page) != 5 || page[0].Seq != before[4].Seq {
		t.Errorf("a page in the middle: %d events, %v", len(page), err)
	}
}
