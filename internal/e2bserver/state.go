package e2bserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// writeFile replaces a file at once, readable by this user only: what is kept
// here carries the environment of sandboxes.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o600)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// save writes a value as JSON under a folder of the state.
func save(dir, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode state of %s: %w", name, err)
	}
	if err := writeFile(filepath.Join(dir, name+".json"), data); err != nil {
		return fmt.Errorf("save state of %s: %w", name, err)
	}
	return nil
}

// forget removes what save wrote; a missing file is no error.
func forget(dir, name string) error {
	err := os.Remove(filepath.Join(dir, name+".json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget state of %s: %w", name, err)
	}
	return nil
}

// load reads all values of a folder. A file that cannot be read is reported by
// bad and left where it is.
func load[T any](dir string, bad func(name string, err error)) ([]T, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list state: %w", err)
	}
	var all []T
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".new-") {
			_ = os.Remove(filepath.Join(dir, name)) // of a write that a crash cut off
			continue
		}
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		var v T
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(data, &v)
		}
		if err != nil {
			bad(name, err)
			continue
		}
		all = append(all, v)
	}
	return all, nil
}
