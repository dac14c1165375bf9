package gvisor_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsquad/internal/gvisor"
	"agentsquad/internal/tunnel"
)

// attack runs an attacker's script as root inside and fails the test when its
// output holds what it must not.
func attack(t *testing.T, s *gvisor.Sandbox, script string, forbidden ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out, _, err := sh(ctx, s, script)
	if err != nil {
		t.Fatalf("attack %q: %v", script, err)
	}
	for _, f := range forbidden {
		if f != "" && strings.Contains(out, f) {
			t.Errorf("attack %q got %q:\n%s", script, f, out)
		}
	}
	return out
}

func TestEscape_HostFilesAreNotThere(t *testing.T) {
	t.Parallel()
	const secret = "squad-secret-0c5f"
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "secret"), []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	s := create(t, newRuntime(t), gvisor.Spec{})
	attack(t, s, "cat "+host+"/secret; cat /proc/1/root"+host+"/secret; cat /../../.."+host+"/secret; ls -R "+host, secret)
	if out := attack(t, s, "ls /home; ls -A /root | grep -v '^\\.\\(bashrc\\|profile\\|bash_logout\\)$'; ls /srv /mnt /media /opt"); strings.Trim(out, "\n/:mntsrvediaop u") != "" {
		t.Errorf("more than a fresh home: %q", out)
	}
	hostShadow, _ := os.ReadFile("/etc/shadow")
	for _, line := range strings.Split(string(hostShadow), "\n") {
		if f := strings.Split(line, ":"); len(f) > 2 && len(f[1]) > 3 {
			attack(t, s, "cat /etc/shadow /etc/shadow- /usr/etc/shadow 2>/dev/null", f[1])
		}
	}
	hostname, _ := os.ReadFile("/etc/machine-id")
	attack(t, s, "cat /etc/machine-id /var/lib/dbus/machine-id", strings.TrimSpace(string(hostname)))
	for _, dir := range []string{"/etc", "/var/lib", "/var/log"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if name := e.Name(); strings.Contains(name, "ssh") || strings.Contains(name, "docker") || strings.Contains(name, "postgres") {
				attack(t, s, "ls "+dir, name)
			}
		}
	}
}

func TestEscape_ServerEnvironmentIsNotThere(t *testing.T) {
	const secret = "squad-env-7e21"
	t.Setenv("SQUAD_TEST_SECRET", secret)
	s := create(t, newRuntime(t), gvisor.Spec{})
	attack(t, s, "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'", secret, "SQUAD_TEST")
}

func TestEscape_WritesDoNotReachTheHost(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "f"), []byte("host"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t)
	mount := gvisor.Spec{Mounts: []gvisor.Mount{{Dir: shared, Path: "/mnt/shared"}}}
	s := create(t, r, mount)
	before, err := os.Stat("/usr/bin/env")
	if err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, s, `echo evil > /usr/bin/squad-evil && rm -f /usr/bin/env && echo evil > /usr/bin/env && chmod 4777 /usr/bin/env
mkdir /usr/evil && mv /usr/games /usr/evil/ ; echo evil > /mnt/shared/f; echo evil > /mnt/shared/new
echo evil > /.squad/envd 2>&1; echo x > /run/squad/x 2>&1; ln -s /etc /run/squad/link 2>&1
cat /usr/bin/env /mnt/shared/f`)
	if !strings.HasSuffix(got, "evil\nevil") {
		t.Errorf("the sandbox does not see its own writes: %q", got)
	}
	after, err := os.Stat("/usr/bin/env")
	if err != nil || after.Size() != before.Size() || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("/usr/bin/env of the host changed: %v %v", after, err)
	}
	for _, path := range []string{"/usr/bin/squad-evil", "/usr/evil", filepath.Join(shared, "new")} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s appeared on the host", path)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(shared, "f")); string(data) != "host" {
		t.Errorf("a mounted file changed on the host: %q", data)
	}
	other := create(t, r, mount)
	attack(t, other, "cat /usr/bin/squad-evil /mnt/shared/f /mnt/shared/new", "evil\n")
}

