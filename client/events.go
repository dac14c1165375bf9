package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentsquad"
)

// EventQuery says which events, and from where.
type EventQuery struct {
	SquadID     string
	TaskID      string
	ExecutionID string
	MemberID    string
	SandboxID   string
	Types       []squad.EventType
	// After is the number of the last event already known; nil means from now.
	After *int64
}

func (q EventQuery) values() Values {
	types := make([]string, len(q.Types))
	for i, t := range q.Types {
		types[i] = string(t)
	}
	v := Values{
		"squad_id": q.SquadID, "task_id": q.TaskID, "execution_id": q.ExecutionID, "member_id": q.MemberID,
		"sandbox_id": q.SandboxID, "types": strings.Join(types, ","),
	}
	if q.After != nil {
		v["after"] = strconv.FormatInt(*q.After, 10)
	}
	return v
}

// LastSeq is the number of the newest event.
func (c *Client) LastSeq(ctx context.Context) (int64, error) {
	stats, err := get[struct {
		LastSeq int64 `json:"last_seq"`
	}](ctx, c, "/sse/stats")
	return stats.LastSeq, err
}

// StoredEvents lists the events that have happened, and ends.
func (c *Client) StoredEvents(ctx context.Context, q EventQuery) iter.Seq2[squad.Event, error] {
	return List[squad.Event](ctx, c, "/events", q.values())
}

// maxEvent bounds one line of a stream.
const maxEvent = 4 << 20

// silence is how long a stream may say nothing, not even a heartbeat, before it
// is taken for dead.
const silence = 45 * time.Second

// Events follows events until ctx ends. When the connection is lost it connects
// again behind the last event it yielded, so that none is missed and none comes
// twice. It ends with an error only where trying again is of no use, and when
// ctx ends.
func (c *Client) Events(ctx context.Context, q EventQuery) iter.Seq2[squad.Event, error] {
	return func(yield func(squad.Event, error) bool) {
		wait := 100 * time.Millisecond
		if q.After == nil { // fixed now, or a connection lost early would begin later
			last, err := c.LastSeq(ctx)
			if err != nil {
				yield(squad.Event{}, err)
				return
			}
			q.After = &last
		}
		for {
			goOn, progress, err := c.follow(ctx, &q, yield)
			if !goOn {
				return
			}
			if ctx.Err() != nil {
				yield(squad.Event{}, context.Cause(ctx))
				return
			}
			var refused *squad.Error
			if errors.As(err, &refused) && refused.Code != squad.CodeUnavailable && refused.Code != squad.CodeInternal && refused.Code != squad.CodeQuota {
				yield(squad.Event{}, err)
				return
			}
			if progress {
				wait = 100 * time.Millisecond
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, 5*time.Second)
		}
	}
}

// follow reads one connection to its end and moves q.After on.
func (c *Client) follow(ctx context.Context, q *EventQuery, yield func(squad.Event, error) bool) (goOn, progress bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.send(ctx, call{method: http.MethodGet, path: "/sse", query: q.values().encode()}, nil)
	if err != nil {
		return true, false, err
	}
	defer resp.Body.Close()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	err = Scan(resp.Body, func(id int64, data []byte) error {
		watchdog.Reset(silence)
		if data == nil {
			return nil
		}
		var e squad.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("read event %d: %w", id, err)
		}
		q.After = &id
		progress = true
		if !yield(e, nil) {
			return errStop
		}
		return nil
	})
	return !errors.Is(err, errStop), progress, err
}

var errStop = errors.New("the reader has enough")

// Scan reads the wire form of an event stream and calls f with each event, and
// with nil data for each sign of life in between, until r or f ends.
func Scan(r io.Reader, f func(id int64, data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	var id int64
	var data []byte
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(name) == 0 && len(value) == 0 && data != nil:
			if err := f(id, data); err != nil {
				return err
			}
			data = nil
		case string(name) == "id":
			n, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil {
				return fmt.Errorf("read event stream: %q is no event number", value)
			}
			id = n
		case string(name) == "data":
			data = append(data, value...)
		case len(name) == 0:
			if err := f(id, nil); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}
