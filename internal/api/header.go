package api

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// pagePolicy lets the page run its own files and nothing else. Styles may be
// inline because the terminal and the positioned menus set them at run time.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; " +
	"font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// apiPolicy is for answers that are no page: nothing in them may ever run.
const apiPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
		if infoOf(r.Context()).secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if isAPI(r.URL.Path) {
			h.Set("Content-Security-Policy", apiPolicy)
			h.Set("Cache-Control", "no-store")
			h.Add("Vary", "Authorization, Cookie")
		} else {
			h.Set("Content-Security-Policy", pagePolicy)
		}
		next.ServeHTTP(w, r)
	})
}

func isAPI(path string) bool {
	return strings.HasPrefix(path, "/api/") || path == "/mcp" || strings.HasPrefix(path, "/mcp/")
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// compress gzips JSON answers to reads. Answers to writes may carry a fresh
// secret next to what the caller sent, so they are left alone; streams are too.
func compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !isAPI(r.URL.Path) || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		zw := &zipper{ResponseWriter: w}
		defer zw.close()
		next.ServeHTTP(zw, r)
	})
}

// zipper decides at the first write of at least minZip bytes.
type zipper struct {
	http.ResponseWriter
	zip     *gzip.Writer
	decided bool
}

const minZip = 1 << 10

func (z *zipper) WriteHeader(status int) {
	if status >= 200 && !z.decided && z.Header().Get("Content-Length") != "" {
		z.decided = true
	}
	if status >= 200 && !z.decided && status == http.StatusOK && compressible(z.Header()) {
		z.start()
	}
	if status >= 200 {
		z.decided = true
	}
	z.ResponseWriter.WriteHeader(status)
}

func (z *zipper) Write(p []byte) (int, error) {
	if !z.decided {
		z.decided = true
		if len(p) >= minZip && compressible(z.Header()) {
			z.start()
		}
	}
	if z.zip != nil {
		return z.zip.Write(p)
	}
	return z.ResponseWriter.Write(p)
}

func (z *zipper) start() {
	h := z.Header()
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	h.Del("Content-Length")
	z.zip = gzipWriters.Get().(*gzip.Writer)
	z.zip.Reset(z.ResponseWriter)
}

func (z *zipper) close() {
	if z.zip == nil {
		return
	}
	_ = z.zip.Close() // the client has gone: nobody to tell
	z.zip.Reset(nil)
	gzipWriters.Put(z.zip)
	z.zip = nil
}

func (z *zipper) Unwrap() http.ResponseWriter { return z.ResponseWriter }

func compressible(h http.Header) bool {
	ct := h.Get("Content-Type")
	return h.Get("Content-Encoding") == "" && (strings.HasPrefix(ct, "application/json") || strings.HasPrefix(ct, "application/openapi+json"))
}
