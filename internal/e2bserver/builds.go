package e2bserver

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	squad "agentsquad"
)

// buildLog is one line of a build.
type buildLog struct {
	Timestamp time.Time `json:"timestamp"`
	Level     string    `json:"level"`
	Message   string    `json:"message"`
	Step      string    `json:"step,omitempty"`
}

const (
	maxBuildLogs = 5000
	maxLogLine   = 8 << 10
	maxBuilds    = 4 // of one owner at the same time
)

// buildRequest asks for a place in the library for a build.
type buildRequest struct {
	Name     string   `json:"name"`
	Alias    string   `json:"alias"`
	Tags     []string `json:"tags"`
	CPUCount int      `json:"cpuCount"`
	MemoryMB int64    `json:"memoryMB"`
}

// requestBuild handles POST /v3/templates.
func (s *Server) requestBuild(w http.ResponseWriter, r *http.Request, owner string) error {
	var body buildRequest
	if err := decode(w, r, &body, false); err != nil {
		return err
	}
	t, name, b, err := s.openBuild(owner, body)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, map[string]any{
		"templateID": t, "buildID": b.ID, "public": false, "aliases": []string{name}, "names": []string{namespaceOf(owner) + "/" + name}, "tags": b.Tags,
	})
	return nil
}

// openBuild puts a build that waits to be started into the library, under the
// template of its name, which is made where there is none.
func (s *Server) openBuild(owner string, req buildRequest) (templateID, name string, b *build, err error) {
	if req.Name == "" {
		req.Name = req.Alias
	}
	if req.Name == "" || len(req.Name) > 128 {
		return "", "", nil, squad.Invalid("name", "name must have 1 to 128 characters")
	}
	ref, err := parseReference(req.Name)
	if err != nil {
		return "", "", nil, err
	}
	if req.CPUCount < 0 || req.CPUCount > 64 || req.MemoryMB != 0 && (req.MemoryMB < 128 || req.MemoryMB > 1<<20) {
		return "", "", nil, squad.Invalid("cpuCount", "cpuCount must be 1 to 64 and memoryMB at least 128")
	}
	tags, err := cleanTags(req.Tags)
	if err != nil {
		return "", "", nil, err
	}
	if len(tags) == 0 || strings.Contains(req.Name, ":") {
		tags = append(tags, ref.tag)
	}
	if err := s.library.mayName(owner, ref, false); err != nil {
		return "", "", nil, err
	}
	b = &build{
		ID: uuid.NewString(), Status: buildWaiting, Image: imagePrefix + randomLetters(20), Tags: tags,
		CPU: req.CPUCount, MemoryMB: req.MemoryMB, CreatedAt: s.cfg.Now().UTC(),
	}
	templateID, err = s.library.addBuild(owner, ref, b)
	return templateID, ref.name, b, err
}

func cleanTags(tags []string) ([]string, error) {
	out := []string{}
	if len(tags) > 32 {
		return nil, squad.Invalid("tags", "at most 32 tags")
	}
	for _, t := range tags {
		// A tag may be given as "name:tag".
		if _, after, ok := strings.Cut(t, ":"); ok {
			t = after
		}
		t = strings.ToLower(t)
		if !tagPart.MatchString(t) || uuidForm.MatchString(t) {
			return nil, squad.Invalid("tags", "%q is not a tag: letters, digits, -, _ and . only", t)
		}
		out = append(out, t)
	}
	return out, nil
}

// addBuild puts a new build under the owner's template of that name, which is
// made where it is missing.
func (l *library) addBuild(owner string, ref reference, b *build) (templateID string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := 0
	for _, t := range l.templates {
		for _, other := range t.Builds {
			if t.Owner == owner && (other.Status == buildBuilding || other.Status == buildWaiting && l.now().Sub(other.CreatedAt) < uploadTime) {
				open++
			}
		}
	}
	if open >= 64 {
		return "", squad.Errorf(squad.CodeQuota, "You have %d unfinished builds; wait for some to finish", open)
	}
	t := l.find(owner, reference{name: ref.name})
	if t == nil || t.Owner != owner {
		t = &template{ID: randomLetters(20), Owner: owner, Names: []string{ref.name}, Tags: map[string]tag{}, CreatedAt: b.CreatedAt}
		l.templates[t.ID] = t
	}
	t.CPU, t.MemoryMB, t.UpdatedAt = b.CPU, b.MemoryMB, b.CreatedAt
	t.Builds = append(t.Builds, b)
	return t.ID, save(l.dir, t.ID, t)
}

