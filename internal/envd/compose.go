package envd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"
)

const maxSources = 10_000

// compose serves POST /files/compose: files are joined in order into one, and
// removed. The result appears whole or not at all.
func (f *files) compose(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Sources     []string `json:"source_paths"`
		Destination string   `json:"destination"`
		Username    string   `json:"username"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<20)).Decode(&req); err != nil {
		fail(w, http.StatusBadRequest, "the body is not valid JSON: "+err.Error())
		return
	}
	who, err := f.server.namedUser(req.Username)
	if err != nil {
		fail(w, http.StatusUnauthorized, err.Error())
		return
	}
	paths, err := f.composePaths(req.Sources, req.Destination, who)
	if err != nil {
		failWith(w, err)
		return
	}
	to := paths[0]
	if err := f.join(to, paths[1:], who); err != nil {
		failWith(w, err)
		return
	}
	e, err := f.entry(to)
	if err != nil {
		failWith(w, err)
		return
	}
	body, err := protojson.Marshal(e)
	if err != nil {
		failWith(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}

// composePaths resolves the destination and, after it, the sources.
func (f *files) composePaths(sources []string, to string, who *account) ([]string, error) {
	if len(sources) == 0 || len(sources) > maxSources || to == "" {
		return nil, refusef(http.StatusBadRequest, "give a destination and 1 to %d source_paths", maxSources)
	}
	_, workdir := f.server.state.defaults()
	out := make([]string, 0, len(sources)+1)
	for i, path := range append([]string{to}, sources...) {
		full, err := resolvePath(path, who, workdir)
		if err != nil {
			return nil, refusef(http.StatusBadRequest, "%s", err)
		}
		info, err := os.Stat(full)
		switch {
		case i > 0 && errors.Is(err, fs.ErrNotExist):
			return nil, refusef(http.StatusNotFound, "path '%s' does not exist", full)
		case err == nil && !info.Mode().IsRegular():
			return nil, refusef(http.StatusBadRequest, "path '%s' is not a regular file", full)
		case i > 0 && full == out[0]:
			return nil, refusef(http.StatusBadRequest, "the destination '%s' is also a source", full)
		}
		out = append(out, full)
	}
	return out, nil
}

func (f *files) join(to string, sources []string, who *account) error {
	if err := makeDirs(filepath.Dir(to), who); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(to), ".compose-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	for _, source := range sources {
		if err := appendFile(temp, source); err != nil {
			return fmt.Errorf("append '%s': %w", source, err)
		}
	}
	if err := temp.Chmod(0o644); err != nil {
		return err
	}
	if err := giveTo(temp.Name(), who); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), to); err != nil {
		return err
	}
	for _, source := range sources {
		if err := os.Remove(source); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func appendFile(to *os.File, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}
