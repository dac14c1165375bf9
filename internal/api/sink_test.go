package api_test

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsquad"
	"agentsquad/internal/api"
	"agentsquad/internal/event"
)

// A reader that does not read for a while has its socket filled to the brim, in
// the middle of an event and with heartbeats behind it; then it reads on and
// finds every event whole, once and in order, and nobody else had to wait.
func TestStream_FullSocketTearsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, h *house) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(128 << 10); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
		fmt.Fprintf(conn, "GET %s/sse HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", api.Prefix, h.admin.token)
		lines := bufio.NewReader(conn)
		for line := ""; line != "retry: 2000\n"; {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		_, quick, _ := h.listen(h.admin.token, "/sse", nil)
		quick.Buffer(nil, 1<<20)
		const total = 64 // of 100 kB each, more than the buffers of a socket hold
		text := strings.Repeat("x", 100<<10)
		for range total {
			h.append(squad.Event{Type: squad.EventLog, Payload: event.Payload(text)})
		}
		frames(t, quick, total)
		for next := 1; next <= total; {
			line, err := lines.ReadString('\n')
			switch {
			case err != nil:
				t.Fatal(err)
			case strings.HasPrefix(line, "id: ") && line != "id: "+strconv.Itoa(next)+"\n":
				t.Fatalf("%q, want number %d", line, next)
			case strings.HasPrefix(line, "data: "):
				if !strings.HasSuffix(line, text+"\"}\n") {
					t.Fatalf("event %d is torn: %.100s…", next, line)
				}
				next++
			}
		}
	})
}