// withBuild runs do on a build of the owner.
func (l *library) withBuild(owner, templateID, buildID string, do func(*template, *build) error) error {
	ref, err := parseReference(templateID)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.find(owner, ref)
	if t == nil || t.Owner != owner {
		return squad.Errorf(squad.CodeNotFound, "template '%s' not found", templateID)
	}
	b := t.build(buildID)
	if b == nil {
		return squad.Errorf(squad.CodeNotFound, "build '%s' not found", buildID)
	}
	return do(t, b)
}

// startBuild handles POST /v2/templates/{id}/builds/{build}.
func (s *Server) startBuild(w http.ResponseWriter, r *http.Request, owner string) error {
	var plan buildPlan
	if err := decode(w, r, &plan, false); err != nil {
		return err
	}
	if err := s.beginBuild(owner, r.PathValue("id"), r.PathValue("build"), plan); err != nil {
		return err
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// beginBuild checks the plan and carries it out in the background.
func (s *Server) beginBuild(owner, id, buildID string, plan buildPlan) error {
	if err := s.checkPlan(owner, &plan); err != nil {
		return err
	}
	var templateID string
	var work build
	err := s.library.withBuild(owner, id, buildID, func(t *template, b *build) error {
		if b.Status != buildWaiting {
			return squad.Errorf(squad.CodeConflict, "The build was started already")
		}
		running := 0
		for _, other := range s.library.templates {
			for _, o := range other.Builds {
				if other.Owner == owner && o.Status == buildBuilding {
					running++
				}
			}
		}
		if running >= maxBuilds {
			return &squad.Error{Code: squad.CodeQuota, Message: "Too many builds are running; try again later", RetryAfter: 5 * time.Second}
		}
		b.Status = buildBuilding
		templateID, work = t.ID, *b
		return nil
	})
	if err != nil {
		return err
	}
	s.background(func(ctx context.Context) { s.runBuild(ctx, owner, templateID, work, plan) })
	return nil
}

// buildStatus handles GET /templates/{id}/builds/{build}/status.
func (s *Server) buildStatus(w http.ResponseWriter, r *http.Request, owner string) error {
	q := r.URL.Query()
	offset, err1 := strconv.Atoi(orDefault(q.Get("logsOffset"), "0"))
	limit, err2 := strconv.Atoi(orDefault(q.Get("limit"), "100"))
	level, known := levels[q.Get("level")]
	if err1 != nil || err2 != nil || offset < 0 || limit < 0 || limit > 100 || !known {
		return squad.Invalid("logsOffset", "logsOffset must not be negative, limit from 0 to 100, level debug, info, warn or error")
	}
	return s.library.withBuild(owner, r.PathValue("id"), r.PathValue("build"), func(t *template, b *build) error {
		entries := []buildLog{}
		for _, e := range b.Logs {
			if levels[e.Level] >= level {
				entries = append(entries, e)
			}
		}
		entries = entries[min(offset, len(entries)):]
		entries = entries[:min(limit, len(entries))]
		body := map[string]any{
			"templateID": t.ID, "buildID": b.ID, "status": b.Status, "logEntries": entries, "logs": []string{},
		}
		if b.Status == buildError {
			reason := map[string]any{"message": b.Reason}
			if b.FailedStep != "" {
				reason["step"] = b.FailedStep
			}
			body["reason"] = reason
		}
		writeJSON(w, http.StatusOK, body)
		return nil
	})
}

// buildLogs handles GET /templates/{id}/builds/{build}/logs.
func (s *Server) buildLogs(w http.ResponseWriter, r *http.Request, owner string) error {
	q, err := parseLogQuery(r.URL.Query(), "cursor", 100)
	if err != nil {
		return err
	}
	return s.library.withBuild(owner, r.PathValue("id"), r.PathValue("build"), func(_ *template, b *build) error {
		var notes []note
		for _, e := range b.Logs {
			notes = append(notes, note{Timestamp: e.Timestamp, Message: e.Message, Level: e.Level, Fields: map[string]string{"step": e.Step}})
		}
		writeJSON(w, http.StatusOK, map[string]any{"logs": q.pick(notes)})
		return nil
	})
}

func orDefault(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
