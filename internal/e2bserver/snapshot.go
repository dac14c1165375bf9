package e2bserver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	squad "agentsquad"
)

// snapshotID is what a snapshot is called: by its name if it has one.
func (t *template) snapshotID(tagName string) string {
	if len(t.Names) > 0 {
		return namespaceOf(t.Owner) + "/" + t.Names[0] + ":" + tagName
	}
	return t.ID + ":" + tagName
}

func (t *template) info(tagName string) snapshotInfo {
	names := []string{}
	for _, n := range t.Names {
		names = append(names, namespaceOf(t.Owner)+"/"+n+":"+tagName)
	}
	return snapshotInfo{SnapshotID: t.snapshotID(tagName), Names: names}
}

// snapshot handles POST /sandboxes/{id}/snapshots: the sandbox goes on, and what
// it is now can be started again.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, owner string) error {
	var body struct {
		Name string `json:"name"`
	}
	if err := decode(w, r, &body, true); err != nil {
		return err
	}
	ref := reference{tag: "default"}
	if body.Name != "" {
		var err error
		if ref, err = parseReference(body.Name); err != nil {
			return err
		}
		if err := s.library.mayName(owner, ref, true); err != nil {
			return err
		}
	}
	return s.withBox(r, owner, func(ctx context.Context, b *box) error {
		rec := b.view()
		if rec.State != running {
			return squad.Errorf(squad.CodeConflict, "Sandbox %q is paused", b.id)
		}
		ctx, cancel := detach(ctx)
		defer cancel()
		image := imagePrefix + randomLetters(20)
		err := s.interrupted(b, func() error { return b.machine.Snapshot(ctx, image) })
		if err != nil {
			return fmt.Errorf("snapshot sandbox %s: %w", b.id, err)
		}
		info, err := s.library.addSnapshot(rec, ref, image)
		if err != nil {
			return err
		}
		s.note(b, "info", "snapshot "+info.SnapshotID+" taken")
		writeJSON(w, http.StatusCreated, info)
		return nil
	})
}

// interrupted runs a change that closes the sandbox's tunnel for a moment and
// gives it a new run afterwards: connections of the old one are dead.
func (s *Server) interrupted(b *box, do func() error) error {
	err := do()
	b.mu.Lock()
	run := b.run
	b.mu.Unlock()
	if run != nil {
		run.drop()
	}
	return err
}

// mayName says whether an owner may give a name to a template, or a snapshot.
func (l *library) mayName(owner string, ref reference, snapshot bool) error {
	if ref.namespace != "" && ref.namespace != namespaceOf(owner) {
		return squad.Errorf(squad.CodeForbidden, "Namespace %q is not yours", ref.namespace)
	}
	if ref.name == baseTemplate || ref.name == interpreterTemplate {
		return squad.Errorf(squad.CodeForbidden, "The name %q is taken by the server", ref.name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.find(owner, ref); t != nil && t.Owner == owner && t.Snapshot != snapshot {
		return squad.Errorf(squad.CodeConflict, "The name %q is taken by a template of another kind", ref.name)
	}
	return nil
}

// addSnapshot writes a snapshot down under its name.
func (l *library) addSnapshot(rec record, ref reference, image string) (snapshotInfo, error) {
	now := l.now().UTC()
	b := &build{
		ID: uuid.NewString(), Status: buildReady, Image: image, Base: rec.Base, CPU: rec.CPU, MemoryMB: rec.MemoryMB,
		Env: rec.Env, Workdir: rec.Workdir, User: rec.User, CreatedAt: now, FinishedAt: now,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var t *template
	if ref.name != "" {
		t = l.find(rec.Owner, ref)
	}
	if t == nil || t.Owner != rec.Owner {
		t = &template{ID: randomLetters(20), Owner: rec.Owner, Snapshot: true, Tags: map[string]tag{}, CreatedAt: now}
		if ref.name != "" {
			t.Names = []string{ref.name}
		}
	}
	t.CPU, t.MemoryMB, t.SandboxID, t.UpdatedAt = rec.CPU, rec.MemoryMB, rec.ID, now
	t.Tags[ref.tag] = tag{Build: b.ID, CreatedAt: now}
	t.Builds = append(t.Builds, b)
	t.prune()
	l.templates[t.ID] = t
	return t.info(ref.tag), save(l.dir, t.ID, t)
}

// keptFailures is how many failed builds of a template are kept for reading.
const keptFailures = 10

// prune drops finished builds that no tag refers to, but the newest and some
// failed ones.
func (t *template) prune() {
	used := map[string]bool{t.Builds[len(t.Builds)-1].ID: true}
	for _, g := range t.Tags {
		used[g.Build] = true
	}
	failed := 0
	for _, b := range slices.Backward(t.Builds) {
		if b.Status == buildError && failed < keptFailures {
			failed++
			used[b.ID] = true
		}
	}
	t.Builds = slices.DeleteFunc(t.Builds, func(b *build) bool {
		return (b.Status == buildReady || b.Status == buildError) && !used[b.ID]
	})
}

// snapshots handles GET /snapshots.
func (s *Server) snapshots(w http.ResponseWriter, r *http.Request, owner string) error {
	q := r.URL.Query()
	limit, err := pageLimit(q.Get("limit"))
	if err != nil {
		return err
	}
	after, err := parseCursor(q.Get("nextToken"))
	if err != nil {
		return err
	}
	var ref reference
	if name := q.Get("name"); name != "" {
		if ref, err = parseReference(name); err != nil {
			return err
		}
	}
	found := s.library.snapshotsOf(owner, bareID(q.Get("sandboxID")), ref)
	found = slices.DeleteFunc(found, func(f foundSnapshot) bool {
		return after.id != "" && cmp.Or(f.at.Compare(after.at), cmp.Compare(f.id, after.id)) >= 0
	})
	if len(found) > limit {
		found = found[:limit]
		w.Header().Set("X-Next-Token", found[limit-1].String())
	}
	out := []snapshotInfo{}
	for _, f := range found {
		out = append(out, f.info)
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

type foundSnapshot struct {
	cursor
	info snapshotInfo
}

// snapshotsOf lists snapshots, newest first.
func (l *library) snapshotsOf(owner, sandboxID string, ref reference) []foundSnapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []foundSnapshot
	for _, t := range l.templates {
		if !t.Snapshot || t.Owner != owner || sandboxID != "" && t.SandboxID != sandboxID ||
			ref.name != "" && t.ID != ref.name && !slices.Contains(t.Names, ref.name) ||
			ref.namespace != "" && ref.namespace != namespaceOf(owner) {
			continue
		}
		for name, g := range t.Tags {
			if ref.name == "" || name == ref.tag {
				found = append(found, foundSnapshot{cursor{g.CreatedAt, t.ID + ":" + name}, t.info(name)})
			}
		}
	}
	slices.SortFunc(found, func(a, b foundSnapshot) int {
		return -cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id))
	})
	return found
}
