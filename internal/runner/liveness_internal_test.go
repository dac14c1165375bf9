package runner

import (
	"testing"
	"testing/synctest"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
)

// An agent that tells nothing is silent after a while, unless a command of it runs;
// its next word ends that.
func TestLiveness_SilentWithoutAWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(nil, "e")
		call := func(status string) {
			w.seen(squad.Event{Type: squad.EventToolCall, Payload: event.Payload(squad.ToolCall{ID: "1", Kind: "execute", Command: "make", Status: status})})
		}
		want := func(state string) {
			t.Helper()
			if now, _ := w.changed(); now.State != state {
				t.Fatalf("%+v, want %s", now, state)
			}
		}
		call("running")
		time.Sleep(2 * silentAfter)
		want("command")
		call("completed")
		want("working")
		began := time.Now().UTC()
		time.Sleep(silentAfter + time.Second)
		want("silent")
		if !w.state().Since.Equal(began) {
			t.Errorf("silent since %s, not %s", w.state().Since, began)
		}
		w.seen(squad.Event{Type: squad.EventMessage})
		want("working")
		w.model("model", "x")
		want("model")
	})
}
