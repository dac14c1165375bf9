package envd

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Sudo is sudo for sandboxes: no password, no policy, since whoever is inside
// owns the sandbox. This program is installed a second time under that name
// with the set-user-ID bit. It returns only on failure, with an exit code.
//
// It knows -u -g -E -H -n -S -b -i -s -k -K -v -l -p -D, VAR=value, and "--".
func Sudo(args []string) int {
	s := sudo{user: "root"}
	rest, err := s.parse(args)
	if err == nil && s.done {
		return 0
	}
	if err == nil {
		err = s.run(rest)
	}
	fmt.Fprintln(os.Stderr, "sudo:", err)
	return 1
}

type sudo struct {
	user, group, dir      string
	keepEnv, login, shell bool
	done                  bool // a call that only asks whether sudo works
	vars                  map[string]string
}

func (s *sudo) parse(args []string) ([]string, error) {
	s.vars = map[string]string{}
	for len(args) > 0 {
		arg := args[0]
		name, value, isVar := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return args[1:], nil
		case strings.HasPrefix(arg, "--"):
			if err := s.long(name[2:], value); err != nil {
				return nil, err
			}
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			used, err := s.short(arg[1:], args[1:])
			if err != nil {
				return nil, err
			}
			args = args[used:]
		case isVar && name != "" && !strings.ContainsRune(name, '/'):
			s.vars[name] = value
		default:
			return args, nil
		}
		args = args[1:]
	}
	return nil, nil
}

// short reads a group of one-letter flags and returns how many further
// arguments it used.
func (s *sudo) short(letters string, next []string) (int, error) {
	for i, c := range letters {
		switch c {
		case 'E':
			s.keepEnv = true
		case 'i':
			s.login = true
		case 's':
			s.shell = true
		case 'k', 'K', 'v', 'l', 'V':
			s.done = true
		case 'n', 'H', 'S', 'b', 'A', 'P':
		case 'u', 'g', 'p', 'D', 'C', 'h', 'r', 't', 'T', 'U':
			value, used := letters[i+1:], 0
			if value == "" {
				if len(next) == 0 {
					return 0, fmt.Errorf("option -%c needs a value", c)
				}
				value, used = next[0], 1
			}
			s.assign(c, value)
			return used, nil
		default:
			return 0, fmt.Errorf("unknown option -%c", c)
		}
	}
	return 0, nil
}

func (s *sudo) assign(letter rune, value string) {
	switch letter {
	case 'u':
		s.user = strings.TrimPrefix(value, "#")
	case 'g':
		s.group = value
	case 'D':
		s.dir = value
	}
}

func (s *sudo) long(name, value string) error {
	switch name {
	case "user":
		s.user = strings.TrimPrefix(value, "#")
	case "group":
		s.group = value
	case "chdir":
		s.dir = value
	case "login":
		s.login = true
	case "shell":
		s.shell = true
	case "preserve-env":
		s.keepEnv = true
	case "version", "validate", "list", "reset-timestamp", "remove-timestamp":
		s.done = true
	case "non-interactive", "set-home", "stdin", "background", "prompt":
	default:
		return fmt.Errorf("unknown option --%s", name)
	}
	return nil
}

// run becomes the asked user and executes the command, or a shell.
func (s *sudo) run(argv []string) error {
	who, err := (&accounts{}).lookup(s.user)
	if err != nil {
		return err
	}
	caller := (&accounts{}).nameOf(uint32(os.Getuid()))
	env := s.environment(who, caller)
	if s.login || s.shell || len(argv) == 0 {
		if argv, err = s.shellArgs(argv); err != nil {
			return err
		}
	}
	if s.login && s.dir == "" {
		s.dir = who.home
	}
	groups := make([]int, len(who.groups))
	for i, g := range who.groups {
		groups[i] = int(g)
	}
	if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(int(who.gid)), syscall.Setuid(int(who.uid))); err != nil {
		return fmt.Errorf("become %s: %w", who.name, err)
	}
	if s.dir != "" {
		if err := os.Chdir(s.dir); err != nil {
			return err
		}
	}
	path, err := lookPath(argv[0], env)
	if err != nil {
		return fmt.Errorf("%s: command not found", argv[0])
	}
	return fmt.Errorf("%s: %w", argv[0], syscall.Exec(path, argv, env))
}

func (s *sudo) shellArgs(argv []string) ([]string, error) {
	if !s.login && !s.shell {
		return nil, errors.New("usage: sudo [-u user] [-E] [-i | -s] [VAR=value] command")
	}
	shell := []string{"/bin/bash"}
	if _, err := os.Stat(shell[0]); err != nil {
		shell[0] = "/bin/sh"
	}
	if s.login {
		shell = append(shell, "-l")
	}
	if len(argv) > 0 {
		quoted := make([]string, len(argv))
		for i, a := range argv {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		shell = append(shell, "-c", strings.Join(quoted, " "))
	}
	return shell, nil
}

// environment is what the command gets: little of the caller's, unless asked
// for; but always the way out of the sandbox.
func (s *sudo) environment(who *account, caller string) []string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if s.keepEnv || kept(name) {
			env[name] = value
		}
	}
	if env["PATH"] == "" {
		env["PATH"] = defaultPath
	}
	env["HOME"], env["USER"], env["LOGNAME"] = who.home, who.name, who.name
	env["SUDO_USER"] = caller
	env["SUDO_UID"] = fmt.Sprint(os.Getuid())
	env["SUDO_GID"] = fmt.Sprint(os.Getgid())
	maps.Copy(env, s.vars)
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

func kept(name string) bool {
	switch name {
	case "PATH", "TERM", "COLORTERM", "LANG", "LANGUAGE", "DEBIAN_FRONTEND", "NODE_USE_ENV_PROXY", markName:
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "E2B_") || strings.HasSuffix(strings.ToLower(name), "_proxy")
}

// Dispatch runs the daemon or sudo when this process was called by one of these
// names, and returns at once otherwise. A program that stands in for the
// daemon calls it first thing.
func Dispatch() {
	switch filepath.Base(os.Args[0]) {
	case "envd":
		os.Exit(Main(os.Args[1:]))
	case "sudo":
		os.Exit(Sudo(os.Args[1:]))
	}
}
