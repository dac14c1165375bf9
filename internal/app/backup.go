package app

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsquad"
	"agentsquad/internal/config"
	"agentsquad/internal/store"
)

// A backup is a tar file: the database first, then the files of the data folder
// that cannot be made again.
const (
	backupDatabase = "database"
	backupFiles    = "files/"
)

// Backup writes everything that the installation keeps into one file, readable
// by this user only. The server may run meanwhile. It returns the file's size.
func Backup(ctx context.Context, cfg *config.Config, file string) (int64, error) {
	s, err := store.Open(ctx, store.Config{URL: cfg.DatabaseOrDefault()})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	out, err := os.CreateTemp(filepath.Dir(file), ".squad-backup-*")
	if err != nil {
		return 0, fmt.Errorf("write backup: %w", err)
	}
	defer os.Remove(out.Name()) // after a success it has another name
	tw := tar.NewWriter(out)
	err = errors.Join(backupStore(ctx, s, tw), backupFolders(cfg, tw), tw.Close())
	size, seekErr := out.Seek(0, io.SeekCurrent)
	if err = errors.Join(err, seekErr, out.Sync(), out.Close()); err != nil {
		return 0, fmt.Errorf("write backup: %w", err)
	}
	return size, os.Rename(out.Name(), file)
}

// backupStore writes the database through a temporary file, since an archive
// wants to know sizes first.
func backupStore(ctx context.Context, s *store.Store, tw *tar.Writer) error {
	tmp, err := os.CreateTemp("", "squad-database-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if err := s.Backup(ctx, tmp); err != nil {
		return err
	}
	return addFile(tw, backupDatabase, tmp)
}

// places are the files and folders that a backup holds, by the name they have in it.
func places(c *config.Config) map[string]string {
	m := map[string]string{
		"key": filepath.Join(c.Data, "key"), "config.yaml": filepath.Join(c.Data, "config.yaml"), "archive": c.ArchiveDir(), "repos": c.ReposDir(),
	}
	if m["repos"] == "" {
		m["repos"] = filepath.Join(c.Data, "repos")
	}
	return m
}

// backupFolders writes the seal key, the settings, the local forge and the archive of
// logs. In a repository the refs go before the objects, so that what a ref names is
// there.
func backupFolders(cfg *config.Config, tw *tar.Writer) error {
	files := map[string]string{} // by name in the backup
	for part, place := range places(cfg) {
		err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err == nil && d.IsDir() && part == "repos" && path == cfg.ArchiveDir():
				return filepath.SkipDir // a part of its own
			case err != nil || !d.Type().IsRegular():
				return err
			}
			rel, err := filepath.Rel(place, path)
			files[filepath.ToSlash(filepath.Join(part, rel))] = path
			return err
		})
		if err != nil {
			return err
		}
	}
	names := slices.Sorted(maps.Keys(files))
	slices.SortStableFunc(names, func(a, b string) int { return isObject(a) - isObject(b) })
	for _, name := range names {
		f, err := os.Open(files[name])
		if errors.Is(err, fs.ErrNotExist) {
			continue // packed away by git since we looked
		}
		if err != nil {
			return err
		}
		err = addFile(tw, backupFiles+name, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func isObject(name string) int {
	if strings.Contains(name, "/objects/") {
		return 1
	}
	return 0
}

func addFile(tw *tar.Writer, name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime()}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(tw, io.LimitReader(f, info.Size()))
	return err
}

// Restore fills an empty data folder and an empty database from a backup.
func Restore(ctx context.Context, cfg *config.Config, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return squad.Wrap(squad.CodeInvalid, err, "the backup %s cannot be read", file)
	}
	defer in.Close()
	for _, name := range []string{"key", "repos", "squad.db"} {
		if _, err := os.Lstat(filepath.Join(cfg.Data, name)); err == nil {
			return squad.Errorf(squad.CodeConflict, "%s is not empty: it has %s; restore into a new data folder", cfg.Data, name)
		}
	}
	folder, err := openFolder(cfg.Data)
	if err != nil {
		return err
	}
	defer folder.close() //nolint:errcheck // only the lock is given back
	tr := tar.NewReader(in)
	h, err := tr.Next()
	if err != nil || h.Name != backupDatabase {
		return squad.Errorf(squad.CodeInvalid, "%s is no backup of Agent Squad", file)
	}
	if err := store.Restore(ctx, store.Config{URL: cfg.DatabaseOrDefault()}, tr); err != nil {
		return err
	}
	return restoreFiles(cfg, tr)
}

// restoreFiles writes to the places of a backup and nowhere else: the file may come
// from anyone.
func restoreFiles(cfg *config.Config, tr *tar.Reader) error {
	places := places(cfg)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read backup: %w", err)
		}
		name, ok := strings.CutPrefix(h.Name, backupFiles)
		part, rest, _ := strings.Cut(name, "/")
		place := places[part]
		if !ok || h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || place == "" {
			return squad.Errorf(squad.CodeInvalid, "the backup holds %q, which does not belong there", h.Name)
		}
		if rest == "" {
			place, rest = filepath.Dir(place), filepath.Base(place)
		}
		if err := restoreFile(place, rest, fs.FileMode(h.Mode).Perm(), tr); err != nil {
			return fmt.Errorf("restore %s: %w", name, err)
		}
	}
}

// restoreFile writes one file below a folder; links do not lead out of it.
func restoreFile(dir, name string, mode fs.FileMode, r io.Reader) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if folder := filepath.Dir(name); folder != "." {
		if err := root.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
