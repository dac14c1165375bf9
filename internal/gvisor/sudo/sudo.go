// Package sudo is the sudo of sandboxes whose host has none: it runs a command as
// another user without asking for a password. It is installed set-user-ID root
// inside sandboxes only, where every user may become root anyway; started without
// that bit by someone else it can do nothing and says so.
//
// It knows the options that scripts use: -u -g -E -H -i -s -n -S -k -v -l -p -b --
// and VAR=value before the command.
package sudo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// SecurePath is where commands are looked for.
const SecurePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// request is a parsed command line.
type request struct {
	user, group string
	keepEnv     bool
	login       bool // -i
	shell       bool // -s
	check       bool // -v, -k, -l without a command: nothing to do
	version     bool
	background  bool
	vars        []string
	command     []string
}

// Main runs sudo with the arguments after its name and returns an exit status.
// When all goes well it does not return: the command takes its place.
func Main(args []string) int {
	r, err := parse(args)
	if err == nil {
		err = run(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sudo:", err)
		return 1
	}
	return 0
}

// withValue are the short options that take a value.
const withValue = "ugpChrtTDR"

func parse(args []string) (request, error) {
	r := request{user: "root"}
	for len(args) > 0 {
		a := args[0]
		switch {
		case a == "--":
			return r.rest(args[1:])
		case strings.HasPrefix(a, "--"):
			if err := r.long(strings.TrimPrefix(a, "--")); err != nil {
				return r, err
			}
		case len(a) > 1 && a[0] == '-':
			n, err := r.short(a[1:], args[1:])
			if err != nil {
				return r, err
			}
			args = args[n:]
		default:
			return r.rest(args)
		}
		args = args[1:]
	}
	return r.rest(nil)
}

// rest takes VAR=value pairs and the command.
func (r request) rest(args []string) (request, error) {
	for len(args) > 0 && strings.Contains(args[0], "=") && !strings.HasPrefix(args[0], "/") {
		r.vars = append(r.vars, args[0])
		args = args[1:]
	}
	r.command = args
	if len(args) == 0 && !r.login && !r.shell && !r.check && !r.version {
		return r, errors.New("a command is required")
	}
	return r, nil
}

// short reads a cluster of short options and says how many further arguments it
// took.
func (r *request) short(cluster string, next []string) (int, error) {
	for i, c := range cluster {
		if strings.ContainsRune(withValue, c) {
			value, took := cluster[i+1:], 0
			if value == "" {
				if len(next) == 0 {
					return 0, fmt.Errorf("option -%c needs a value", c)
				}
				value, took = next[0], 1
			}
			r.set(c, value)
			return took, nil
		}
		switch c {
		case 'E':
			r.keepEnv = true
		case 'i':
			r.login = true
		case 's':
			r.shell = true
		case 'b':
			r.background = true
		case 'v', 'k', 'K', 'l':
			r.check = true
		case 'V':
			r.version = true
		case 'H', 'n', 'S', 'A', 'B', 'P':
		default:
			return 0, fmt.Errorf("unknown option -%c", c)
		}
	}
	return 0, nil
}

func (r *request) set(option rune, value string) {
	switch option {
	case 'u':
		r.user = value
	case 'g':
		r.group = value
	}
}

func (r *request) long(option string) error {
	name, value, _ := strings.Cut(option, "=")
	switch name {
	case "user":
		r.user = value
	case "group":
		r.group = value
	case "preserve-env":
		r.keepEnv = true
	case "login":
		r.login = true
	case "shell":
		r.shell = true
	case "validate", "list", "reset-timestamp", "remove-timestamp":
		r.check = true
	case "version":
		r.version = true
	case "background":
		r.background = true
	case "non-interactive", "set-home", "stdin", "askpass", "prompt":
	default:
		return fmt.Errorf("unknown option --%s", name)
	}
	return nil
}

func run(r request) error {
	if r.version {
		fmt.Println("Sudo version 1.9.0 (sandbox)")
		return nil
	}
	if r.check && len(r.command) == 0 && !r.login && !r.shell {
		return nil
	}
	target, err := lookup(r.user)
	if err != nil {
		return err
	}
	if r.group != "" {
		if target.gid, err = lookupGroup(r.group); err != nil {
			return err
		}
	}
	env := environment(os.Environ(), r, target, os.Getuid(), os.Getgid())
	argv := commandLine(r, target)
	if r.login {
		_ = os.Chdir(target.home)
	}
	if err := become(target); err != nil {
		return err
	}
	_ = os.Setenv("PATH", SecurePath)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("%s: command not found", argv[0])
	}
	if r.login {
		argv[0] = "-" + argv[0][strings.LastIndexByte(argv[0], '/')+1:]
	}
	if r.background {
		return spawn(path, argv, env)
	}
	return fmt.Errorf("%s: %w", argv[0], syscall.Exec(path, argv, env))
}

func spawn(path string, argv, env []string) error {
	cmd := exec.Cmd{Path: path, Args: argv, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	return cmd.Start()
}

// commandLine is what is run: the command itself, or a shell with it.
func commandLine(r request, t account) []string {
	if !r.login && !r.shell {
		return r.command
	}
	shell := t.shell
	if s := os.Getenv("SHELL"); r.shell && !r.login && s != "" {
		shell = s
	}
	if shell == "" {
		shell = "/bin/sh"
	}
	if len(r.command) == 0 {
		return []string{shell}
	}
	quoted := make([]string, len(r.command))
	for i, a := range r.command {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return []string{shell, "-c", strings.Join(quoted, " ")}
}

// become changes the user for good.
func become(t account) error {
	if err := syscall.Setgroups(t.groups); err != nil {
		return fmt.Errorf("effective user ID is not 0: is sudo installed set-user-ID root? (%w)", err)
	}
	if err := syscall.Setgid(t.gid); err != nil {
		return fmt.Errorf("change group: %w", err)
	}
	if err := syscall.Setuid(t.uid); err != nil {
		return fmt.Errorf("change user: %w", err)
	}
	return nil
}
