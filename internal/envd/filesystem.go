package envd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"connectrpc.com/connect"

	"agentsquad/internal/envdpb/filesystem"
)

// files is the service filesystem.Filesystem and the /files endpoints.
type files struct {
	server *Server
	meta   metadata
}

// place resolves a path for the user of an RPC.
func (f *files) place(h http.Header, path string) (string, *account, error) {
	who, err := f.server.rpcUser(h)
	if err != nil {
		return "", nil, err
	}
	_, workdir := f.server.state.defaults()
	full, err := resolvePath(path, who, workdir)
	if err != nil {
		return "", nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return full, who, nil
}

// fileError gives a failure the code that SDKs turn into the right class.
func fileError(err error, path string) error {
	code := connect.CodeInternal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("path '%s' does not exist", path))
	case errors.Is(err, fs.ErrPermission):
		code = connect.CodePermissionDenied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code = connect.CodeResourceExhausted
	case errors.Is(err, errNotDir), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EISDIR):
		code = connect.CodeInvalidArgument
	}
	return connect.NewError(code, err)
}

// Stat describes one file.
func (f *files) Stat(_ context.Context, req *connect.Request[filesystem.StatRequest]) (*connect.Response[filesystem.StatResponse], error) {
	path, _, err := f.place(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	e, err := f.entry(path)
	if err != nil {
		return nil, fileError(err, path)
	}
	return connect.NewResponse(&filesystem.StatResponse{Entry: e}), nil
}

// MakeDir creates a directory and its parents.
func (f *files) MakeDir(_ context.Context, req *connect.Request[filesystem.MakeDirRequest]) (*connect.Response[filesystem.MakeDirResponse], error) {
	path, who, err := f.place(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return nil, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("directory already exists: %s", path))
		}
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path already exists but it is not a directory: %s", path))
	}
	if err := makeDirs(path, who); err != nil {
		return nil, fileError(err, path)
	}
	e, err := f.entry(path)
	if err != nil {
		return nil, fileError(err, path)
	}
	return connect.NewResponse(&filesystem.MakeDirResponse{Entry: e}), nil
}

// Move renames a file or directory, creating the parents of its new place.
func (f *files) Move(ctx context.Context, req *connect.Request[filesystem.MoveRequest]) (*connect.Response[filesystem.MoveResponse], error) {
	from, who, err := f.place(req.Header(), req.Msg.GetSource())
	if err != nil {
		return nil, err
	}
	to, _, err := f.place(req.Header(), req.Msg.GetDestination())
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(from); err != nil {
		return nil, fileError(err, from)
	}
	if err := makeDirs(filepath.Dir(to), who); err != nil {
		return nil, fileError(err, to)
	}
	err = os.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		err = moveAcross(ctx, from, to)
	}
	if err != nil {
		return nil, fileError(err, from)
	}
	e, err := f.entry(to)
	if err != nil {
		return nil, fileError(err, to)
	}
	return connect.NewResponse(&filesystem.MoveResponse{Entry: e}), nil
}

// Remove deletes a file or a whole directory; a missing one is no error.
func (f *files) Remove(_ context.Context, req *connect.Request[filesystem.RemoveRequest]) (*connect.Response[filesystem.RemoveResponse], error) {
	path, _, err := f.place(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the root directory cannot be removed"))
	}
	if err := os.RemoveAll(path); err != nil {
		return nil, fileError(err, path)
	}
	return connect.NewResponse(&filesystem.RemoveResponse{}), nil
}

const (
	maxDepth   = 64
	maxEntries = 200_000 // a listing is one message: it must fit in memory
)

// ListDir lists a directory down to the given depth. Links to directories are
// listed, not entered; only the asked path itself is followed.
func (f *files) ListDir(_ context.Context, req *connect.Request[filesystem.ListDirRequest]) (*connect.Response[filesystem.ListDirResponse], error) {
	path, _, err := f.place(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	real, err := directory(path)
	if err != nil {
		return nil, err
	}
	depth := int(min(max(req.Msg.GetDepth(), 1), maxDepth))
	out := &filesystem.ListDirResponse{}
	err = filepath.WalkDir(real, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == real {
			if at == real {
				return err
			}
			return nil // vanished or unreadable below: list the rest
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(at, real), "/")
		info, err := d.Info()
		if err != nil {
			return nil
		}
		e := f.describe(at, info)
		e.Path = filepath.Join(path, rel)
		out.Entries = append(out.Entries, e)
		if len(out.Entries) > maxEntries {
			return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("more than %d entries under '%s': list a smaller part", maxEntries, path))
		}
		if d.IsDir() && strings.Count(rel, "/")+1 >= depth {
			return filepath.SkipDir
		}
		return nil
	})
	var coded *connect.Error
	if errors.As(err, &coded) {
		return nil, coded
	}
	if err != nil {
		return nil, fileError(err, path)
	}
	return connect.NewResponse(out), nil
}

// directory resolves links in path and makes sure that it is a directory.
func directory(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fileError(err, path)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fileError(err, path)
	}
	if !info.IsDir() {
		return "", connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path '%s' is not a directory", path))
	}
	return real, nil
}
