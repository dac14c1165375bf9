package envd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"agentsquad/internal/envd"
	"agentsquad/internal/envdpb/filesystem"
)

const (
	isFile = filesystem.FileType_FILE_TYPE_FILE
	isDir  = filesystem.FileType_FILE_TYPE_DIRECTORY
)

func TestStat_DescribesFilesAndLinks(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		dir := t.TempDir()
		file := filepath.Join(dir, "f")
		os.WriteFile(file, []byte("12345"), 0o640)
		link, broken := filepath.Join(dir, "l"), filepath.Join(dir, "broken")
		os.Symlink("f", link)
		os.Symlink("nowhere", broken)
		e := b.stat(file)
		if e.GetName() != "f" || e.GetType() != isFile || e.GetPath() != file || e.GetSize() != 5 || e.GetMode() != 0o640 || e.GetPermissions() != "-rw-r-----" || e.GetOwner() != me(t) || e.GetModifiedTime().GetSeconds() == 0 || e.SymlinkTarget != nil {
			t.Fatalf("file: %v", e)
		}
		if e = b.stat(dir); e.GetType() != isDir || !strings.HasPrefix(e.GetPermissions(), "drwx") {
			t.Fatalf("dir: %v", e)
		}
		if e = b.stat(link); e.GetType() != isFile || e.GetMode() != 0o640 || e.GetSymlinkTarget() != file || e.GetPermissions() != "Lrwxrwxrwx" {
			t.Fatalf("link: %v", e)
		}
		if e = b.stat(broken); e.GetType() != 0 {
			t.Fatalf("broken link: %v", e)
		}
		_, err := b.files.Stat(bounded(t), connect.NewRequest(&filesystem.StatRequest{Path: "/no/such"}))
		wantCode(t, err, connect.CodeNotFound, "/no/such")
	})
}

func TestMakeDir_NewExistingAndFile(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		dir := filepath.Join(t.TempDir(), "a/b")
		ctx := bounded(t)
		res, err := b.files.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: dir}))
		if err != nil || res.Msg.GetEntry().GetType() != isDir || res.Msg.GetEntry().GetMode() != 0o755 {
			t.Fatalf("%v %v", res, err)
		}
		_, err = b.files.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: dir}))
		wantCode(t, err, connect.CodeAlreadyExists, dir)
		file := filepath.Join(dir, "f")
		os.WriteFile(file, nil, 0o600)
		for _, path := range []string{file, file + "/x"} {
			_, err = b.files.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: path}))
			wantCode(t, err, connect.CodeInvalidArgument, "not a directory")
		}
	})
}

func TestMove_CreatesParentsAndReportsMissing(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "x/y/to")
		os.WriteFile(from, []byte("1"), 0o600)
		req := &filesystem.MoveRequest{Source: from, Destination: to}
		res, err := b.files.Move(bounded(t), connect.NewRequest(req))
		if err != nil || res.Msg.GetEntry().GetPath() != to {
			t.Fatalf("%v %v", res, err)
		}
		_, err = b.files.Move(bounded(t), connect.NewRequest(req))
		wantCode(t, err, connect.CodeNotFound, from)
	})
}

