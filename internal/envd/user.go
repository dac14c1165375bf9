package envd

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// account is a user of the sandbox.
type account struct {
	name, home string
	uid, gid   uint32
	groups     []uint32
}

// credential is what a child must assume to act as a, or nil when it would
// inherit that anyway.
func (a *account) credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil // tests run by an ordinary user: only that user exists
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
}

// accounts looks users up in /etc/passwd and /etc/group and remembers them until
// one of the files changes: each command needs a look-up.
type accounts struct {
	mu     sync.Mutex
	stamp  [2]fileStamp
	byName map[string]*account
	names  map[uint32]string
	groups map[uint32]string
}

type fileStamp struct {
	size int64
	at   time.Time
}

// refresh drops what is remembered if the files have changed. The caller holds mu.
func (a *accounts) refresh() {
	var now [2]fileStamp
	for i, file := range []string{"/etc/passwd", "/etc/group"} {
		if info, err := os.Stat(file); err == nil {
			now[i] = fileStamp{info.Size(), info.ModTime()}
		}
	}
	if a.byName == nil || now != a.stamp {
		a.stamp = now
		a.byName, a.names, a.groups = map[string]*account{}, map[uint32]string{}, map[uint32]string{}
	}
}

func (a *accounts) lookup(name string) (*account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refresh()
	if found := a.byName[name]; found != nil {
		return found, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("user '%s' does not exist", name)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user '%s' has the id %q", name, u.Uid)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user '%s' has the group id %q", name, u.Gid)
	}
	found := &account{name: u.Username, home: u.HomeDir, uid: uint32(uid), gid: uint32(gid)}
	if found.home == "" {
		found.home = "/"
	}
	ids, _ := u.GroupIds()
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			found.groups = append(found.groups, uint32(n))
		}
	}
	a.byName[name] = found
	return found, nil
}

// nameOf names a user id.
func (a *accounts) nameOf(uid uint32) string {
	name, _ := a.owner(uid, 0)
	return name
}

// owner names the user and group of a file; ids without a name stay numbers.
func (a *accounts) owner(uid, gid uint32) (string, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names == nil {
		a.refresh()
	}
	name, ok := a.names[uid]
	if !ok {
		name = strconv.FormatUint(uint64(uid), 10)
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		}
		a.names[uid] = name
	}
	group, ok := a.groups[gid]
	if !ok {
		group = strconv.FormatUint(uint64(gid), 10)
		if g, err := user.LookupGroupId(group); err == nil {
			group = g.Name
		}
		a.groups[gid] = group
	}
	return name, group
}
