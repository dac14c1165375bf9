package sudo

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// account is a user of the sandbox.
type account struct {
	name        string
	uid, gid    int
	groups      []int
	home, shell string
}

// lookup finds a user by name or by #number, or by a number that is no name.
func lookup(name string) (account, error) {
	want := -1
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "#")); err == nil {
		want = n
	}
	for _, f := range entries("/etc/passwd", 7) {
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err1 != nil || err2 != nil || (f[0] != name && uid != want) {
			continue
		}
		return account{f[0], uid, gid, groupsOf(f[0], gid), f[5], f[6]}, nil
	}
	if name == "root" || want == 0 {
		return account{"root", 0, 0, []int{0}, "/root", "/bin/sh"}, nil
	}
	if want > 0 && strings.HasPrefix(name, "#") {
		return account{name[1:], want, want, []int{want}, "/", "/bin/sh"}, nil
	}
	return account{}, fmt.Errorf("unknown user %s", name)
}

func lookupGroup(name string) (int, error) {
	for _, f := range entries("/etc/group", 3) {
		if f[0] == name {
			return strconv.Atoi(f[2])
		}
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "#")); err == nil && n >= 0 {
		return n, nil
	}
	return 0, fmt.Errorf("unknown group %s", name)
}

func groupsOf(user string, primary int) []int {
	groups := []int{primary}
	for _, f := range entries("/etc/group", 4) {
		gid, err := strconv.Atoi(f[2])
		if err == nil && gid != primary && slices.Contains(strings.Split(f[3], ","), user) {
			groups = append(groups, gid)
		}
	}
	return groups
}

// entries reads the lines of a colon-separated file that have enough fields.
func entries(path string, fields int) [][]string {
	data, _ := os.ReadFile(path)
	var all [][]string
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Split(line, ":"); len(f) >= fields {
			all = append(all, f)
		}
	}
	return all
}

// kept are the variables that a command sees without -E.
var kept = []string{
	"TERM", "LANG", "LANGUAGE", "COLORTERM", "DISPLAY", "TZ", "PS1", "PS2", "XAUTHORITY", "DEBIAN_FRONTEND",
	"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
}

// environment is what the command gets; uid and gid are the caller's.
func environment(have []string, r request, t account, uid, gid int) []string {
	vars := map[string]string{}
	caller := "root"
	for _, kv := range have {
		k, v, _ := strings.Cut(kv, "=")
		if k == "USER" || k == "LOGNAME" {
			caller = v
		}
		if r.keepEnv || slices.Contains(kept, k) || strings.HasPrefix(k, "LC_") {
			vars[k] = v
		}
	}
	if a, err := lookup("#" + strconv.Itoa(uid)); err == nil {
		caller = a.name
	}
	vars["PATH"] = SecurePath
	if !r.keepEnv || r.login || vars["HOME"] == "" {
		vars["HOME"] = t.home
	}
	vars["USER"], vars["LOGNAME"], vars["SHELL"], vars["MAIL"] = t.name, t.name, t.shell, "/var/mail/"+t.name
	vars["SUDO_USER"], vars["SUDO_UID"], vars["SUDO_GID"] = caller, strconv.Itoa(uid), strconv.Itoa(gid)
	vars["SUDO_COMMAND"] = strings.Join(r.command, " ")
	for _, kv := range r.vars {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	out := make([]string, 0, len(vars))
	for k, v := range vars {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}
