package e2btest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (s *Server) collection(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		s.list(w, r)
		return
	}
	var body map[string]any
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		fail(w, http.StatusBadRequest, "body is not JSON")
		return
	}
	template, _ := body["templateID"].(string)
	if template == "missing" {
		fail(w, http.StatusNotFound, "template 'missing' not found")
		return
	}
	if s.expire(); s.opts.Limit > 0 && len(s.boxes) >= s.opts.Limit {
		fail(w, http.StatusTooManyRequests, fmt.Sprintf("you have reached the maximum number of concurrent E2B sandboxes (%d)", s.opts.Limit))
		return
	}
	metadata := map[string]string{}
	if m, ok := body["metadata"].(map[string]any); ok {
		for k, v := range m {
			metadata[k], _ = v.(string)
		}
	}
	b := s.add(template, asked(body, 300), metadata, body)
	reply(w, http.StatusCreated, s.wire(b))
}

func asked(body map[string]any, seconds float64) time.Duration {
	if v, ok := body["timeout"].(float64); ok {
		seconds = v
	}
	return time.Duration(seconds * float64(time.Second))
}

func (s *Server) wire(b *box) map[string]any {
	return map[string]any{
		"sandboxID": b.id, "templateID": b.template, "clientID": "c", "envdVersion": "0.6.4",
		"envdAccessToken": b.token, "domain": nil, "trafficAccessToken": nil,
	}
}

func (s *Server) info(b *box) map[string]any {
	return map[string]any{
		"sandboxID": b.id, "templateID": b.template, "clientID": "c", "envdVersion": "0.6.4",
		"startedAt": b.started, "endAt": b.end, "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024,
		"state": b.state, "metadata": b.metadata,
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	want := decodeMetadata(q.Get("metadata"))
	var chosen []*box
	running := 0
	for _, b := range s.sorted() {
		match := q.Get("state") == "" || slices.Contains(strings.Split(q.Get("state"), ","), b.state)
		for k, v := range want {
			match = match && b.metadata[k] == v
		}
		if match {
			chosen = append(chosen, b)
		}
		if match && b.state == "running" {
			running++
		}
	}
	if q.Get("order") != "asc" {
		slices.Reverse(chosen)
	}
	limit := 100
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		limit = n
	}
	if s.opts.PageSize > 0 {
		limit = min(limit, s.opts.PageSize)
	}
	from, _ := strconv.Atoi(q.Get("nextToken"))
	page := []any{}
	for i := min(from, len(chosen)); i < min(from+limit, len(chosen)); i++ {
		page = append(page, s.info(chosen[i]))
	}
	if from+limit < len(chosen) {
		w.Header().Set("X-Next-Token", strconv.Itoa(from+limit))
	}
	w.Header().Set("X-Total-Running", strconv.Itoa(running))
	reply(w, http.StatusOK, page)
}

func decodeMetadata(raw string) map[string]string {
	decoded, err := url.PathUnescape(raw)
	if err != nil || decoded == "" {
		return nil
	}
	out := map[string]string{}
	for pair := range strings.SplitSeq(decoded, "&") {
		k, v, _ := strings.Cut(pair, "=")
		k, _ = url.PathUnescape(k)
		out[k], _ = url.PathUnescape(v)
	}
	return out
}

func (s *Server) one(w http.ResponseWriter, r *http.Request, id, verb string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	b := s.boxes[id]
	if b == nil {
		fail(w, http.StatusNotFound, fmt.Sprintf("Sandbox %q doesn't exist or you don't have access to it", id))
		return
	}
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch r.Method + " " + verb {
	case "GET ":
		info := s.info(b)
		info["envdAccessToken"] = b.token
		reply(w, http.StatusOK, info)
	case "DELETE ":
		s.drop(id)
		reply(w, http.StatusNoContent, nil)
	case "POST connect", "POST resume":
		status := http.StatusOK
		if b.state == "paused" {
			b.state, status = "running", http.StatusCreated
		}
		if until := time.Now().UTC().Add(asked(body, 300)); until.After(b.end) {
			b.end = until
		}
		reply(w, status, s.wire(b))
	case "POST pause":
		if b.state == "paused" {
			fail(w, http.StatusConflict, "Sandbox is already paused")
			return
		}
		b.state = "paused"
		reply(w, http.StatusNoContent, nil)
	case "POST timeout":
		b.end = time.Now().UTC().Add(asked(body, 0))
		reply(w, http.StatusNoContent, nil)
	case "PUT network":
		reply(w, http.StatusNoContent, nil)
	case "GET metrics":
		reply(w, http.StatusOK, []any{metric()})
	case "POST snapshots":
		name, _ := body["name"].(string)
		snapshot := "snap" + random(6) + ":default"
		s.snapshots[snapshot] = true
		reply(w, http.StatusCreated, map[string]any{"snapshotID": snapshot, "names": []string{name}})
	case "POST fork":
		s.fork(w, b, body)
	default:
		http.NotFound(w, r)
	}
}

func metric() map[string]any {
	return map[string]any{
		"timestamp": time.Now().UTC(), "timestampUnix": time.Now().Unix(), "cpuCount": 2, "cpuUsedPct": 12.5,
		"memUsed": 64 << 20, "memTotal": 512 << 20, "diskUsed": 1 << 20, "diskTotal": 1 << 30,
	}
}

// metrics answers for many sandboxes at once.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]any{}
	for id := range strings.SplitSeq(r.URL.Query().Get("sandbox_ids"), ",") {
		if b := s.boxes[id]; b != nil && b.state == "running" {
			out[id] = metric()
		}
	}
	reply(w, http.StatusOK, map[string]any{"sandboxes": out})
}

func (s *Server) fork(w http.ResponseWriter, b *box, body map[string]any) {
	count := 1
	if v, ok := body["count"].(float64); ok {
		count = int(v)
	}
	var out []any
	for range count {
		if s.opts.Limit > 0 && len(s.boxes) >= s.opts.Limit {
			out = append(out, map[string]any{"error": map[string]any{"code": 429, "message": "maximum number of concurrent sandboxes"}})
			continue
		}
		out = append(out, map[string]any{"sandbox": s.wire(s.add(b.template, asked(body, 15), b.metadata, b.extra))})
	}
	reply(w, http.StatusCreated, out)
}

func (s *Server) listSnapshots(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := []any{}
	for id := range s.snapshots {
		page = append(page, map[string]any{"snapshotID": id, "names": []string{}})
	}
	reply(w, http.StatusOK, page)
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.snapshots[id] {
		fail(w, http.StatusNotFound, "template not found")
		return
	}
	delete(s.snapshots, id)
	reply(w, http.StatusNoContent, nil)
}
