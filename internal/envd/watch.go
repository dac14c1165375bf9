package envd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"agentsquad/internal/envdpb/filesystem"
)

const (
	maxWatchers = 256
	maxPending  = 20_000 // events kept for a watcher that is not asked; then the oldest go
	eventBuffer = 64 << 10
)

// watchRequest is what WatchDir and CreateWatcher have in common.
type watchRequest interface {
	GetPath() string
	GetRecursive() bool
	GetIncludeEntry() bool
	GetAllowNetworkMounts() bool
}

func (f *files) watch(h http.Header, req watchRequest) (*notifier, error) {
	path, _, err := f.place(h, req.GetPath())
	if err != nil {
		return nil, err
	}
	real, err := directory(path)
	if err != nil {
		return nil, err
	}
	if !req.GetAllowNetworkMounts() {
		if kind := networkMount(real); kind != "" {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("cannot watch '%s': it is on a network file system (%s), where events of others are not seen", path, kind))
		}
	}
	n, err := newNotifier(real, req.GetRecursive())
	switch {
	case errors.Is(err, errTooMany), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EMFILE):
		return nil, connect.NewError(connect.CodeResourceExhausted, err)
	case err != nil:
		return nil, fileError(err, path)
	}
	return n, nil
}

// networkMount names the network file system that path is on, if it is on one.
func networkMount(path string) string {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return ""
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case 0xFF534D42:
		return "cifs"
	case unix.SMB_SUPER_MAGIC:
		return "smb"
	case 0xFE534D42:
		return "smb2"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	}
	return ""
}

// message gives a change its wire form; with entries, those that still exist
// are described.
func (f *files) message(n *notifier, c change, entries bool) *filesystem.FilesystemEvent {
	m := &filesystem.FilesystemEvent{Name: c.name, Type: c.kind}
	gone := c.kind == filesystem.EventType_EVENT_TYPE_REMOVE || c.kind == filesystem.EventType_EVENT_TYPE_RENAME
	if entries && !gone {
		if e, err := f.entry(filepath.Join(n.root, c.name)); err == nil {
			m.Entry = e
		}
	}
	return m
}

// WatchDir streams the changes under a directory until the caller leaves.
func (f *files) WatchDir(ctx context.Context, req *connect.Request[filesystem.WatchDirRequest], out *connect.ServerStream[filesystem.WatchDirResponse]) error {
	n, err := f.watch(req.Header(), req.Msg)
	if err != nil {
		return err
	}
	defer n.close()
	started := &filesystem.WatchDirResponse{Event: &filesystem.WatchDirResponse_Start{Start: &filesystem.WatchDirResponse_StartEvent{}}}
	if err := out.Send(started); err != nil {
		return err
	}
	type batch struct {
		changes []change
		err     error
	}
	batches := make(chan batch)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		buf := make([]byte, eventBuffer)
		for {
			changes, err := n.read(buf)
			select {
			case batches <- batch{changes, err}:
			case <-stopped:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	every := keepalive(req.Header())
	idle := time.NewTimer(every)
	defer idle.Stop()
	for {
		select {
		case b := <-batches:
			for _, c := range b.changes {
				event := &filesystem.WatchDirResponse_Filesystem{Filesystem: f.message(n, c, req.Msg.GetIncludeEntry())}
				if err := out.Send(&filesystem.WatchDirResponse{Event: event}); err != nil {
					return err
				}
			}
			if b.err != nil {
				return connect.NewError(connect.CodeInternal, b.err)
			}
		case <-idle.C:
			event := &filesystem.WatchDirResponse_Keepalive{Keepalive: &filesystem.WatchDirResponse_KeepAlive{}}
			if err := out.Send(&filesystem.WatchDirResponse{Event: event}); err != nil {
				return err
			}
		case <-ctx.Done():
			return streamError(ctx.Err())
		case <-f.server.closed:
			return nil
		}
		idle.Reset(every)
	}
}

// watchers are the watches of callers that poll.
type watchers struct {
	mu   sync.Mutex
	byID map[string]*watcher
}

type watcher struct {
	notifier *notifier

	mu     sync.Mutex
	events []*filesystem.FilesystemEvent
	failed error
}

func (ws *watchers) closeAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.byID {
		w.notifier.close()
	}
	ws.byID = nil
}

// CreateWatcher starts a watch whose events are kept until they are asked for.
func (f *files) CreateWatcher(_ context.Context, req *connect.Request[filesystem.CreateWatcherRequest]) (*connect.Response[filesystem.CreateWatcherResponse], error) {
	n, err := f.watch(req.Header(), req.Msg)
	if err != nil {
		return nil, err
	}
	ws := &f.server.watchers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.byID) >= maxWatchers {
		n.close()
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("more than %d watchers", maxWatchers))
	}
	if ws.byID == nil {
		ws.byID = map[string]*watcher{}
	}
	id, w := "w"+rand.Text(), &watcher{notifier: n}
	ws.byID[id] = w
	go f.collect(w, req.Msg.GetIncludeEntry())
	return connect.NewResponse(&filesystem.CreateWatcherResponse{WatcherId: id}), nil
}

func (f *files) collect(w *watcher, entries bool) {
	buf := make([]byte, eventBuffer)
	for {
		changes, err := w.notifier.read(buf)
		messages := make([]*filesystem.FilesystemEvent, 0, len(changes))
		for _, c := range changes {
			messages = append(messages, f.message(w.notifier, c, entries))
		}
		w.mu.Lock()
		w.events = append(w.events, messages...)
		if over := len(w.events) - maxPending; over > 0 {
			w.events = append([]*filesystem.FilesystemEvent(nil), w.events[over:]...)
		}
		w.failed = err
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (f *files) watcherOf(id string) (*watcher, error) {
	ws := &f.server.watchers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.byID[id]; w != nil {
		return w, nil
	}
	return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("watcher with id %s not found", id))
}

// GetWatcherEvents returns what happened since the last call.
func (f *files) GetWatcherEvents(_ context.Context, req *connect.Request[filesystem.GetWatcherEventsRequest]) (*connect.Response[filesystem.GetWatcherEventsResponse], error) {
	w, err := f.watcherOf(req.Msg.GetWatcherId())
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 && w.failed != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("the watcher has stopped: %w", w.failed))
	}
	out := &filesystem.GetWatcherEventsResponse{Events: w.events}
	w.events = nil
	return connect.NewResponse(out), nil
}

// RemoveWatcher ends a watch made by CreateWatcher.
func (f *files) RemoveWatcher(_ context.Context, req *connect.Request[filesystem.RemoveWatcherRequest]) (*connect.Response[filesystem.RemoveWatcherResponse], error) {
	w, err := f.watcherOf(req.Msg.GetWatcherId())
	if err != nil {
		return nil, err
	}
	ws := &f.server.watchers
	ws.mu.Lock()
	delete(ws.byID, req.Msg.GetWatcherId())
	ws.mu.Unlock()
	w.notifier.close()
	return connect.NewResponse(&filesystem.RemoveWatcherResponse{}), nil
}