func TestMove_AcrossFileSystemsKeepsTreeModesAndLinks(t *testing.T) {
	t.Parallel()
	shm, err := os.MkdirTemp("/dev/shm", "envd-") //nolint:usetesting // must be on another file system
	if err != nil {
		t.Skipf("needs a second file system at /dev/shm: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	b := start(t, envd.Config{})
	from, to := filepath.Join(t.TempDir(), "tree"), filepath.Join(shm, "moved")
	os.MkdirAll(filepath.Join(from, "d"), 0o750)
	os.WriteFile(filepath.Join(from, "d/f"), []byte("content"), 0o711)
	os.Symlink("d/f", filepath.Join(from, "l"))
	if _, err := b.files.Move(bounded(t), connect.NewRequest(&filesystem.MoveRequest{Source: from, Destination: to})); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(to, "l"))
	info, statErr := os.Stat(filepath.Join(to, "d/f"))
	if err != nil || statErr != nil || string(got) != "content" || info.Mode().Perm() != 0o711 {
		t.Fatalf("%q %v %v %v", got, err, info, statErr)
	}
	if _, err := os.Lstat(from); err == nil {
		t.Fatal("the source is still there")
	}
	if left, _ := os.ReadDir(shm); len(left) != 1 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestRemove_IsRecursiveAndForgiving(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		dir := filepath.Join(t.TempDir(), "d")
		os.MkdirAll(filepath.Join(dir, "x/y"), 0o700)
		for range 2 { // the second time it is missing, which is fine
			if _, err := b.files.Remove(bounded(t), connect.NewRequest(&filesystem.RemoveRequest{Path: dir})); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatal("still there")
		}
		_, err := b.files.Remove(bounded(t), connect.NewRequest(&filesystem.RemoveRequest{Path: "/x/.."}))
		wantCode(t, err, connect.CodeInvalidArgument, "root")
	})
}

func TestListDir_DepthAndLinks(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		top := t.TempDir()
		dir := filepath.Join(top, "real")
		os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700)
		os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)
		os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "link"))
		os.Symlink(dir, filepath.Join(top, "alias"))
		list := func(path string, depth uint32) []string {
			res, err := b.files.ListDir(bounded(t), connect.NewRequest(&filesystem.ListDirRequest{Path: path, Depth: depth}))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range res.Msg.GetEntries() {
				names = append(names, strings.TrimPrefix(e.GetPath(), path+"/"))
			}
			slices.Sort(names)
			return names
		}
		for depth, want := range map[uint32]string{0: "a f link", 1: "a f link", 2: "a a/b f link", 9: "a a/b a/b/c f link"} {
			for _, path := range []string{dir, filepath.Join(top, "alias")} {
				if got := strings.Join(list(path, depth), " "); got != want {
					t.Fatalf("%s depth %d: %s, want %s", path, depth, got, want)
				}
			}
		}
		_, err := b.files.ListDir(bounded(t), connect.NewRequest(&filesystem.ListDirRequest{Path: filepath.Join(dir, "f")}))
		wantCode(t, err, connect.CodeInvalidArgument, "not a directory")
		_, err = b.files.ListDir(bounded(t), connect.NewRequest(&filesystem.ListDirRequest{Path: "/no/such"}))
		wantCode(t, err, connect.CodeNotFound, "does not exist")
	})
}

const (
	created = filesystem.EventType_EVENT_TYPE_CREATE
	written = filesystem.EventType_EVENT_TYPE_WRITE
	removed = filesystem.EventType_EVENT_TYPE_REMOVE
	renamed = filesystem.EventType_EVENT_TYPE_RENAME
	chmoded = filesystem.EventType_EVENT_TYPE_CHMOD
)

// await reads the stream until an event matches.
func await(t *testing.T, stream *connect.ServerStreamForClient[filesystem.WatchDirResponse], kind filesystem.EventType, name string) *filesystem.FilesystemEvent {
	t.Helper()
	for stream.Receive() {
		if e := stream.Msg().GetFilesystem(); e.GetType() == kind && e.GetName() == name {
			return e
		}
	}
	t.Fatalf("no %v of %s: %v", kind, name, stream.Err())
	return nil
}

