package e2bserver

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	squad "agentsquad"
)

const maxPage = 100

// listRunning handles GET /sandboxes, the old list.
func (s *Server) listRunning(w http.ResponseWriter, r *http.Request, owner string) error {
	want, err := parseMetadata(r.URL.Query().Get("metadata"))
	if err != nil {
		return err
	}
	recs := s.records(func(rec *record) bool {
		return rec.Owner == owner && rec.State == running && !rec.Build && has(rec.Metadata, want)
	})
	sortRecords(recs, false)
	writeJSON(w, http.StatusOK, listOf(recs))
	return nil
}

// list handles GET /v2/sandboxes.
func (s *Server) list(w http.ResponseWriter, r *http.Request, owner string) error {
	q, err := s.parseListQuery(r.URL.Query(), owner)
	if err != nil {
		return err
	}
	totalRunning := 0
	recs := s.records(func(rec *record) bool {
		if rec.Owner != owner || rec.Build {
			return false
		}
		match := q.matches(rec)
		if match && rec.State == running {
			totalRunning++
		}
		return match && q.states[rec.State]
	})
	sortRecords(recs, q.ascending)
	recs = q.cursor.skip(recs, q.ascending)
	if len(recs) > q.limit {
		recs = recs[:q.limit]
		w.Header().Set("X-Next-Token", cursorAt(recs[q.limit-1]).String())
	}
	if q.states[running] {
		w.Header().Set("X-Total-Running", strconv.Itoa(totalRunning))
	}
	writeJSON(w, http.StatusOK, listOf(recs))
	return nil
}

func (s *Server) records(keep func(*record) bool) []record {
	var out []record
	for _, b := range s.all(keep) {
		out = append(out, b.view())
	}
	return out
}

func listOf(recs []record) []listed {
	out := make([]listed, 0, len(recs))
	for _, rec := range recs {
		out = append(out, rec.listed())
	}
	return out
}

// sortRecords orders by start, newest first unless ascending.
func sortRecords(recs []record, ascending bool) {
	slices.SortFunc(recs, func(a, b record) int {
		c := cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
		if ascending {
			return c
		}
		return -c
	})
}

// listQuery is what a list asks for.
type listQuery struct {
	metadata     map[string]string
	states       map[string]bool
	ascending    bool
	startedAfter time.Time
	template     string
	limit        int
	cursor       cursor
}

func (q *listQuery) matches(rec *record) bool {
	if q.template != "" && rec.Template != q.template && rec.Alias != q.template {
		return false
	}
	if !q.startedAfter.IsZero() && rec.StartedAt.Truncate(time.Microsecond).Before(q.startedAfter) {
		return false
	}
	return has(rec.Metadata, q.metadata)
}

func (s *Server) parseListQuery(v url.Values, owner string) (q listQuery, err error) {
	if q.metadata, err = parseMetadata(v.Get("metadata")); err != nil {
		return q, err
	}
	q.states = map[string]bool{}
	for _, part := range v["state"] {
		for state := range strings.SplitSeq(part, ",") {
			if state != running && state != paused {
				return q, squad.Invalid("state", "state %q is neither running nor paused", state)
			}
			q.states[state] = true
		}
	}
	if len(q.states) == 0 {
		q.states = map[string]bool{running: true, paused: true}
	}
	switch v.Get("order") {
	case "", "desc":
	case "asc":
		q.ascending = true
	default:
		return q, squad.Invalid("order", "order must be asc or desc")
	}
	if text := v.Get("startedAfter"); text != "" {
		if q.startedAfter, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return q, squad.Invalid("startedAfter", "startedAfter is not a time in RFC 3339")
		}
		q.startedAfter = q.startedAfter.Truncate(time.Microsecond)
	}
	if ref := v.Get("template"); ref != "" {
		q.template = ref
		if t, err := s.library.resolve(owner, ref); err == nil {
			q.template = t.ID
		}
	}
	if q.limit, err = pageLimit(v.Get("limit")); err != nil {
		return q, err
	}
	q.cursor, err = parseCursor(v.Get("nextToken"))
	return q, err
}

func pageLimit(text string) (int, error) {
	if text == "" {
		return maxPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, squad.Invalid("limit", "limit must be a number from 1 to %d", maxPage)
	}
	return n, nil
}

// parseMetadata reads a filter. SDKs encode each key and value, then the whole:
// after the query's own decoding there is one more around the pairs, and one
// around each part.
func parseMetadata(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	bad := squad.Invalid("metadata", "metadata filter is not key=value&key=value, percent-encoded")
	inner, err := url.QueryUnescape(text)
	if err != nil {
		return nil, bad
	}
	want := map[string]string{}
	for pair := range strings.SplitSeq(inner, "&") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, bad
		}
		key, err1 := url.QueryUnescape(k)
		value, err2 := url.QueryUnescape(v)
		if err1 != nil || err2 != nil {
			return nil, bad
		}
		want[key] = value
	}
	return want, nil
}

func has(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// cursor is the last sandbox of a page: the next page begins after it, even if
// it is gone by then.
type cursor struct {
	at time.Time
	id string
}

func cursorAt(rec record) cursor { return cursor{rec.StartedAt, rec.ID} }

// String is the opaque form of a cursor.
func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.at.UTC().Format(time.RFC3339Nano) + "__" + c.id))
}

func parseCursor(text string) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	bad := squad.Invalid("nextToken", "Invalid next token")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return cursor{}, bad
	}
	at, id, ok := strings.Cut(string(raw), "__")
	t, err := time.Parse(time.RFC3339Nano, at)
	if !ok || err != nil {
		return cursor{}, bad
	}
	return cursor{t, id}, nil
}

// skip drops what came up to and with the cursor.
func (c cursor) skip(recs []record, ascending bool) []record {
	if c.id == "" {
		return recs
	}
	return slices.DeleteFunc(recs, func(rec record) bool {
		order := cmp.Or(rec.StartedAt.Compare(c.at), cmp.Compare(rec.ID, c.id))
		if ascending {
			return order <= 0
		}
		return order >= 0
	})
}
