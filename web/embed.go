// Package web serves the page. Built with the tag embedweb (make build does),
// the page that Vite made is inside the binary; without it, so that go build and
// go test need no Node, a small page says how to get the real one.
//
// It promises that an unknown path without an extension answers the page itself
// (the router in the browser knows the rest), that a missing file is a 404 and
// never the page, and that files with a hash in their name may be kept for ever.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// Handler serves the page at / and below. It answers GET and HEAD only.
func Handler() http.Handler {
	site := &site{files: map[string]file{}}
	root := built()
	if root == nil {
		site.index = newFile("index.html", []byte(stub))
		return site
	}
	_ = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		site.files["/"+name] = newFile(name, body)
		return nil
	})
	site.index = site.files["/index.html"]
	if site.index.body == nil {
		site.index = newFile("index.html", []byte(stub))
	}
	return site
}

// Built says whether the real page is in this binary.
func Built() bool { return built() != nil }

type site struct {
	files map[string]file
	index file
}

type file struct {
	name   string
	body   []byte
	zipped []byte // empty where it would not be smaller
	etag   string
}

func newFile(name string, body []byte) file {
	sum := sha256.Sum256(body)
	f := file{name: name, body: body, etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	var buf bytes.Buffer
	zw, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed+3) // the level is a constant in range
	_, _ = zw.Write(body)                                // to memory: cannot fail
	_ = zw.Close()
	if buf.Len() < len(body) {
		f.zipped = buf.Bytes()
	}
	return f
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	clean := path.Clean("/" + r.URL.Path)
	f, found := s.files[clean]
	switch {
	case found:
	case path.Ext(clean) != "":
		http.NotFound(w, r)
		return
	default:
		f = s.index
	}
	f.serve(w, r, strings.HasPrefix(clean, "/assets/"))
}

func (f file) serve(w http.ResponseWriter, r *http.Request, hashed bool) {
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if hashed {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, etag := f.body, f.etag
	if len(f.zipped) > 0 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body, etag = f.zipped, strings.TrimSuffix(f.etag, `"`)+`-gz"`
	}
	h.Set("ETag", etag)
	if kind := kinds[path.Ext(f.name)]; kind != "" {
		h.Set("Content-Type", kind)
	}
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(body))
}

// kinds are named here because the host's table of types may be missing or odd.
var kinds = map[string]string{
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".svg":   "image/svg+xml",
	".json":  "application/json",
	".wasm":  "application/wasm",
	".woff2": "font/woff2",
}

const stub = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Agent Squad</title></head>
<body style="font:16px/1.6 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1.5rem">
<h1 style="font-size:1.4rem">The server runs; the page is not in this binary</h1>
<p>It was built without the page. Run <code>make build</code> (it needs Node and npm) and start the new <code>bin/squad</code>.</p>
<p>The API is at <code>/api/v1</code>, and the command line can do everything: <code>squad --help</code>.</p>
</body></html>
`