func TestWatchDir_RecursiveFollowsNewDirectories(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		dir := t.TempDir()
		os.Mkdir(filepath.Join(dir, "old"), 0o700)
		stream, err := b.files.WatchDir(bounded(t), connect.NewRequest(&filesystem.WatchDirRequest{Path: dir, Recursive: true, IncludeEntry: true}))
		if err != nil || !stream.Receive() || stream.Msg().GetStart() == nil {
			t.Fatalf("%v %v", err, stream.Err())
		}
		defer stream.Close()
		os.MkdirAll(filepath.Join(dir, "new/deep"), 0o700)
		await(t, stream, created, "new")
		await(t, stream, created, "new/deep")
		file := filepath.Join(dir, "new/deep/f")
		os.WriteFile(file, []byte("abc"), 0o600)
		if e := await(t, stream, created, "new/deep/f"); e.GetEntry().GetPath() != file {
			t.Fatalf("entry: %v", e)
		}
		if e := await(t, stream, written, "new/deep/f"); e.GetEntry().GetSize() != 3 {
			t.Fatalf("entry: %v", e)
		}
		os.Chmod(file, 0o640)
		await(t, stream, chmoded, "new/deep/f")
		os.Rename(file, filepath.Join(dir, "old/g"))
		if e := await(t, stream, renamed, "new/deep/f"); e.Entry != nil {
			t.Fatalf("a renamed file has no entry: %v", e)
		}
		await(t, stream, created, "old/g")
		os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "moved"))
		await(t, stream, created, "moved/deep")
		os.WriteFile(filepath.Join(dir, "moved/deep/h"), nil, 0o600)
		await(t, stream, created, "moved/deep/h")
		os.Remove(filepath.Join(dir, "old/g"))
		await(t, stream, removed, "old/g")
	})
}

func TestWatchDir_FlatStaysFlatAndNeedsADirectory(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		dir := t.TempDir()
		sub := filepath.Join(dir, "sub")
		os.Mkdir(sub, 0o700)
		stream, err := b.files.WatchDir(bounded(t), connect.NewRequest(&filesystem.WatchDirRequest{Path: dir}))
		if err != nil || !stream.Receive() {
			t.Fatalf("%v %v", err, stream.Err())
		}
		defer stream.Close()
		os.WriteFile(filepath.Join(sub, "deep"), nil, 0o600)
		os.WriteFile(filepath.Join(dir, "last"), nil, 0o600)
		for stream.Receive() {
			e := stream.Msg().GetFilesystem()
			if strings.Contains(e.GetName(), "deep") {
				t.Fatalf("event from below: %v", e)
			}
			if e.Entry != nil {
				t.Fatalf("entry was not asked for: %v", e)
			}
			if e.GetName() == "last" {
				break
			}
		}
		for path, code := range map[string]connect.Code{"/etc/passwd": connect.CodeInvalidArgument, "/no/such": connect.CodeNotFound} {
			bad, err := b.files.WatchDir(bounded(t), connect.NewRequest(&filesystem.WatchDirRequest{Path: path}))
			if err == nil {
				bad.Receive()
				err = bad.Err()
			}
			wantCode(t, err, code, path)
		}
	})
}

func TestWatcher_KeepsEventsUntilAsked(t *testing.T) {
	t.Parallel()
	both(t, envd.Config{}, func(t *testing.T, b *box) {
		ctx, dir := bounded(t), t.TempDir()
		made, err := b.files.CreateWatcher(ctx, connect.NewRequest(&filesystem.CreateWatcherRequest{Path: dir}))
		if err != nil {
			t.Fatal(err)
		}
		id := made.Msg.GetWatcherId()
		os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600)
		var all []*filesystem.FilesystemEvent
		for len(all) < 2 && ctx.Err() == nil {
			res, err := b.files.GetWatcherEvents(ctx, connect.NewRequest(&filesystem.GetWatcherEventsRequest{WatcherId: id}))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, res.Msg.GetEvents()...)
		}
		if all[0].GetType() != created || all[0].GetName() != "f" {
			t.Fatalf("%v", all)
		}
		if _, err := b.files.RemoveWatcher(ctx, connect.NewRequest(&filesystem.RemoveWatcherRequest{WatcherId: id})); err != nil {
			t.Fatal(err)
		}
		_, err = b.files.GetWatcherEvents(ctx, connect.NewRequest(&filesystem.GetWatcherEventsRequest{WatcherId: id}))
		wantCode(t, err, connect.CodeNotFound, id)
	})
}