func TestEscape_HostProcessesAndDevicesAreNotThere(t *testing.T) {
	t.Parallel()
	s := create(t, newRuntime(t), gvisor.Spec{})
	attack(t, s, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", "gvisor.test", "runsc", "systemd")
	attack(t, s, "readlink /proc/*/exe /proc/*/cwd /proc/*/fd/*", "/sandboxes/", "gv.test")
	attack(t, s, "cat /proc/self/mountinfo /proc/mounts", "/sandboxes/", "ext4", "/dev/vda")
	for _, dev := range []string{"/dev/mem", "/dev/kmem", "/dev/kvm", "/dev/sda", "/dev/vda", "/proc/kcore", "/proc/kallsyms", "/sys/kernel/debug", "/dev/disk"} {
		attack(t, s, "test -e "+dev+" && echo there", "there")
	}
	attack(t, s, "mknod /tmp/disk b 254 0 && head -c 1 /tmp/disk | wc -c; mknod /tmp/mem c 1 1 && head -c 1 /tmp/mem | wc -c; mknod /tmp/kvm c 10 232 && : < /tmp/kvm && echo opened",
		"1\n", "opened")
}

func TestEscape_KernelSurfacesRefuse(t *testing.T) {
	t.Parallel()
	s := create(t, newRuntime(t), gvisor.Spec{})
	attack(t, s, "mount -t tmpfs none /mnt && echo mounted; mount --bind /usr /mnt && echo mounted; umount /usr && echo mounted", "mounted")
	attack(t, s, "unshare -m true && echo entered; nsenter -t 1 -m true && echo entered; swapon /tmp/x && echo entered", "entered")
	attack(t, s, "echo 1 > /proc/sys/kernel/panic && echo wrote; echo c > /proc/sysrq-trigger && echo wrote; echo x > /sys/kernel/x && echo wrote; date -s 2000-01-01 && echo wrote", "wrote")
	if _, _, err := sh(t.Context(), s, "command -v python3"); err != nil {
		t.Fatal(err)
	}
	// kexec_load init_module bpf perf_event_open keyctl add_key reboot userfaultfd io_uring_setup open_by_handle_at
	out := attack(t, s, `command -v python3 >/dev/null || { echo no python3; exit; }
python3 - <<'X'
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, nr in dict(kexec=246, init_module=175, bpf=321, perf=298, add_key=248, reboot=169, io_uring=425, handle=304).items():
    r = libc.syscall(nr, 0, 0, 0, 0, 0, 0)
    print(name, "allowed" if r >= 0 else "refused")
X`, "allowed")
	if !strings.Contains(out, "refused") && !strings.Contains(out, "no python3") {
		t.Errorf("the attack did not run: %s", out)
	}
	attack(t, s, "mkdir -p /tmp/jail && chroot /tmp/jail /bin/true; ls /proc/1/root/ /proc/self/root/..", "container_info", "lost+found", "boot\n")
}

func TestEscape_OtherSandboxesCannotBeReached(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	victim := create(t, r, gvisor.Spec{ID: "victim"})
	s := create(t, r, gvisor.Spec{ID: "attacker"})
	mustRun(t, victim, "echo victim-secret > /tmp/secret")
	attack(t, s, "ls -R /run /var/run /.squad /tmp; find / -xdev -type s 2>/dev/null", "victim", "door", ".sock")
	// The door of its own daemon has no name, and its tunnel cannot be had again.
	attack(t, s, `for f in 0 3 4 5 6 7 8 9; do echo knock > /proc/1/fd/$f; cat < /proc/1/fd/$f; done 2>/dev/null & p=$!; sleep 1; kill $p 2>/dev/null
command -v python3 >/dev/null && python3 -c "
import socket, os
for f in range(32):
    try: s = socket.socket(fileno=os.open('/proc/1/fd/%d' % f, os.O_RDWR)); s.send(b'x'); print('answered')
    except OSError: pass"`, "answered")
	for _, b := range []*gvisor.Sandbox{s, victim} {
		if got := mustRun(t, b, "echo fine"); got != "fine" {
			t.Errorf("after the attack: %q", got)
		}
	}
}

func TestEscape_HostSocketsCannotBeReached(t *testing.T) {
	t.Parallel()
	lc := net.ListenConfig{}
	tcp, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	abstract, err := lc.Listen(t.Context(), "unix", "@squad-escape-"+fmt.Sprint(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	for _, l := range []net.Listener{tcp, abstract} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("host-says-hello\n"))
				_ = c.Close()
			}
		}()
	}
	s := create(t, newRuntime(t), gvisor.Spec{})
	port := tcp.Addr().(*net.TCPAddr).Port
	attack(t, s, fmt.Sprintf("bash -c 'cat < /dev/tcp/127.0.0.1/%d; cat < /dev/tcp/169.254.169.254/80; cat < /dev/tcp/10.0.0.1/80'", port), "host-says")
	attack(t, s, fmt.Sprintf(`command -v python3 >/dev/null && python3 -c "
import socket
c = socket.socket(socket.AF_UNIX); c.connect('\\0squad-escape-%d'); print(c.recv(99))"`, os.Getpid()), "host-says")
	attack(t, s, "find / -xdev -type s 2>/dev/null; ls /var/run/*.sock /run/*.sock /run/dbus /run/systemd", "docker.sock", "bus_socket")
	if out := attack(t, s, "cat /proc/net/dev | tail -n +3 | grep -v ' lo:' || true"); strings.TrimSpace(out) != "" {
		t.Errorf("a network device: %s", out)
	}
}

// Without a way out configured, what a sandbox opens towards the host is refused
// with a reason.
func TestEscape_NoWayOutByDefault(t *testing.T) {
	t.Parallel()
	s := create(t, newRuntime(t), gvisor.Spec{})
	attack(t, s, "curl -sf -m 5 http://example.com/ && echo reached; curl -sf -m 5 http://squad.internal/ && echo reached", "reached")
}

func TestAccept_StreamsFromInsideNameTheirSandbox(t *testing.T) {
	t.Parallel()
	got := make(chan string, 8)
	r := newRuntime(t, func(c *gvisor.Config) {
		c.Accept = func(id string, h tunnel.Header, c net.Conn) {
			defer c.Close()
			if h.Kind == tunnel.KindInternal {
				line, _ := bufio.NewReader(c).ReadString('\n')
				got <- id + " " + strings.TrimSpace(line)
				_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes"))
			}
		}
	})
	s := create(t, r, gvisor.Spec{ID: "caller"})
	if out := mustRun(t, s, "curl -s -m 10 http://squad.internal/hello"); out != "yes" {
		t.Errorf("answer %q", out)
	}
	if line := <-got; line != "caller GET /hello HTTP/1.1" {
		t.Errorf("the host saw %q", line)
	}
}
