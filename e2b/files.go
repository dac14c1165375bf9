package e2b

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"time"

	"connectrpc.com/connect"

	pb "agentsquad/internal/envdpb/filesystem"
)

// Files reads and writes the files of a sandbox. Relative paths begin at the
// user's home.
type Files struct {
	sb       *Sandbox
	user     string
	metadata map[string]string
}

// As returns the same files as another user sees and owns them.
func (f *Files) As(user string) *Files {
	return &Files{sb: f.sb, user: user, metadata: f.metadata}
}

// WithMetadata returns the same files; what is written through it carries the
// metadata, in place of what it had, and [Files.Stat] tells it. Keys are lower
// case, both are printable ASCII, all together at most 4096 bytes.
func (f *Files) WithMetadata(metadata map[string]string) *Files {
	return &Files{sb: f.sb, user: f.user, metadata: metadata}
}

// FileType is what a path leads to.
type FileType string

// The types of files. Other marks what cannot be told, such as a broken link.
const (
	TypeFile  FileType = "file"
	TypeDir   FileType = "dir"
	TypeLink  FileType = "symlink"
	TypeOther FileType = ""
)

// FileInfo describes a file. Of a symbolic link it describes the target.
type FileInfo struct {
	Name     string
	Path     string
	Type     FileType
	Size     int64
	Mode     fs.FileMode // permission bits
	Owner    string
	Group    string
	Modified time.Time
	// Target is where a symbolic link leads, fully resolved; "" for others.
	Target string
	// Metadata was given when the file was written.
	Metadata map[string]string
}

// Stat describes one file; [ErrNotFound] says that there is none.
func (f *Files) Stat(ctx context.Context, path string) (FileInfo, error) {
	ctx, cancel := f.sb.bounded(ctx)
	defer cancel()
	resp, err := f.sb.filesystem.Stat(ctx, asUser(f.sb, connect.NewRequest(&pb.StatRequest{Path: path}), f.user))
	if err != nil {
		return FileInfo{}, rpcError("stat file", err)
	}
	return fileInfo(resp.Msg.GetEntry()), nil
}

// Exists says whether there is something at path.
func (f *Files) Exists(ctx context.Context, path string) (bool, error) {
	_, err := f.Stat(ctx, path)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// List returns what is in a directory, and below it as deep as depth says; 0
// and 1 mean the directory only.
func (f *Files) List(ctx context.Context, path string, depth int) ([]FileInfo, error) {
	ctx, cancel := f.sb.bounded(ctx)
	defer cancel()
	req := &pb.ListDirRequest{Path: path, Depth: uint32(max(1, depth))}
	resp, err := f.sb.filesystem.ListDir(ctx, asUser(f.sb, connect.NewRequest(req), f.user))
	if err != nil {
		return nil, rpcError("list directory", err)
	}
	infos := make([]FileInfo, 0, len(resp.Msg.Entries))
	for _, e := range resp.Msg.Entries {
		infos = append(infos, fileInfo(e))
	}
	return infos, nil
}

// MakeDir makes a directory and those above it. It reports whether it was made;
// one that exists already is no error.
func (f *Files) MakeDir(ctx context.Context, path string) (bool, error) {
	ctx, cancel := f.sb.bounded(ctx)
	defer cancel()
	_, err := f.sb.filesystem.MakeDir(ctx, asUser(f.sb, connect.NewRequest(&pb.MakeDirRequest{Path: path}), f.user))
	err = rpcError("make directory", err)
	if errors.Is(err, ErrExists) {
		return false, nil
	}
	return err == nil, err
}

// Move renames a file or directory.
func (f *Files) Move(ctx context.Context, from, to string) (FileInfo, error) {
	ctx, cancel := f.sb.bounded(ctx)
	defer cancel()
	req := &pb.MoveRequest{Source: from, Destination: to}
	resp, err := f.sb.filesystem.Move(ctx, asUser(f.sb, connect.NewRequest(req), f.user))
	if err != nil {
		return FileInfo{}, rpcError("move file", err)
	}
	return fileInfo(resp.Msg.GetEntry()), nil
}

// Remove deletes a file, or a directory with all in it; a missing one is no
// error.
func (f *Files) Remove(ctx context.Context, path string) error {
	ctx, cancel := f.sb.bounded(ctx)
	defer cancel()
	_, err := f.sb.filesystem.Remove(ctx, asUser(f.sb, connect.NewRequest(&pb.RemoveRequest{Path: path}), f.user))
	return rpcError("remove file", err)
}

func fileInfo(e *pb.EntryInfo) FileInfo {
	if e == nil {
		return FileInfo{}
	}
	info := FileInfo{
		Name: e.Name, Path: e.Path, Size: e.Size, Mode: fs.FileMode(e.Mode & 0o7777),
		Owner: e.Owner, Group: e.Group, Target: e.GetSymlinkTarget(), Metadata: e.Metadata,
	}
	if e.ModifiedTime != nil {
		info.Modified = e.ModifiedTime.AsTime()
	}
	switch e.Type {
	case pb.FileType_FILE_TYPE_FILE:
		info.Type = TypeFile
	case pb.FileType_FILE_TYPE_DIRECTORY:
		info.Type = TypeDir
	case pb.FileType_FILE_TYPE_SYMLINK:
		info.Type = TypeLink
	}
	return info
}

// query names file and user to the daemon's plain HTTP side.
func (f *Files) query(path string) url.Values {
	q := url.Values{}
	if path != "" {
		q.Set("path", path)
	}
	if user := f.username(); user != "" {
		q.Set("username", user)
	}
	return q
}

func (f *Files) username() string {
	if f.user == "" && !f.sb.atLeast("0.4.0") {
		return "user"
	}
	return f.user
}
