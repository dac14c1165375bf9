package api_test

import (
	"bufio"
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/client"
	"agentsquad/internal/api"
	"agentsquad/internal/event"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares with a file of testdata, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Fatalf("%s differs (-update rewrites it):\n%s", path, got)
	}
}

// listen opens a stream and returns its lines.
func (h *house) listen(token, path string, header http.Header) (*http.Response, *bufio.Scanner, context.CancelFunc) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	h.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+api.Prefix+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp, bufio.NewScanner(resp.Body), cancel
}

// frames reads lines until n events are whole, heartbeats left out.
func frames(t *testing.T, lines *bufio.Scanner, n int) string {
	t.Helper()
	var b strings.Builder
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, ":") {
			lines.Scan() // the empty line behind a heartbeat
			continue
		}
		b.WriteString(line + "\n")
		if strings.HasPrefix(line, "data:") {
			if n--; n == 0 {
				return b.String()
			}
		}
	}
	t.Fatalf("the stream ended early: %v\n%s", lines.Err(), b.String())
	return ""
}

func (h *house) append(events ...squad.Event) {
	h.t.Helper()
	if err := h.events.Append(h.t.Context(), events...); err != nil {
		h.t.Fatal(err)
	}
}

func TestStream_WireForm(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		resp, lines, _ := h.listen(h.admin.token, "/sse", nil)
		if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("headers %v", resp.Header)
		}
		h.append(
			squad.Event{Type: squad.EventMessage, At: at, ExecutionID: "e1", Payload: event.Payload(squad.Text{Text: "two\nlines and ünïcode <b>"})},
			squad.Event{Type: squad.EventStep, At: at, TaskID: "t1", ExecutionID: "e1", Payload: event.Payload(squad.StepProgress{Step: squad.StepClone, Status: "running", Percent: 40})},
		)
		golden(t, "stream.golden", frames(t, lines, 2))
	})
}

func TestStream_ResumesWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		for i := range 20 {
			h.append(squad.Event{Type: squad.EventLog, Payload: event.Payload(i)})
		}
		for name, open := range map[string]func() *bufio.Scanner{
			"header": func() *bufio.Scanner {
				_, l, _ := h.listen(h.admin.token, "/sse?after=3", http.Header{"Last-Event-Id": {"15"}})
				return l
			},
			"query": func() *bufio.Scanner {
				_, l, _ := h.listen(h.admin.token, "/sse?after=15", nil)
				return l
			},
		} {
			text := frames(t, open(), 5)
			for want := 16; want <= 20; want++ {
				if strings.Count(text, "id: "+strconv.Itoa(want)+"\n") != 1 {
					t.Errorf("%s: event %d not once in\n%s", name, want, text)
				}
			}
		}
	})
}

func TestStream_HeartbeatKeepsASilentOneAlive(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		_, lines, _ := h.listen(h.admin.token, "/sse", nil)
		for beats := 0; beats < 2 && lines.Scan(); {
			if lines.Text() == ": heartbeat" {
				beats++
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStream_EachSeesTheirSquadsOnly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		mine, member := h.squad("mine")
		other, _ := h.squad("other")
		guest := h.person("guest", false)
		must(h.admin.PutSquadUser(ctx, mine.ID, guest.user.ID, squad.RoleViewer))(t)
		own := h.task(mine, "own")
		agent := must(h.admin.CreateToken(ctx, squad.NewToken{Name: "a", Kind: squad.TokenAgent, MemberID: member.ID, TaskID: own.ID}))(t)

		_, guestLines, _ := h.listen(guest.token, "/sse", nil)
		_, agentLines, _ := h.listen(agent.Secret, "/sse", nil)
		h.append(
			squad.Event{Type: squad.EventLog, SquadID: other.ID, Payload: event.Payload("hidden")},
			squad.Event{Type: squad.EventLog, Payload: event.Payload("system")},
			squad.Event{Type: squad.EventLog, SquadID: mine.ID, TaskID: "another", Payload: event.Payload("squad")},
			squad.Event{Type: squad.EventLog, SquadID: mine.ID, TaskID: own.ID, Payload: event.Payload("task")},
		)
		if text := frames(t, guestLines, 2); strings.Contains(text, "hidden") || strings.Contains(text, "system") || !strings.Contains(text, "squad") {
			t.Fatalf("the guest sees\n%s", text)
		}
		if text := frames(t, agentLines, 1); !strings.Contains(text, `"task"`) {
			t.Fatalf("the agent sees\n%s", text)
		}
		for row, err := range guest.StoredEvents(ctx, client.EventQuery{}) {
			if err != nil || row.SquadID != mine.ID {
				t.Fatalf("the list shows %+v (%v)", row, err)
			}
		}
	})
}

