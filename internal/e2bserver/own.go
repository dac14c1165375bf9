package e2bserver

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"

	"github.com/google/uuid"

	squad "agentsquad"
)

// insidePath is what processes find in PATH where a template says nothing.
const insidePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// AddFolder makes a template of the server's own, or a new version of it: base, and
// at /opt/<name> the files of a tar archive (plain or gzipped), whose bin and
// node_modules/.bin come first in PATH. Executions use it by its name, E2B keys
// as squad/<name>.
func (s *Server) AddFolder(ctx context.Context, name string, archive io.Reader) (squad.Template, error) {
	ref, err := parseReference(name)
	if err != nil {
		return squad.Template{}, err
	}
	if ref.namespace != "" || ref.tag != "default" || len(name) > 64 {
		return squad.Template{}, squad.Invalid("name", "the name of a template is 1 to 64 of a-z, 0-9, - and _")
	}
	if err := s.library.mayName(OwnerSquad, ref, false); err != nil {
		return squad.Template{}, err
	}
	plain, err := unzipped(archive)
	if err != nil {
		return squad.Template{}, err
	}
	at, image := "/opt/"+ref.name, imagePrefix+"folder-"+randomLetters(20)
	size, err := s.host.ImportFolder(ctx, plain, at, image)
	if err != nil {
		return squad.Template{}, err
	}
	now := s.cfg.Now().UTC()
	row, err := s.addReady(ref, &build{
		ID: uuid.NewString(), Status: buildReady, Image: image, Tags: []string{"default"}, SizeBytes: size, CreatedAt: now, FinishedAt: now,
		Env: map[string]string{"PATH": at + "/bin:" + at + "/node_modules/.bin:" + insidePath}, Workdir: "/home/user", User: "user",
	})
	s.sweep(context.WithoutCancel(ctx))
	return row, err
}

// unzipped is an archive without its compression.
func unzipped(r io.Reader) (io.Reader, error) {
	buf := bufio.NewReader(r)
	if magic, _ := buf.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buf, nil
	}
	z, err := gzip.NewReader(buf)
	if err != nil {
		return nil, squad.Wrap(squad.CodeInvalid, err, "the archive is neither tar nor tar.gz")
	}
	return z, nil
}

// addReady puts a finished build of the server's own under its name, for everybody.
func (s *Server) addReady(ref reference, b *build) (squad.Template, error) {
	l := s.library
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.find(OwnerSquad, ref)
	if t == nil || t.Owner != OwnerSquad {
		t = &template{ID: randomLetters(20), Owner: OwnerSquad, Public: true, Names: []string{ref.name}, Tags: map[string]tag{}, CreatedAt: b.CreatedAt}
		l.templates[t.ID] = t
	}
	t.CPU, t.MemoryMB, t.Builds, t.UpdatedAt = 0, 0, []*build{b}, b.FinishedAt
	t.Tags["default"] = tag{Build: b.ID, CreatedAt: b.FinishedAt}
	return s.templateRow(t), save(l.dir, t.ID, t)
}
