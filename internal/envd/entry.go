package envd

import (
	"os"
	"path/filepath"
	"syscall"

	"google.golang.org/protobuf/types/known/timestamppb"

	"agentsquad/internal/envdpb/filesystem"
)

// entry describes the file at path without following it, except that type and
// mode of a symbolic link are those of what it leads to.
func (f *files) entry(path string) (*filesystem.EntryInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	return f.describe(path, info), nil
}

func (f *files) describe(path string, info os.FileInfo) *filesystem.EntryInfo {
	e := &filesystem.EntryInfo{
		Name:         filepath.Base(path),
		Path:         path,
		Size:         info.Size(),
		Mode:         uint32(info.Mode().Perm()),
		Permissions:  info.Mode().String(),
		ModifiedTime: timestamppb.New(info.ModTime()),
		Type:         fileType(info.Mode()),
	}
	if info.Mode()&os.ModeSymlink != 0 {
		e.Type, e.Mode = filesystem.FileType_FILE_TYPE_UNSPECIFIED, 0
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			target = path
		}
		e.SymlinkTarget = &target
		if to, err := os.Stat(path); err == nil {
			e.Type, e.Mode = fileType(to.Mode()), uint32(to.Mode().Perm())
		}
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.Owner, e.Group = f.server.accounts.owner(st.Uid, st.Gid)
	}
	e.Metadata = f.meta.read(path)
	return e
}

func fileType(mode os.FileMode) filesystem.FileType {
	switch {
	case mode.IsRegular():
		return filesystem.FileType_FILE_TYPE_FILE
	case mode.IsDir():
		return filesystem.FileType_FILE_TYPE_DIRECTORY
	case mode&os.ModeSymlink != 0:
		return filesystem.FileType_FILE_TYPE_SYMLINK
	}
	return filesystem.FileType_FILE_TYPE_UNSPECIFIED
}
