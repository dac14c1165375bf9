package e2bserver

import (
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	squad "agentsquad"
)

// Templates that are there from the start and everybody's. The second is what
// the SDK for code interpreters asks for: the base, since envd runs code for
// every sandbox on the port that SDK speaks to.
const (
	baseTemplate        = "base"
	interpreterTemplate = "code-interpreter-v1"
)

// imagePrefix begins the host's names of all that this room makes, so that what
// nobody refers to any more can be told from what is not ours.
const imagePrefix = "e2b-"

// Statuses of a build.
const (
	buildWaiting  = "waiting"
	buildBuilding = "building"
	buildReady    = "ready"
	buildError    = "error"
)

// template is a family of builds under one or more names. Snapshots are
// templates with one build each time they are taken.
type template struct {
	ID        string         `json:"id"`
	Owner     string         `json:"owner"`
	Names     []string       `json:"names"`
	Public    bool           `json:"public"`
	Snapshot  bool           `json:"snapshot,omitempty"`
	SandboxID string         `json:"sandbox_id,omitempty"` // that a snapshot was last taken of
	CPU       int            `json:"cpu"`
	MemoryMB  int64          `json:"memory_mb"`
	Tags      map[string]tag `json:"tags"`
	Builds    []*build       `json:"builds"`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
}

type tag struct {
	Build     string    `json:"build"`
	CreatedAt time.Time `json:"created_at"`
}

// build is one making of a template.
type build struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"`
	Image      string            `json:"image"`          // the host's name of the result
	Base       string            `json:"base,omitempty"` // that of the registry's image it stands on
	Tags       []string          `json:"tags"`
	CPU        int               `json:"cpu"`
	MemoryMB   int64             `json:"memory_mb"`
	SizeBytes  int64             `json:"size_bytes,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Workdir    string            `json:"workdir,omitempty"`
	User       string            `json:"user,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	FailedStep string            `json:"failed_step,omitempty"`
	Logs       []buildLog        `json:"logs,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	FinishedAt time.Time         `json:"finished_at,omitzero"`
}

// resolved is what a reference to a template leads to.
type resolved struct {
	ID       string
	Alias    string
	Image    string
	Base     string
	CPU      int
	MemoryMB int64
	Env      map[string]string
	Workdir  string
	User     string
}

// library knows the templates of all owners.
type library struct {
	dir string
	now func() time.Time
	log *slog.Logger

	mu        sync.Mutex
	templates map[string]*template
}

func openLibrary(dir string, now func() time.Time, log *slog.Logger) (*library, error) {
	all, err := load[*template](dir, func(name string, err error) {
		log.Error("state of a template is unreadable", "file", name, "error", err)
	})
	if err != nil {
		return nil, err
	}
	l := &library{dir: dir, now: now, log: log, templates: map[string]*template{}}
	for _, t := range all {
		for _, b := range t.Builds {
			if b.Status == buildBuilding || b.Status == buildWaiting {
				b.Status, b.Reason, b.FinishedAt = buildError, "The server was restarted during the build", now().UTC()
			}
		}
		l.templates[t.ID] = t
	}
	return l, nil
}

var (
	namePart = regexp.MustCompile(`^[a-z0-9_-]{1,128}$`)
	tagPart  = regexp.MustCompile(`^[a-z0-9_.-]{1,128}$`)
	uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// reference is "[namespace/]name[:tag]", taken apart.
type reference struct{ namespace, name, tag string }

func parseReference(text string) (reference, error) {
	ref := reference{name: strings.ToLower(strings.TrimSpace(text)), tag: "default"}
	if before, after, ok := strings.Cut(ref.name, ":"); ok {
		ref.name, ref.tag = before, after
	}
	if before, after, ok := strings.Cut(ref.name, "/"); ok {
		ref.namespace, ref.name = before, after
	}
	switch {
	case len(text) > 300 || !namePart.MatchString(ref.name) || ref.namespace != "" && !namePart.MatchString(ref.namespace):
		return ref, squad.Invalid("templateID", "%q is not the name of a template: letters, digits, - and _ only", text)
	case !tagPart.MatchString(ref.tag) || uuidForm.MatchString(ref.tag):
		return ref, squad.Invalid("templateID", "%q is not a tag: letters, digits, -, _ and . only", ref.tag)
	}
	return ref, nil
}

// namespaceOf is the owner's name as it stands in references.
func namespaceOf(owner string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(owner))
}

// find returns the template of a reference that the owner may use. The caller
// holds the lock.
func (l *library) find(owner string, ref reference) *template {
	if t := l.templates[ref.name]; t != nil && ref.namespace == "" && (t.Owner == owner || t.Public) {
		return t
	}
	for _, t := range l.templates {
		mine := t.Owner == owner && (ref.namespace == "" || ref.namespace == namespaceOf(owner))
		public := t.Public && ref.namespace == namespaceOf(t.Owner)
		if (mine || public) && slices.Contains(t.Names, ref.name) {
			return t
		}
	}
	return nil
}

func (t *template) build(id string) *build {
	for _, b := range t.Builds {
		if b.ID == id {
			return b
		}
	}
	return nil
}

// resolve finds what to start for a reference.
func (l *library) resolve(owner, text string) (resolved, error) {
	ref, err := parseReference(text)
	if err != nil {
		return resolved{}, err
	}
	if ref.name == baseTemplate && (ref.namespace == "" || ref.namespace == "e2b") {
		return resolved{ID: baseTemplate, Alias: baseTemplate, Image: baseTemplate}, nil
	}
	if ref.name == interpreterTemplate && ref.namespace == "" {
		return resolved{ID: interpreterTemplate, Alias: interpreterTemplate, Image: baseTemplate}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.find(owner, ref)
	if t == nil {
		return resolved{}, squad.Errorf(squad.CodeNotFound, "template '%s' not found", text)
	}
	b := t.build(t.Tags[ref.tag].Build)
	if b == nil || b.Status != buildReady {
		return resolved{}, squad.Errorf(squad.CodeNotFound, "template '%s' has no finished build with tag '%s'", text, ref.tag)
	}
	out := resolved{
		ID: t.ID, Image: b.Image, Base: b.Base, CPU: b.CPU, MemoryMB: b.MemoryMB,
		Env: maps.Clone(b.Env), Workdir: b.Workdir, User: b.User,
	}
	if len(t.Names) > 0 {
		out.Alias = t.Names[0]
	}
	return out, nil
}

// change finds an owner's own template by identifier or name, alters and saves it.
func (l *library) change(owner, text string, alter func(*template) error) error {
	ref, err := parseReference(text)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.find(owner, ref)
	if t == nil || t.Owner != owner {
		return squad.Errorf(squad.CodeNotFound, "template '%s' not found", text)
	}
	if err := alter(t); err != nil {
		return err
	}
	t.UpdatedAt = l.now().UTC()
	return save(l.dir, t.ID, t)
}

// delete removes an owner's template; of a snapshot's or build's image the
// sweep takes care.
func (l *library) delete(owner, text string) error {
	ref, err := parseReference(text)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.find(owner, ref)
	if t == nil || t.Owner != owner {
		return squad.Errorf(squad.CodeNotFound, "template '%s' not found", text)
	}
	delete(l.templates, t.ID)
	return forget(l.dir, t.ID)
}

// images returns the host's names of all that templates refer to.
func (l *library) images() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	used := map[string]bool{}
	for _, t := range l.templates {
		for _, b := range t.Builds {
			used[b.Image], used[b.Base] = true, true
		}
	}
	return used
}
