// Package pgtest gives tests a real PostgreSQL. The first test of a process that
// asks starts a server from Debian's package on a free port, with data in a
// temporary folder; each call of [URL] makes a fresh database on it. Where the
// package is not installed, the test is skipped and says what to install.
//
// A small shell process watches the test process through a pipe: however that
// ends, kill -9 included, it stops the server and removes the folder.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const remedy = "PostgreSQL is not installed: apt-get install -y --no-install-recommends postgresql"

// server is the one of this process.
var server = sync.OnceValues(start)

var databases atomic.Int64

// URL returns the connection string of a fresh, empty database that is dropped
// when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	base, err := server()
	if errors.Is(err, errNotInstalled) {
		t.Skip("SKIPPED, not tested on PostgreSQL: " + remedy)
	}
	if err != nil {
		t.Fatalf("start postgres: %v", err)
	}
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1))
	admin(t, base, "CREATE DATABASE "+name)
	t.Cleanup(func() { admin(t, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return base + name
}

func admin(t testing.TB, base, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 60*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, base+"postgres")
	if err != nil {
		t.Fatalf("connect to postgres: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

var errNotInstalled = errors.New(remedy)

// bin finds the newest installed version.
func bin() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) > 0 {
		slices.SortFunc(found, func(a, b string) int { return major(a) - major(b) })
		return filepath.Dir(found[len(found)-1]), nil
	}
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			return filepath.Dir(p), nil
		}
	}
	return "", errNotInstalled
}

func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

func start() (string, error) {
	dir, err := bin()
	if err != nil {
		return "", err
	}
	home, err := os.MkdirTemp(place(), "squad-pgtest-")
	if err != nil {
		return "", err
	}
	cred, err := serverUser(home)
	if err != nil {
		return "", err
	}
	if err := watch(home); err != nil {
		return "", err
	}
	data := filepath.Join(home, "data")
	init := command(cred, home, filepath.Join(dir, "initdb"), "-D", data, "-A", "trust", "-U", "postgres",
		"-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	for range 3 { // another process may take the port first
		if port, e := launch(cred, dir, home, data); e == nil {
			return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/", port), nil
		} else {
			err = e
		}
	}
	return "", err
}

// place is where the data go: memory where there is plenty, because each fresh
// database is a copy of a thousand files, else the disk.
func place() string {
	const shm, plenty = "/dev/shm", 3 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shm, &fs); err == nil && int64(fs.Bavail)*fs.Bsize > plenty && syscall.Access(shm, 2) == nil {
		return shm
	}
	return "/tmp" // not TMPDIR: the path of a socket must be short
}

func launch(cred *syscall.Credential, dir, home, data string) (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, err
	}
	// Durable only against our own crashes: the server itself is thrown away. The
	// odd time zone brings out code that forgets UTC.
	options := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s -c fsync=off -c full_page_writes=off "+
		"-c max_connections=300 -c shared_buffers=64MB -c timezone=Asia/Kolkata", port, home)
	cmd := command(cred, home, filepath.Join(dir, "pg_ctl"), "-D", data, "-w", "-t", "60", "-l", filepath.Join(home, "log"), "-o", options, "start")
	if out, err := cmd.CombinedOutput(); err != nil {
		text, _ := os.ReadFile(filepath.Join(home, "log"))
		return 0, fmt.Errorf("pg_ctl: %w: %s %s", err, bytes.TrimSpace(out), text)
	}
	return port, nil
}

func command(cred *syscall.Credential, home string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=" + home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setpgid: true}
	return cmd
}

// serverUser is who runs the server: PostgreSQL refuses root.
func serverUser(home string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, errNotInstalled
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(home, uid, gid); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// watch starts the shell that cleans up. It reads a pipe that nobody writes to,
// and so wakes when this process is gone.
func watch(home string) error {
	const script = `cat >/dev/null; pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null)
[ -n "$pid" ] && kill -INT "$pid"
for i in 1 2 3 4 5 6 7 8 9 10; do [ -e "$0/data/postmaster.pid" ] || break; sleep 0.2; done
[ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null
rm -rf "$0"`
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", script, home)
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, w.Close())
	}
	held = w
	return nil
}

// held keeps the watcher's pipe open for the life of the process.
var held *os.File //nolint:unused // what it is for is that nobody closes it
