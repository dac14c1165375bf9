package envd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// target checks who asks and resolves the path of a /files request. It answers
// the request itself when it returns false.
func (f *files) target(w http.ResponseWriter, r *http.Request, op string) (*account, string, bool) {
	if err := f.server.allowFile(r, op); err != nil {
		fail(w, http.StatusUnauthorized, err.Error())
		return nil, "", false
	}
	q := r.URL.Query()
	who, err := f.server.namedUser(q.Get("username"))
	if err != nil {
		fail(w, http.StatusUnauthorized, err.Error())
		return nil, "", false
	}
	_, workdir := f.server.state.defaults()
	path, err := resolvePath(q.Get("path"), who, workdir)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return nil, "", false
	}
	return who, path, true
}

// download serves GET /files: whole or in ranges, plain or gzipped.
func (f *files) download(w http.ResponseWriter, r *http.Request) {
	_, path, ok := f.target(w, r, "read")
	if !ok {
		return
	}
	// Without O_NONBLOCK a named pipe would block here for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		failOpen(w, err, path)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		failOpen(w, err, path)
		return
	}
	if !info.Mode().IsRegular() {
		what := "a directory"
		if !info.IsDir() {
			what = "not a regular file"
		}
		fail(w, http.StatusBadRequest, fmt.Sprintf("path '%s' is %s", path, what))
		return
	}
	encoding, err := chooseEncoding(r)
	if err != nil {
		fail(w, http.StatusNotAcceptable, err.Error())
		return
	}
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": filepath.Base(path)}))
	h.Set("X-Content-Type-Options", "nosniff")
	switch {
	case encoding == "gzip":
		sendGzip(w, r, file, path)
	case info.Size() == 0: // also /proc and /sys, whose files have no size yet content
		h.Set("Content-Type", contentType(path))
		if _, err := io.Copy(w, file); err != nil {
			panic(http.ErrAbortHandler)
		}
	default:
		http.ServeContent(wideWriter{w}, r, path, info.ModTime(), file)
	}
}

// wideWriter copies in larger steps than the standard response does.
type wideWriter struct{ http.ResponseWriter }

// ReadFrom copies from r to the response.
func (w wideWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w.ResponseWriter}, struct{ io.Reader }{r}, make([]byte, 256<<10))
}

func sendGzip(w http.ResponseWriter, r *http.Request, file io.Reader, path string) {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Type", contentType(path))
	if r.Method == http.MethodHead {
		return
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if _, err := io.Copy(z, file); err != nil {
		panic(http.ErrAbortHandler) // a cut stream, so that nobody takes it for whole
	}
	z.Close()
}

func contentType(path string) string {
	if t := mime.TypeByExtension(filepath.Ext(path)); t != "" {
		return t
	}
	return "application/octet-stream"
}

func failOpen(w http.ResponseWriter, err error, path string) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		fail(w, http.StatusNotFound, fmt.Sprintf("path '%s' does not exist", path))
	case errors.Is(err, fs.ErrPermission):
		fail(w, http.StatusForbidden, fmt.Sprintf("path '%s' cannot be read: permission denied", path))
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP):
		fail(w, http.StatusBadRequest, err.Error())
	default:
		fail(w, http.StatusInternalServerError, err.Error())
	}
}

// chooseEncoding picks "gzip" or "" (as is) by the Accept-Encoding header. A
// range is always of the plain bytes.
func chooseEncoding(r *http.Request) (string, error) {
	header := r.Header.Get("Accept-Encoding")
	if header == "" || r.Header.Get("Range") != "" {
		return "", nil
	}
	weights := map[string]float64{}
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		name = strings.ToLower(strings.TrimSpace(name))
		q := 1.0
		if v, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q="); ok {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || n < 0 || n > 1 {
				return "", fmt.Errorf("the Accept-Encoding header is malformed: %q", header)
			}
			q = n
		}
		weights[name] = q
	}
	any, hasAny := weights["*"]
	gz, named := weights["gzip"]
	plain, hasPlain := weights["identity"]
	if !hasPlain && hasAny {
		plain, hasPlain = any, true
	}
	switch {
	case named && gz > 0 && (!hasPlain || gz >= plain):
		return "gzip", nil
	case !hasPlain || plain > 0:
		return "", nil
	case gz > 0:
		return "gzip", nil
	}
	return "", fmt.Errorf("no acceptable encoding in %q, gzip and identity are supported", header)
}