func TestStream_EndsWithTheRightToIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		tok := must(h.admin.CreateToken(t.Context(), squad.NewToken{Name: "short"}))(t)
		_, lines, _ := h.listen(tok.Secret, "/sse", nil)
		lines.Scan()
		if err := h.admin.DeleteToken(t.Context(), tok.ID); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // ends, or the bound of the request fails the test below
		}
		if err := lines.Err(); err != nil && strings.Contains(err.Error(), "deadline") {
			t.Fatal("the stream of a revoked token went on")
		}
	})
}

func TestStream_EndsWhenTheServerStops(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		_, lines, _ := h.listen(h.admin.token, "/sse", nil)
		lines.Scan()
		h.server.Stop()
		for lines.Scan() {
		}
		if err := lines.Err(); err != nil && strings.Contains(err.Error(), "deadline") {
			t.Fatal("the stream went on")
		}
	})
}

func TestClientEvents_SurviveALostConnection(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		// Each connection is cut after a few events, as a bad network would.
		broken, err := client.New(client.Config{URL: h.url, Token: h.admin.token, HTTPClient: &http.Client{Transport: &flaky{limit: 700}}})
		if err != nil {
			t.Fatal(err)
		}
		const total = 40
		for i := range total {
			h.append(squad.Event{Type: squad.EventLog, Payload: event.Payload(i)})
		}
		next := int64(1)
		for e, err := range broken.Events(ctx, client.EventQuery{After: ptr(int64(0))}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq != next {
				t.Fatalf("event %d, want %d", e.Seq, next)
			}
			if next++; next > total {
				return
			}
		}
	})
}

func TestStats_TellTheNewestEvent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		h.append(squad.Event{Type: squad.EventLog}, squad.Event{Type: squad.EventLog})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for e, err := range h.admin.Events(ctx, client.EventQuery{After: ptr(int64(1))}) { // the tail has caught up then
			if err != nil || e.Seq != 2 {
				t.Fatalf("%+v %v", e, err)
			}
			break
		}
		if last := must(h.admin.LastSeq(ctx))(t); last != 2 {
			t.Fatalf("last is %d", last)
		}
	})
}

// HTTP/2 shares a connection between streams, so that none of them can have it.
func TestStream_OverHTTP2(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		web := httptest.NewUnstartedServer(h.server)
		web.Config.Protocols = new(http.Protocols)
		web.Config.Protocols.SetUnencryptedHTTP2(true)
		web.Start()
		t.Cleanup(web.Close)
		t.Cleanup(h.server.Stop)
		two := new(http.Protocols)
		two.SetUnencryptedHTTP2(true)
		c := http.Client{Transport: &http.Transport{Protocols: two}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+api.Prefix+"/sse?after=0", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = bearer(h.admin.token)
		h.append(squad.Event{Type: squad.EventLog, Payload: event.Payload("one")}, squad.Event{Type: squad.EventLog, Payload: event.Payload("two")})
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text := frames(t, bufio.NewScanner(resp.Body), 2)
		if resp.ProtoMajor != 2 || !strings.Contains(text, "one") || !strings.Contains(text, "two") {
			t.Fatalf("%s\n%s", resp.Proto, text)
		}
	})
}

func TestStream_ReaderThatLeavesIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *api.Config) { c.Heartbeat = time.Hour }) // no heartbeat finds it out
	resp, lines, _ := h.listen(h.admin.token, "/sse", nil)
	if !lines.Scan() || h.events.Stats().Subscribers != 1 && !eventually(func() bool { return h.events.Stats().Subscribers == 1 }) {
		t.Fatal("the stream is not open")
	}
	_ = resp.Body.Close()
	if !eventually(func() bool { return h.events.Stats().Subscribers == 0 }) {
		t.Fatal("the stream of a reader that left is still open")
	}
}

// eventually waits for something that has no signal of its own.
func eventually(f func() bool) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if f() {
			return true
		}
	}
	return false
}
