package e2b

import (
	"context"
	"errors"
	"iter"
	"time"

	"connectrpc.com/connect"

	pb "agentsquad/internal/envdpb/filesystem"
)

// WatchOptions say what is watched.
type WatchOptions struct {
	// Recursive watches directories below too, also those made later.
	Recursive bool
	// WithInfo adds the file's description to events that leave one.
	WithInfo bool
	// NetworkMounts allows paths on network file systems, where changes made
	// elsewhere are not seen.
	NetworkMounts bool
}

// FileEventType is what happened to a file.
type FileEventType string

// Kinds of event.
const (
	FileCreated FileEventType = "create"
	FileWritten FileEventType = "write"
	FileRemoved FileEventType = "remove"
	FileRenamed FileEventType = "rename"
	FileChmod   FileEventType = "chmod"
)

// FileEvent is one change.
type FileEvent struct {
	// Name is relative to the watched directory.
	Name string
	Type FileEventType
	// Info is set where WatchOptions.WithInfo asked for it and it is known.
	Info *FileInfo
}

// Watcher is a watched directory.
type Watcher struct {
	sb     *Sandbox
	ctx    context.Context // bounds the stream, which outlives the call that began it
	cancel context.CancelCauseFunc
	stream *connect.ServerStreamForClient[pb.WatchDirResponse]
}

// Watch begins to watch a directory; when it returns, changes are seen. The
// watch ends with ctx or [Watcher.Close], and has no other limit.
func (f *Files) Watch(ctx context.Context, path string, opts WatchOptions) (*Watcher, error) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	w := &Watcher{sb: f.sb, ctx: inner, cancel: func(cause error) { stop(); cancel(cause) }}
	req := &pb.WatchDirRequest{Path: path, Recursive: opts.Recursive, IncludeEntry: opts.WithInfo, AllowNetworkMounts: opts.NetworkMounts}
	if bound := f.sb.client.cfg.RequestTimeout; bound > 0 {
		timer := time.AfterFunc(bound, func() { w.cancel(context.DeadlineExceeded) })
		defer timer.Stop()
	}
	var err error
	w.stream, err = f.sb.filesystem.WatchDir(withLifetime(inner, 0), asUser(f.sb, connect.NewRequest(req), f.user))
	if err == nil {
		if w.stream.Receive() {
			return w, nil // the first message is the start
		}
		err = w.stream.Err()
	}
	cause := context.Cause(inner)
	w.cancel(errClosed)
	if cause != nil {
		return nil, netError("watch directory", cause)
	}
	return nil, f.sb.refused("watch directory", err)
}

// Events walks over the changes as they come, until the watch ends. Close ends
// it without an error.
func (w *Watcher) Events() iter.Seq2[FileEvent, error] {
	return func(yield func(FileEvent, error) bool) {
		for w.stream.Receive() {
			event := w.stream.Msg().GetFilesystem()
			if event == nil {
				continue
			}
			if !yield(fileEvent(event), nil) {
				return
			}
		}
		switch cause := context.Cause(w.ctx); {
		case errors.Is(cause, errClosed):
		case cause != nil:
			yield(FileEvent{}, netError("watch directory", cause))
		case w.stream.Err() != nil:
			yield(FileEvent{}, w.sb.cutShort(w.ctx, rpcError("watch directory", w.stream.Err())))
		}
	}
}

// Close ends the watch.
func (w *Watcher) Close() error {
	w.cancel(errClosed)
	return nil
}

func fileEvent(e *pb.FilesystemEvent) FileEvent {
	out := FileEvent{Name: e.Name}
	switch e.Type {
	case pb.EventType_EVENT_TYPE_CREATE:
		out.Type = FileCreated
	case pb.EventType_EVENT_TYPE_WRITE:
		out.Type = FileWritten
	case pb.EventType_EVENT_TYPE_REMOVE:
		out.Type = FileRemoved
	case pb.EventType_EVENT_TYPE_RENAME:
		out.Type = FileRenamed
	case pb.EventType_EVENT_TYPE_CHMOD:
		out.Type = FileChmod
	}
	if e.Entry != nil {
		info := fileInfo(e.Entry)
		out.Info = &info
	}
	return out
}
