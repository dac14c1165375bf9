package gvisor

import "fmt"

// accounts writes users and groups: root and user, and the system's usual ones
// that programs look up.
func (w *baseImage) accounts() {
	w.file("etc/passwd", 0o644, fmt.Sprintf(`root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
sys:x:3:3:sys:/dev:/usr/sbin/nologin
man:x:6:12:man:/var/cache/man:/usr/sbin/nologin
mail:x:8:8:mail:/var/mail:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
_apt:x:42:65534::/nonexistent:/usr/sbin/nologin
%[1]s:x:%[2]d:%[2]d:%[1]s:%[3]s:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`, userName, userID, userHome))
	w.file("etc/group", 0o644, fmt.Sprintf(`root:x:0:
daemon:x:1:
bin:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
disk:x:6:
mail:x:8:
man:x:12:
sudo:x:27:%[1]s
www-data:x:33:
shadow:x:42:
utmp:x:43:
video:x:44:
staff:x:50:
users:x:100:
%[1]s:x:%[2]d:
nogroup:x:65534:
`, userName, userID))
	w.file("etc/shadow", 0o640, "root:*:20000:0:99999:7:::\n"+userName+":*:20000:0:99999:7:::\n")
	w.file("etc/sudoers", 0o440, "root ALL=(ALL:ALL) NOPASSWD: ALL\n"+userName+" ALL=(ALL:ALL) NOPASSWD: ALL\n")
	for _, name := range []string{"su", "su-l", "sudo", "login", "passwd", "chsh", "runuser", "runuser-l", "cron", "other"} {
		w.file("etc/pam.d/"+name, 0o644, "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\n"+
			"password sufficient pam_permit.so\nsession sufficient pam_permit.so\n")
	}
	w.file("etc/login.defs", 0o644, "UMASK 022\nUID_MIN 1000\nGID_MIN 1000\nENCRYPT_METHOD SHA512\n")
	w.file("etc/shells", 0o644, "/bin/sh\n/bin/bash\n/usr/bin/bash\n")
}

// copied are the settings taken over from the host: what programs in /usr need,
// nothing that says who uses this machine or for what.
var copied = []string{
	"etc/alternatives", "etc/ld.so.conf", "etc/ld.so.conf.d", "etc/ld.so.cache", "etc/debian_version", "etc/os-release",
	"etc/mime.types", "etc/services", "etc/protocols", "etc/rpc", "etc/bash.bashrc", "etc/inputrc", "etc/terminfo",
	"etc/fonts", "etc/perl", "etc/python3", "etc/python2", "etc/java", "etc/ca-certificates.conf", "etc/magic", "etc/vim",
	"etc/apt/sources.list", "etc/apt/sources.list.d", "etc/apt/trusted.gpg.d", "etc/redhat-release", "etc/alpine-release",
	"etc/pki/ca-trust/extracted", "etc/pki/tls/certs", "etc/crypto-policies", "etc/ImageMagick-6", "etc/php",
}

func (w *baseImage) settings() {
	for _, name := range copied {
		w.copyTree(name, false)
	}
	for _, name := range []string{"etc/ssl/certs", "etc/ssl/openssl.cnf", "etc/ssl/cert.pem"} {
		w.copyTree(name, true) // links there lead to /usr/share and to each other
	}
	w.file("etc/hosts", 0o644, `127.0.0.1 localhost
127.0.0.2 squad.internal
::1 localhost ip6-localhost ip6-loopback
`)
	w.file("etc/hostname", 0o644, "sandbox\n")
	w.file("etc/resolv.conf", 0o644, "# There is no name server: programs go out through http_proxy.\noptions timeout:1 attempts:1\n")
	w.file("etc/nsswitch.conf", 0o644, "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n")
	w.file("etc/profile", 0o644, baseProfile)
	w.file("etc/environment", 0o644, "PATH=\""+insidePath+"\"\n")
	w.file("etc/gitconfig", 0o644, "[safe]\n\tdirectory = *\n[init]\n\tdefaultBranch = main\n")
	w.file("etc/timezone", 0o644, "Etc/UTC\n")
	w.link("etc/localtime", "/usr/share/zoneinfo/Etc/UTC")
	w.link("etc/mtab", "../proc/self/mounts")
	if !w.b.Has("etc/os-release") {
		w.link("etc/os-release", "../usr/lib/os-release")
	}
	w.dir("etc/skel", 0o755, 0)
	w.dir("etc/profile.d", 0o755, 0)
	w.dir("etc/apt/apt.conf.d", 0o755, 0)
	w.file("etc/apt/apt.conf.d/90sandbox", 0o644, "APT::Sandbox::User \"root\";\nAcquire::Retries \"2\";\n")
}

// baseProfile is read before each command of an E2B SDK, which runs them in login
// shells: what it asks of the file system is counted.
const baseProfile = `# Settings of login shells.
PATH="` + insidePath + `"
if [ -d /usr/local/go/bin ]; then PATH="$PATH:/usr/local/go/bin"; fi
for d in /opt/*/; do
	if [ -d "${d}bin" ]; then PATH="${d}bin:$PATH"; fi
	if [ -d "${d}node_modules/.bin" ]; then PATH="${d}node_modules/.bin:$PATH"; fi
done
export PATH
umask 022
case $- in *i*) if [ -n "${BASH_VERSION-}" ] && [ -r /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi ;; esac
for f in /etc/profile.d/*.sh; do [ -r "$f" ] && . "$f"; done
unset f d
`
