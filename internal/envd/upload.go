package envd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// uploaded is one file of an upload's reply.
type uploaded struct {
	Path     string            `json:"path"`
	Name     string            `json:"name"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// httpError is a failure that knows its status.
type httpError struct {
	status  int
	message string
}

func (e *httpError) Error() string { return e.message }

func refusef(status int, format string, args ...any) error {
	return &httpError{status, fmt.Sprintf(format, args...)}
}

// failWith answers with the status an error carries or implies.
func failWith(w http.ResponseWriter, err error) {
	var coded *httpError
	switch {
	case errors.As(err, &coded):
		fail(w, coded.status, coded.message)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		fail(w, http.StatusInsufficientStorage, "not enough disk space available")
	case errors.Is(err, fs.ErrPermission):
		fail(w, http.StatusForbidden, err.Error())
	case errors.Is(err, errNotDir), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP):
		fail(w, http.StatusBadRequest, err.Error())
	default:
		fail(w, http.StatusInternalServerError, err.Error())
	}
}

// upload serves POST /files: one file as it is, or many as a form.
func (f *files) upload(w http.ResponseWriter, r *http.Request) {
	who, path, ok := f.target(w, r, "write")
	if !ok {
		return
	}
	if r.URL.Query().Get("path") == "" {
		path = ""
	}
	out, err := f.receive(r, who, path)
	if err != nil {
		failWith(w, err)
		return
	}
	writeJSON(w, out)
}

func (f *files) receive(r *http.Request, who *account, path string) ([]uploaded, error) {
	meta, err := parseMetadata(r.Header)
	if err != nil {
		return nil, refusef(http.StatusBadRequest, "%s", err)
	}
	body, err := decoded(r)
	if err != nil {
		return nil, err
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, refusef(http.StatusBadRequest, "the Content-Type header is missing or malformed")
	}
	switch kind {
	case "application/octet-stream":
		if path == "" {
			return nil, refusef(http.StatusBadRequest, "the query parameter path is required for application/octet-stream")
		}
		one, err := f.store(path, body, who, meta)
		if err != nil {
			return nil, err
		}
		return []uploaded{one}, nil
	case "multipart/form-data":
		return f.receiveForm(multipart.NewReader(body, params["boundary"]), who, path, meta)
	}
	return nil, refusef(http.StatusBadRequest, "unsupported Content-Type %q, send multipart/form-data or application/octet-stream", kind)
}

func decoded(r *http.Request) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))) {
	case "", "identity":
		return r.Body, nil
	case "gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, refusef(http.StatusBadRequest, "the body is not valid gzip: %s", err)
		}
		return z, nil
	}
	return nil, refusef(http.StatusBadRequest, "unsupported Content-Encoding %q", r.Header.Get("Content-Encoding"))
}

// receiveForm stores the parts named "file" as they arrive. Their file names are
// whole paths unless the request itself names one.
func (f *files) receiveForm(form *multipart.Reader, who *account, path string, meta map[string]string) ([]uploaded, error) {
	out := []uploaded{}
	seen := map[string]bool{}
	for {
		part, err := form.NextPart()
		if err == io.EOF { //nolint:errorlint // a wrapped one is a form without its last boundary
			return out, nil
		}
		if err != nil {
			return nil, refusef(http.StatusBadRequest, "the form is malformed: %s", err)
		}
		if part.FormName() != "file" {
			continue
		}
		at := path
		if at == "" {
			if at, err = partPath(part, who); err != nil {
				return nil, refusef(http.StatusBadRequest, "%s", err)
			}
		}
		if seen[at] {
			return nil, refusef(http.StatusBadRequest, "you cannot upload multiple files to the same path '%s' in one upload request, only the first was written", at)
		}
		seen[at] = true
		one, err := f.store(at, part, who, meta)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
}

// partPath is the path in a part's file name; the standard accessor keeps only
// its last element.
func partPath(part *multipart.Part, who *account) (string, error) {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return "", fmt.Errorf("the part's Content-Disposition is malformed: %w", err)
	}
	name := params["filename"]
	if name == "" {
		return "", errors.New("a part has no filename and the request names no path")
	}
	return resolvePath(name, who, "")
}

// store writes one file: parents are made, an old file is cut, the new one
// belongs to who. Of a file that did not come whole nothing is left: half of it may be
// all that the disk had room for.
func (f *files) store(path string, from io.Reader, who *account, meta map[string]string) (one uploaded, err error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return uploaded{}, refusef(http.StatusBadRequest, "path is a directory: %s", path)
	}
	if err := makeDirs(filepath.Dir(path), who); err != nil {
		return uploaded{}, fmt.Errorf("create parents of '%s': %w", path, err)
	}
	_, missing := os.Lstat(path)
	// Without O_NONBLOCK a named pipe that nobody reads would block here for ever.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return uploaded{}, fmt.Errorf("create '%s': %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = file.Truncate(0)
			if missing != nil {
				_ = os.Remove(path)
			}
		}
		file.Close()
	}()
	if os.Geteuid() == 0 {
		if err := file.Chown(int(who.uid), int(who.gid)); err != nil {
			return uploaded{}, fmt.Errorf("give '%s' to %s: %w", path, who.name, err)
		}
	}
	if _, err := copyBody(file, from); err != nil {
		return uploaded{}, fmt.Errorf("write '%s': %w", path, err)
	}
	if err := f.meta.replace(file, meta); err != nil {
		return uploaded{}, fmt.Errorf("write '%s': %w", path, err)
	}
	if err := file.Close(); err != nil {
		return uploaded{}, fmt.Errorf("write '%s': %w", path, err)
	}
	return uploaded{Path: path, Name: filepath.Base(path), Type: "file", Metadata: meta}, nil
}

// copyBody copies with a buffer of a size that keeps system calls rare. A body
// that ends early is the caller's fault, not the disk's.
func copyBody(to *os.File, from io.Reader) (int64, error) {
	source := &bodyReader{from: from}
	n, err := io.CopyBuffer(struct{ io.Writer }{to}, source, make([]byte, 256<<10))
	if source.err != nil {
		return n, refusef(http.StatusBadRequest, "the body ended early or is malformed: %s", source.err)
	}
	return n, err
}

// bodyReader fills its buffer before it returns, and remembers why reading failed.
type bodyReader struct {
	from io.Reader
	err  error
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m, err := b.from.Read(p[n:])
		n += m
		if err != nil {
			if err != io.EOF { //nolint:errorlint // a wrapped one is not the end
				b.err = err
			}
			return n, err
		}
	}
	return n, nil
}
