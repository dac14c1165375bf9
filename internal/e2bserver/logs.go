package e2bserver

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	squad "agentsquad"
)

// note is one line in the log of a sandbox: what happened to it, not what its
// processes print.
type note struct {
	Timestamp time.Time         `json:"timestamp"`
	Message   string            `json:"message"`
	Level     string            `json:"level"`
	Fields    map[string]string `json:"fields"`
}

func (s *Server) note(b *box, level, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes.add(note{Timestamp: s.cfg.Now().UTC(), Message: message, Level: level, Fields: map[string]string{"logger": "squad"}})
}

var levels = map[string]int{"": 0, "debug": 0, "info": 1, "warn": 2, "error": 3}

// logQuery is what a reader of logs asks for.
type logQuery struct {
	cursor   time.Time
	limit    int
	backward bool
	level    int
	search   string
}

func parseLogQuery(v url.Values, cursorName string, maxLimit int) (q logQuery, err error) {
	if text := v.Get(cursorName); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 0 {
			return q, squad.Invalid(cursorName, "%s must be unix milliseconds", cursorName)
		}
		q.cursor = time.UnixMilli(ms)
	}
	q.limit = maxLimit
	if text := v.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 0 || q.limit > maxLimit {
			return q, squad.Invalid("limit", "limit must be from 0 to %d", maxLimit)
		}
	}
	level, ok := levels[v.Get("level")]
	if !ok {
		return q, squad.Invalid("level", "level must be debug, info, warn or error")
	}
	q.level, q.search = level, v.Get("search")
	if len(q.search) > 256 {
		return q, squad.Invalid("search", "search may have at most 256 characters")
	}
	switch v.Get("direction") {
	case "", "backward":
		q.backward = true
	case "forward":
	default:
		return q, squad.Invalid("direction", "direction must be forward or backward")
	}
	return q, nil
}

// pick filters notes that are in order, oldest first.
func (q logQuery) pick(notes []note) []note {
	out := []note{}
	if q.backward {
		slices.Reverse(notes)
	}
	for _, n := range notes {
		outside := !q.cursor.IsZero() && (q.backward && n.Timestamp.After(q.cursor) || !q.backward && n.Timestamp.Before(q.cursor))
		if len(out) < q.limit && !outside && levels[n.Level] >= q.level && strings.Contains(n.Message, q.search) {
			out = append(out, n)
		}
	}
	return out
}

func (s *Server) notes(r *http.Request, owner string) ([]note, error) {
	b, err := s.own(owner, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.notes.all(), nil
}

// logs handles GET /v2/sandboxes/{id}/logs.
func (s *Server) logs(w http.ResponseWriter, r *http.Request, owner string) error {
	q, err := parseLogQuery(r.URL.Query(), "cursor", 1000)
	if err != nil {
		return err
	}
	notes, err := s.notes(r, owner)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"logs": q.pick(notes)})
	return nil
}

// oldLogs handles GET /sandboxes/{id}/logs.
func (s *Server) oldLogs(w http.ResponseWriter, r *http.Request, owner string) error {
	q, err := parseLogQuery(r.URL.Query(), "start", 1000)
	if err != nil {
		return err
	}
	q.backward = false
	notes, err := s.notes(r, owner)
	if err != nil {
		return err
	}
	type line struct {
		Timestamp time.Time `json:"timestamp"`
		Line      string    `json:"line"`
	}
	lines := []line{}
	picked := q.pick(notes)
	for _, n := range picked {
		lines = append(lines, line{n.Timestamp, n.Message})
	}
	writeJSON(w, http.StatusOK, map[string]any{"logs": lines, "logEntries": picked})
	return nil
}
