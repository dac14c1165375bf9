package e2bserver

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	squad "agentsquad"
)

// Bounds on an uploaded layer when unpacked.
const (
	maxEntries  = 200_000
	maxUnpacked = 8 << 30
	uploadTime  = time.Hour
	// maxLayers bounds what one owner keeps here, layerAge for how long.
	maxLayers = 20 << 30
	layerAge  = 7 * 24 * time.Hour
)

var layerHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// layerPath is where a layer of an owner is kept. Owners do not share: whether
// a file exists says something about it.
func (s *Server) layerPath(owner, hash string) string {
	return filepath.Join(s.uploadDir(), layerOwner(owner)+hash+".tar.gz")
}

func layerOwner(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8]) + "-"
}

// layers lists what was uploaded.
func (s *Server) layers() []os.FileInfo {
	entries, err := os.ReadDir(s.uploadDir())
	if err != nil {
		return nil
	}
	var all []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			all = append(all, info)
		}
	}
	return all
}

// roomFor refuses an upload that would fill the disk.
func (s *Server) roomFor(owner string, size int64) error {
	total := size
	for _, info := range s.layers() {
		if strings.HasPrefix(info.Name(), layerOwner(owner)) {
			total += info.Size()
		}
	}
	if total > maxLayers {
		return squad.Errorf(squad.CodeQuota, "Your uploads fill more than %d bytes; they are removed %s after their last use", int64(maxLayers), layerAge)
	}
	return nil
}

// sweepLayers removes layers that no build used for long.
func (s *Server) sweepLayers() {
	for _, info := range s.layers() {
		age := s.cfg.Now().Sub(info.ModTime())
		if age > layerAge || strings.HasPrefix(info.Name(), ".new-") && age > 2*uploadTime {
			_ = os.Remove(filepath.Join(s.uploadDir(), info.Name()))
		}
	}
}

// uploadLink handles GET /templates/{id}/files/{hash}.
func (s *Server) uploadLink(w http.ResponseWriter, r *http.Request, owner string) error {
	hash := r.PathValue("hash")
	if !layerHash.MatchString(hash) {
		return squad.Invalid("hash", "the hash of files must be SHA-256 in hex")
	}
	if err := s.library.change(owner, r.PathValue("id"), func(*template) error { return nil }); err != nil {
		return err
	}
	now := s.cfg.Now()
	if err := os.Chtimes(s.layerPath(owner, hash), now, now); err == nil { // it is there, and wanted
		writeJSON(w, http.StatusCreated, map[string]any{"present": true})
		return nil
	}
	until := s.cfg.Now().Add(uploadTime)
	query := url.Values{
		"owner": {owner}, "until": {strconv.FormatInt(until.Unix(), 10)}, "signature": {s.seed.uploadTag(owner, hash, until)},
	}
	writeJSON(w, http.StatusCreated, map[string]any{
		"present": false, "url": s.publicURL(r) + uploadPrefix + hash + "?" + query.Encode(),
	})
	return nil
}

// publicURL is the address at which the client of a request reaches this server.
func (s *Server) publicURL(r *http.Request) string {
	if s.cfg.PublicURL != "" {
		return strings.TrimSuffix(s.cfg.PublicURL, "/")
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// receiveUpload takes a layer at a signed address.
func (s *Server) receiveUpload(w http.ResponseWriter, r *http.Request) {
	if err := s.takeLayer(w, r); err != nil {
		s.writeError(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) takeLayer(w http.ResponseWriter, r *http.Request) error {
	hash, q := strings.TrimPrefix(r.URL.Path, uploadPrefix), r.URL.Query()
	seconds, err := strconv.ParseInt(q.Get("until"), 10, 64)
	until := time.Unix(seconds, 0)
	switch {
	case r.Method != http.MethodPut:
		return squad.Errorf(squad.CodeNotFound, "Uploads are sent with PUT")
	case !layerHash.MatchString(hash) || err != nil || !same(q.Get("signature"), s.seed.uploadTag(q.Get("owner"), hash, until)):
		return squad.Errorf(squad.CodeForbidden, "The signature of this upload address is wrong")
	case s.cfg.Now().After(until):
		return squad.Errorf(squad.CodeForbidden, "This upload address has expired")
	case r.ContentLength > s.cfg.MaxUpload:
		return squad.Errorf(squad.CodeTooLarge, "An upload may have at most %d bytes", s.cfg.MaxUpload)
	}
	if err := s.roomFor(q.Get("owner"), max(r.ContentLength, 0)); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.uploadDir(), ".new-*")
	if err != nil {
		return fmt.Errorf("store upload: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := io.Copy(f, http.MaxBytesReader(w, r.Body, s.cfg.MaxUpload)); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return squad.Errorf(squad.CodeTooLarge, "An upload may have at most %d bytes", s.cfg.MaxUpload)
		}
		return squad.Wrap(squad.CodeInvalid, err, "The upload was cut off")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("store upload: %w", err)
	}
	if err := checkLayer(f); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), s.layerPath(q.Get("owner"), hash)); err != nil {
		return fmt.Errorf("store upload: %w", err)
	}
	return nil
}

// checkLayer reads an archive to its end and refuses one that would write
// outside its folder or is out of proportion. It is unpacked inside a sandbox
// only, so that this is the second wall, not the first.
func checkLayer(r io.Reader) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return squad.Errorf(squad.CodeInvalid, "The upload is not a tar.gz archive")
	}
	defer zip.Close()
	archive := tar.NewReader(io.LimitReader(zip, maxUnpacked+1))
	var total int64
	for n := 0; ; n++ {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		switch {
		case err != nil:
			return squad.Errorf(squad.CodeInvalid, "The upload is not a whole tar.gz archive")
		case n >= maxEntries:
			return squad.Errorf(squad.CodeTooLarge, "The archive has more than %d entries", maxEntries)
		case !inside(h.Name):
			return squad.Errorf(squad.CodeInvalid, "The archive's entry %q leads outside", h.Name)
		}
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeDir, tar.TypeSymlink:
		case tar.TypeLink:
			if !inside(h.Linkname) {
				return squad.Errorf(squad.CodeInvalid, "The archive's link %q leads outside", h.Name)
			}
		default:
			return squad.Errorf(squad.CodeInvalid, "The archive's entry %q is neither file, folder nor link", h.Name)
		}
		if total += h.Size; total > maxUnpacked {
			return squad.Errorf(squad.CodeTooLarge, "The archive unpacks to more than %d bytes", int64(maxUnpacked))
		}
	}
}

// inside says whether a path of an archive stays below where it is unpacked.
func inside(name string) bool {
	clean := path.Clean(name)
	return name != "" && !path.IsAbs(name) && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.ContainsRune(name, 0)
}
